"""Everybody who may call a site, and one of each thing that can be owned, for the permission matrix."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import Session

from agents import accounts, links, sessions, tokens
from agents.roles import Role
from agents.scopes import ALL, DEFAULT, Scope
from agents.secrets import Kind, keyed_hash
from agents.sessions import Place
from storage.database import writing
from storage.local.buckets import LocalBuckets
from storage.site import Site
from tests.people import add_agent, add_bucket, add_files
from web.sessions import COOKIE

ROLES = {
    "person": Role.PERSON,
    "owner": Role.PERSON,
    "other": Role.PERSON,
    "organizer": Role.ORGANIZER,
    "operator": Role.OPERATOR,
}
ACTORS = ("visitor", *ROLES, "no-scope", "revoked")
MANIFEST = '{"name":"m","model_id":"a/b","served_model_name":"t","port":8000,"serve":["python","serve.py"]}'
RESULT = "---\ntps: 10.5\nppl: 2.1\nmethod: plain\nstatus: agent-run\ndescription: A start.\n---\n\nFast.\n"
FILES = {
    "m.md": "A message.\n",
    "r.md": RESULT,
    "r2.md": RESULT.replace("plain", "other"),
    "a/f.txt": "A file.\n",
    "submissions/mine/manifest.json": MANIFEST,
    "traces/s1/manifest.md": "---\nschema_version: 1\nharness: h\nsession_id: s1\n---\n\nDid things.\n",
}


@dataclass
class Key:
    """What one actor shows: a bearer to the API, a cookie to the pages."""

    token: str = ""
    cookie: str = ""


@dataclass
class Cast:
    """The site, everybody's keys, and what the paths of its routes name."""

    site: Site
    client: TestClient
    keys: dict[tuple[str, Scope | None], Key] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def key(self, actor: str, need: Scope | None) -> Key:
        return self.keys.get((actor, need)) or self.keys[actor, None]

    def store_token(self, key: Key) -> str:
        """What the store's own calls carry for this actor: leave to write the private bucket, or to read it."""
        headers = {"Authorization": f"Bearer {key.token}"} if key.token else {}
        for mode in ("write", "read"):
            answer = self.client.get(f"/api/buckets/race/tiny-dark-owl/xet-{mode}-token", headers=headers)
            if answer.status_code == 200:
                return str(answer.json()["accessToken"])
        return ""

    def form_word(self, cookie: str) -> str:
        return keyed_hash(self.site.secret, Kind.FORM, cookie)


def gather(site: Site, app: FastAPI) -> Cast:
    """Fill the site."""
    cast = Cast(site, TestClient(app, raise_server_exceptions=False, follow_redirects=False))
    with writing(site.engine) as session:
        _people(cast, session)
        _buckets(cast, session)
    _records(cast)
    return cast


def _people(cast: Cast, session: Session) -> None:
    site, now = cast.site, cast.site.clock()
    for name, role in ROLES.items():
        accounts.add(session, name, role=role, now=now)
        scopes = ALL if role == Role.OPERATOR else DEFAULT
        cast.keys[name, None] = _key(cast, session, name, scopes)
    cast.keys["visitor", None] = Key()
    cast.keys["no-scope", None] = cast.keys["owner", None]
    for need in DEFAULT:
        cast.keys["no-scope", need] = _key(cast, session, "owner", DEFAULT - {need})
    cast.keys["no-scope", Scope.OPERATE] = _key(cast, session, "operator", DEFAULT)
    cast.keys["revoked", None] = _key(cast, session, "owner", ALL, ended_at=now)
    cast.names["token_id"] = tokens.create(session, "owner", secret=site.secret, now=now).row.id
    cast.names["session_id"] = sessions.start(session, "owner", secret=site.secret, now=now, place=Place()).row.id
    cast.names["secret"] = links.make(session, "owner", secret=site.secret, now=now).rpartition("/")[2]


def _key(cast: Cast, session: Session, user: str, scopes: frozenset[Scope], *, ended_at: datetime | None = None) -> Key:
    site, now = cast.site, cast.site.clock()
    made = tokens.create(session, user, secret=site.secret, now=now, scopes=scopes)
    begun = sessions.start(session, user, secret=site.secret, now=now, scopes=scopes, place=Place())
    made.row.revoked_at = begun.row.ended_at = ended_at
    return Key(made.text, begun.cookie)


def _buckets(cast: Cast, session: Session) -> None:
    """The owner has an agent in a public bucket and a private bucket; the other has an agent, too."""
    site = cast.site
    add_agent(site, session, "blue-heron", cast.keys["owner", None].token)
    add_agent(site, session, "red-fox", cast.keys["other", None].token)
    add_files(site, session, "blue-heron", FILES)
    add_bucket(site, session, "dark-owl", owner="owner", private=True)
    cast.names["generation"] = site.blobs.generation
    cast.names["bucket_id"] = str(LocalBuckets(session, site.blobs).id_of(site.scratch("dark-owl")))


def _records(cast: Cast) -> None:
    """One of each thing on the board, all of the owner's."""
    source = cast.site.scratch("blue-heron").uri
    made = {
        "message": _made(cast, "/v1/messages", {"agent_id": "blue-heron", "body": "Hello, @red-fox."})["filename"],
        "result": _made(cast, "/v1/results", {"source": f"{source}/r.md"})["filename"],
        "taskforce": _made(cast, "/v1/taskforces", {"name": "speed", "agent_id": "blue-heron", "body": "x"})["name"],
        "trace": _made(cast, "/v1/traces", {"source": f"{source}/traces/s1/"})["session_id"],
        "job": _made(
            cast,
            "/v1/jobs:run",
            {"agent_id": "blue-heron", "submission_prefix": "submissions/mine", "run_prefix": "runs/0"},
        )["job_id"],
    }
    _made(cast, "/v1/taskforces/speed/files", {"source": f"{source}/a/f.txt", "dest_path": "f_blue-heron.txt"})
    cast.names |= made


def _made(cast: Cast, path: str, body: dict[str, str]) -> dict[str, str]:
    headers = {"Authorization": f"Bearer {cast.keys['owner', None].token}"}
    answer = cast.client.post(path, json=body, headers=headers)
    assert answer.status_code in (201, 202), f"{path}: {answer.text}"
    told: dict[str, str] = answer.json()
    return told


@contextmanager
def unchanging(site: Site) -> Iterator["Restore"]:
    """Keep the database as it is now; calling what this yields brings it back."""
    path = str(site.settings.data / "paddock.db")
    with sqlite3.connect(path) as live, sqlite3.connect(":memory:") as kept:
        live.backup(kept)
        yield Restore(kept, path)
    kept.close()
    live.close()


@dataclass
class Restore:
    """The database as it was."""

    kept: sqlite3.Connection
    path: str

    def __call__(self) -> None:
        live = sqlite3.connect(self.path)
        self.kept.backup(live)
        live.close()


def cookies_of(key: Key) -> dict[str, str]:
    return {"Cookie": f"{COOKIE}={key.cookie}"} if key.cookie else {}
