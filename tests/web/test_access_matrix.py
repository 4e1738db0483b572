"""Who may do what with which bucket: every cell of the table, on every path that leads to a bucket.

The store's own calls are tried with access tokens and signed URLs made for the actor as if they had been given out
before the bucket was hidden or their token revoked: nothing given out once may outlast the right to it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from fastapi.testclient import TestClient
from httpx import Response

from agents import tokens
from agents.roles import Role
from storage.buckets import SYSTEM, Put
from storage.database import reading, writing
from storage.local import contents
from storage.local.buckets import LocalBuckets
from storage.paths import BucketName
from storage.settings import Settings
from storage.site import Site, open_site
from storage.xet.hashes import to_text
from storage.xet.reconstruction import fetches, plan
from storage.xet.shards import serialise
from tests.conftest import CHALLENGE
from tests.people import add_person
from tests.storage.xet.builders import claim, xorb
from tests.web.hub.conftest import add, copy, delete
from web.app import create_app
from web.hub.signing import Grant, Mode, Signer

ACTORS = ("nobody", "other", "owner", "organizer", "operator", "wrong", "revoked")
BUCKETS = {
    "public": BucketName("race", "tiny-open"),
    "private": BucketName("race", "tiny-hidden"),
    "central": BucketName("race", "tiny-main-bucket"),
    "audit": BucketName("race-admin", "tiny-audit"),
}
ABSENT = BucketName("race", "tiny-absent")

# yes: done. no: 403. gone: 404, word for word as if there were no such bucket. who: 401.
#   kind of verb      bucket      nobody  other   owner   organ.  oper.   wrong   revoked
TABLE = """
    read              public      yes     yes     yes     yes     yes     who     who
    read              private     gone    gone    yes     gone    gone    who     who
    read              central     yes     yes     yes     yes     yes     who     who
    read              audit       gone    gone    gone    gone    gone    who     who
    write             public      who     no      yes     no      no      who     who
    write             private     who     gone    yes     gone    gone    who     who
    write             central     who     no      no      no      no      who     who
    write             audit       who     gone    gone    gone    gone    who     who
    store-read        public      yes     yes     yes     yes     yes     who     who
    store-read        private     gone    gone    yes     gone    gone    who     who
    store-read        central     yes     yes     yes     yes     yes     who     who
    store-read        audit       gone    gone    gone    gone    gone    who     who
    store-write       public      no      no      yes     no      no      who     who
    store-write       private     gone    gone    yes     gone    gone    who     who
    store-write       central     no      no      no      no      no      who     who
    store-write       audit       gone    gone    gone    gone    gone    who     who
    create            public      who     taken   taken   taken   taken   who     who
    create            private     who     no      taken   no      no      who     who
    create            central     who     taken   taken   taken   taken   who     who
    create            audit       who     no      no      no      no      who     who
"""
CELLS = {
    (kind, bucket): dict(zip(ACTORS, answers, strict=True))
    for kind, bucket, *answers in (line.split() for line in TABLE.strip().splitlines())
}

_NDJSON = {"Content-Type": "application/x-ndjson"}
_EMPTY = "0" * 64
# verb: method, path, options. {b} is the bucket, {d} the hash of its file `dir/a`, {x} that of the file's xorb.
READS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "info": ("GET", "/api/buckets/{b}", {}),
    "tree": ("GET", "/api/buckets/{b}/tree", {}),
    "tree, recursive": ("GET", "/api/buckets/{b}/tree", {"params": {"recursive": "true"}}),
    "tree of a folder": ("GET", "/api/buckets/{b}/tree/dir%2F", {}),
    "paths-info": ("POST", "/api/buckets/{b}/paths-info", {"json": {"paths": ["dir/a"]}}),
    "resolve, head": ("HEAD", "/buckets/{b}/resolve/dir%2Fa", {}),
    "resolve": ("GET", "/buckets/{b}/resolve/dir%2Fa", {}),
    "resolve as fsspec does": ("GET", "/buckets/{b}/resolve/dir/a", {"headers": {"Range": "bytes=0-1"}}),
    "resolve, known": ("GET", "/buckets/{b}/resolve/dir/a", {"headers": {"If-None-Match": "*"}}),
    "resolve, missing": ("GET", "/buckets/{b}/resolve/none", {}),
    "read token": ("GET", "/api/buckets/{b}/xet-read-token", {}),
}
WRITES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "write token": ("GET", "/api/buckets/{b}/xet-write-token", {}),
    "batch, add": ("POST", "/api/buckets/{b}/batch", {"lines": [add("new", _EMPTY)]}),
    "batch, copy": ("POST", "/api/buckets/{b}/batch", {"lines": [copy("new", "{d}", "{b}")]}),
    "batch, delete": ("POST", "/api/buckets/{b}/batch", {"lines": [delete("dir/a")]}),
    "batch, nothing": ("POST", "/api/buckets/{b}/batch", {"lines": []}),
    "hide": ("PUT", "/api/buckets/{b}/settings", {"json": {"private": True}}),
    "show": ("PUT", "/api/buckets/{b}/settings", {"json": {"private": False}}),
    "move away": ("POST", "/api/repos/move", {"json": {"fromRepo": "{b}", "toRepo": "race/tiny-elsewhere"}}),
    "delete": ("DELETE", "/api/buckets/{b}", {}),
}
STORE_READS = ("/v1/reconstructions/{d}", "/v2/reconstructions/{d}", "/xorbs/{x}?{q}")
STORE_WRITES: dict[str, tuple[str, str]] = {
    "dedup": ("GET", "/v1/chunks/default/{x}"),
    "grant": ("POST", "/v1/xorb-grants/default/{x}"),
    "xorb": ("POST", "/v1/xorbs/default/{new}"),
    "shard": ("POST", "/shards"),
    "shard, v1": ("POST", "/v1/shards"),
    "shard, v2": ("POST", "/v2/shards"),
}
PIECES = [b"what lies in it", b"and is nobody else's"]
NEW = [b"a xorb that is new"]


@dataclass
class Town:
    """A whole site, its actors and four buckets with one file each."""

    http: TestClient
    site: Site
    tokens: dict[str, str] = field(default_factory=dict)
    token_ids: dict[str, str] = field(default_factory=dict)

    def headers(self, actor: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[actor]}"} if actor in self.tokens else {}

    def restore(self, which: str) -> None:
        """Put a bucket that an allowed write changed back as it was."""
        name, is_ours = BUCKETS[which], which in ("central", "audit")
        with writing(self.site.engine) as session:
            store = LocalBuckets(session, self.site.blobs, clock=self.site.clock)
            elsewhere = BucketName("race", "tiny-elsewhere")
            if store.find(elsewhere) is not None:
                store.delete(elsewhere)
            if store.find(name) is None:
                store.create(name, owner=SYSTEM if is_ours else "owner", private=which == "audit")
            store.set_private(name, which in ("private", "audit"))
            if store.stat(name, "dir/a") is None:
                store.apply(name, [Put("dir/a", b"".join(PIECES) + which.encode())])

    def ask(self, actor: str, method: str, path: str, name: BucketName, which: str, **options: Any) -> Response:
        """Send a verb, its placeholders filled in, as an actor."""
        holes = {"b": str(name), "d": self.digest(which)}
        lines = options.pop("lines", None)
        if lines is not None:
            texts = (str(line).replace("'", '"').replace("None", "null") for line in lines)
            options["content"] = "".join(f"{_filled(text, holes)}\n" for text in texts)
        if "json" in options:
            options["json"] = {
                key: _filled(value, holes) if isinstance(value, str) else value
                for key, value in options["json"].items()
            }
        headers = options.pop("headers", {}) | self.headers(actor) | (_NDJSON if lines is not None else {})
        return self.http.request(method, _filled(path, holes), headers=headers, **options)

    def digest(self, which: str) -> str:
        with reading(self.site.engine) as session:
            file = LocalBuckets(session, self.site.blobs).stat(BUCKETS[which], "dir/a")
        assert file is not None
        return file.digest

    def grant(self, actor: str, bucket_id: int, mode: Mode) -> Grant:
        """Make the grant that an actor may have been given before."""
        expires_s = int(self.site.clock().timestamp()) + 600
        return Grant(bucket_id, mode, self.token_ids.get(actor, ""), expires_s)

    def ask_store(self, actor: str, method: str, path: str, bucket_id: int, which: str, mode: Mode) -> Response:
        """Send one of the store's own calls with such a grant."""
        signer, grant = Signer(self.site.secret, self.site.blobs.generation), self.grant(actor, bucket_id, mode)
        raw, table, name = xorb(NEW)
        holes = {"d": self.digest(which), "new": to_text(name)}
        with reading(self.site.engine) as session:
            content = contents.load(session, holes["d"])
        ((fetch,),) = fetches(plan(content.terms, content.tables, 0, content.size), content.tables).values()
        holes |= {"x": to_text(fetch.xorb), "q": signer.query(fetch, grant, expires_s=grant.expires_s)}
        url = f"/cas/{self.site.blobs.generation}/{bucket_id}{_filled(path, holes)}"
        body = raw if "/xorbs/" in path else serialise([claim(table)]) if "shards" in path else b""
        headers = {} if "{q}" in path else {"Authorization": f"Bearer {signer.token(grant)}"}
        return self.http.request(method, url, headers=headers, content=body if method == "POST" else None)

    def id_of(self, name: BucketName) -> int:
        with reading(self.site.engine) as session:
            return LocalBuckets(session, self.site.blobs).id_of(name)


def _filled(text: str, holes: dict[str, str]) -> str:
    for name, value in holes.items():
        text = text.replace(f"{{{name}}}", value)
    return text


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    folder = tmp_path_factory.mktemp("town")
    (folder / "challenge.toml").write_text(CHALLENGE)
    site = open_site(Settings(data=folder / "data", challenge=folder / "challenge.toml"))
    roles = {"organizer": Role.ORGANIZER, "operator": Role.OPERATOR}
    with TestClient(create_app(site)) as http:
        made = Town(http, site)
        with writing(site.engine) as session:
            for actor in ("other", "owner", "organizer", "operator", "revoked"):
                role = roles.get(actor, Role.PERSON)
                # A revoked token is one of the owner's: it could do everything.
                name = "owner" if actor == "revoked" else actor
                made.tokens[actor] = add_person(site, session, name, role=role)
                caller = tokens.authenticate(session, made.tokens[actor], secret=site.secret, now=site.clock())
                made.token_ids[actor] = caller.token_id
            tokens.revoke(session, made.tokens["revoked"], secret=site.secret, now=site.clock())
        made.tokens["wrong"], made.token_ids["wrong"] = "pdk_wrong", "tok_wrong"
        for which in BUCKETS:
            made.restore(which)
        yield made
    site.engine.dispose()


def verdict(answer: Response) -> str:
    """Put an answer into the table's words."""
    code = answer.headers.get("X-Error-Code")
    if (answer.status_code, code) == (404, "RepoNotFound"):
        return "gone"
    return {401: "who", 403: "no", 409: "taken"}.get(answer.status_code, "yes")


def told(answer: Response, name: BucketName) -> tuple[Any, ...]:
    """Return all that an answer tells, but for the name that was asked for."""
    headers = sorted((key, value) for key, value in answer.headers.items() if key != "content-length")
    return answer.status_code, str(headers).replace(str(name), "BUCKET"), answer.text.replace(str(name), "BUCKET")


def test_the_table_has_every_cell() -> None:
    kinds = ("read", "write", "store-read", "store-write", "create")
    assert set(CELLS) == {(kind, bucket) for kind in kinds for bucket in BUCKETS}


@pytest.mark.parametrize("which", BUCKETS)
@pytest.mark.parametrize("verb", [*READS, *WRITES])
def test_the_hubs_calls(town: Town, verb: str, which: str) -> None:
    method, path, options = (READS | WRITES)[verb]
    row = CELLS["read" if verb in READS else "write", which]
    for actor in ACTORS:
        answer = town.ask(actor, method, path, BUCKETS[which], which, **options)
        town.restore(which)
        assert (actor, verdict(answer)) == (actor, row[actor]), answer.text
        assert (answer.status_code < 400) is (row[actor] == "yes" and verb != "resolve, missing")
        if row[actor] == "gone":
            absent = town.ask(actor, method, path, ABSENT, which, **options)
            assert told(answer, BUCKETS[which]) == told(absent, ABSENT)


@pytest.mark.parametrize("which", BUCKETS)
@pytest.mark.parametrize("verb", [*STORE_READS, *STORE_WRITES])
def test_the_stores_calls(town: Town, verb: str, which: str) -> None:
    is_write = verb in STORE_WRITES
    method, path = STORE_WRITES[verb] if is_write else ("GET", verb)
    if "shard" in verb:  # it builds on a xorb that the owner sends here
        town.ask_store("owner", *STORE_WRITES["xorb"], town.id_of(BUCKETS[which]), which, Mode.WRITE)
    row = CELLS["store-write" if is_write else "store-read", which]
    for actor in ACTORS:
        mode = Mode.WRITE if is_write else Mode.READ
        answer = town.ask_store(actor, method, path, town.id_of(BUCKETS[which]), which, mode)
        assert (actor, verdict(answer)) == (actor, row[actor]), answer.text
        if row[actor] == "yes" and verb not in ("dedup", "grant"):  # those two answer 404: not here yet
            assert answer.status_code < 300, answer.text
        if row[actor] == "gone":
            deleted = town.ask_store(actor, method, path, 999, which, mode)
            assert told(answer, BUCKETS[which]) == told(deleted, ABSENT)


@pytest.mark.parametrize("which", BUCKETS)
@pytest.mark.parametrize("verb", STORE_WRITES)
def test_a_grant_to_read_does_not_write(town: Town, verb: str, which: str) -> None:
    answer = town.ask_store("owner", *STORE_WRITES[verb], town.id_of(BUCKETS[which]), which, Mode.READ)
    assert answer.status_code == 403


@pytest.mark.parametrize("which", BUCKETS)
def test_a_grant_for_one_bucket_opens_no_other(town: Town, which: str) -> None:
    elsewhere = town.id_of(BUCKETS["public" if which != "public" else "private"])
    signer = Signer(town.site.secret, town.site.blobs.generation)
    grant = signer.token(town.grant("owner", elsewhere, Mode.WRITE))
    base = f"/cas/{town.site.blobs.generation}/{town.id_of(BUCKETS[which])}"
    for path in ("/v2/reconstructions/{d}", "/v1/chunks/default/{d}"):
        url = base + _filled(path, {"d": town.digest(which)})
        assert town.http.get(url, headers={"Authorization": f"Bearer {grant}"}).status_code == 401
    there = f"/cas/{town.site.blobs.generation}/{elsewhere}/v2/reconstructions/{town.digest(which)}"
    assert town.http.get(there, headers={"Authorization": f"Bearer {grant}"}).status_code == 404


@pytest.mark.parametrize("which", BUCKETS)
def test_names_that_are_taken(town: Town, which: str) -> None:
    for actor in ACTORS:
        answer = town.ask(actor, "POST", "/api/buckets/{b}", BUCKETS[which], which, json={})
        assert (actor, verdict(answer)) == (actor, CELLS["create", which][actor]), answer.text


@pytest.mark.parametrize("actor", ACTORS)
def test_lists_show_what_the_actor_may_read(town: Town, actor: str) -> None:
    for namespace in ("race", "race-admin", "owner"):
        answer = town.http.get(f"/api/buckets/{namespace}", headers=town.headers(actor))
        rows = {which: CELLS["read", which][actor] for which, name in BUCKETS.items() if name.namespace == namespace}
        if actor in ("wrong", "revoked"):
            assert answer.status_code == 401
        else:
            seen = {str(BUCKETS[which]) for which, expected in rows.items() if expected == "yes"}
            assert {bucket["id"] for bucket in answer.json()} == seen


@pytest.mark.parametrize("which", BUCKETS)
def test_a_file_is_copied_out_of_what_the_actor_may_read(town: Town, which: str) -> None:
    for actor in ("other", "owner", "organizer", "operator"):
        own = BucketName(actor, "own")
        town.ask(actor, "POST", "/api/buckets/{b}", own, which, json={})
        answers = [
            town.ask(actor, "POST", f"/api/buckets/{own}/batch", name, which, lines=[copy("x", "{d}", "{b}")])
            for name in (BUCKETS[which], ABSENT)
        ]
        may = CELLS["read", which][actor] == "yes"
        assert [answer.status_code for answer in answers] == [200 if may else 422, 422]
        assert may or told(answers[0], BUCKETS[which]) == told(answers[1], ABSENT)


@pytest.mark.parametrize("which", BUCKETS)
@pytest.mark.parametrize(
    "path", ["/buckets/{b}", "/buckets/{b}/tree", "/buckets/{b}/tree/dir", "/buckets/{b}/tree/dir/a"]
)
def test_pages_show_a_bucket_to_whom_it_is_open_and_to_others_nothing(town: Town, path: str, which: str) -> None:
    """Walk the file browser as a person's browser does."""
    for actor in ACTORS:
        headers = town.headers(actor) | {"Accept": "text/html"}
        answer, absent = (
            town.http.get(_filled(path, {"b": str(name)}), headers=headers) for name in (BUCKETS[which], ABSENT)
        )
        if CELLS["read", which][actor] == "yes":
            assert answer.status_code == 200, (actor, path)
        else:
            assert answer.status_code in (401, 404)
            assert answer.text.replace(str(BUCKETS[which]), str(ABSENT)) == absent.text
