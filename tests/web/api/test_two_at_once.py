"""What only PostgreSQL lets happen: two are at the same row at once, or at the same bucket. The later one is no 500."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from httpx import Response
from sqlmodel import Session, col, func, select, text

from agents import accounts, minting, quotas, tokens
from agents.roles import Role
from agents.tokens import Caller
from board import messages, read_marks, reindex, search_index
from board.imports import import_board
from board.rows import PostRow
from runner import jobs, queue, staged
from runner.jobs import Order
from runner.quotas import find_kind
from runner.rows import JobRow
from runner.states import State
from storage.buckets import Bucket
from storage.database import reading, writing
from storage.local.buckets import LocalBuckets
from storage.paths import BucketName
from storage.quota_rows import QuotaChangeRow
from storage.settings import Settings
from storage.site import Site, open_site
from tests.board import postgres
from tests.conftest import CHALLENGE, HeldClock, eventually
from tests.web.api.conftest import Api

MANIFEST = '{"name": "m", "model_id": "a/b", "served_model_name": "t", "port": 8000, "serve": ["python", "serve.py"]}'
ORDER = {"agent_id": "bee", "submission_prefix": "submissions/mine", "run_prefix": "runs/one"}
BUDGET = "raw_posts_per_min"
T = TypeVar("T")


server = pytest.fixture(scope="module")(postgres.served)


@pytest.fixture
def site(server: str, tmp_path: Path, clock: HeldClock) -> Iterator[Site]:
    """A race on a database of its own, which runs bob's submissions."""
    challenge = tmp_path / "challenge.toml"
    challenge.write_text(f"auto_benchmark = true\n{CHALLENGE}")
    settings = Settings(
        data=tmp_path / "data",
        challenge=challenge,
        database_url=postgres.new_database(server),
        server_env=Path(sys.prefix),
        trusted_submitters="bob",
    )
    opened = open_site(settings, clock=clock)
    yield opened
    opened.engine.dispose()


@dataclass
class Bob:
    """Bob, whose agent is `bee`: his calls, and the same calls in a transaction that is left open."""

    api: Api
    headers: dict[str, str]
    boss: dict[str, str]
    caller: Caller

    def call(self, method: str, path: str, body: object, headers: dict[str, str] | None = None) -> Response:
        return self.api.client.request(method, path, json=body, headers=headers or self.headers)

    @contextmanager
    def overtaken(self, first: Callable[[Session], object], then: Callable[[], T]) -> Iterator[Future[T]]:
        """Do a first thing, start a second one that meets it, and commit once the second one waits."""
        with ThreadPoolExecutor(1) as pool:
            with writing(self.api.site.engine) as session:
                first(session)
                session.flush()
                later = pool.submit(then)
                eventually(lambda: later.done() or self.is_somebody_waiting(), what="the second one's waiting")
            yield later

    def answer(self, first: Callable[[Session], object], then: Callable[[], Response]) -> Response:
        with self.overtaken(first, then) as later:
            return later.result()

    def is_somebody_waiting(self) -> bool:
        with reading(self.api.site.engine) as looking:
            return bool(looking.scalar(text("SELECT count(*) FROM pg_locks WHERE NOT granted")))


@pytest.fixture
def bob(api: Api) -> Bob:
    headers, boss = api.person("bob"), api.person("boss", role=Role.OPERATOR)
    api.agent("bee", headers)
    api.upload("bee", "submissions/mine/manifest.json", MANIFEST)
    with reading(api.site.engine) as session:
        token = headers["Authorization"].removeprefix("Bearer ")
        caller = tokens.authenticate(session, token, secret=api.site.secret, now=api.site.clock())
    return Bob(api, headers, boss, caller)


def test_a_cursor_that_two_move_at_once_is_where_the_later_one_put_it(bob: Bob) -> None:
    """Both make it; one takes it back while the other moves it; both take it back."""
    said = [bob.call("POST", "/v1/messages", {"agent_id": "bee", "body": f"@bee {at}"}).json() for at in range(2)]
    old, new = (one["filename"] for one in said)
    for first, then in ((old, new), (None, old), (None, None)):
        answer = bob.answer(
            partial(read_marks.mark, caller=bob.caller, handle="bee", read_to=first, now=bob.api.site.clock()),
            partial(bob.call, "PUT", "/v1/inbox/bee/cursor", {"read_to": then}),
        )
        assert (answer.status_code, answer.json().get("read_to")) == (200, then)
        assert bob.api.client.get("/v1/inbox/bee").json()["read_to"] == then


@pytest.mark.parametrize(("first", "then"), [(5, 7), ("default", 7), ("default", "default")])
def test_a_limit_that_two_set_at_once_is_the_later_ones_and_its_trail_is_true(
    bob: Bob, first: int | str, then: int | str
) -> None:
    path = f"/v1/quotas/bee/{BUDGET}"
    site, change = bob.api.site, {"limit": then, "reason": "later"}
    if first == "default":
        assert bob.call("PUT", path, {"limit": 3, "reason": "earlier"}, bob.boss).status_code == 200

    def set_first(session: Session) -> object:
        kind, said = find_kind(session, site.challenge.limits, "bee", BUDGET), {"actor": "boss", "reason": "first"}
        if isinstance(first, int):
            return quotas.set_limit(session, kind, first, now=site.clock(), **said)
        return quotas.set_default(session, kind, now=site.clock(), **said)

    answer = bob.answer(set_first, lambda: bob.call("PUT", path, change, bob.boss))
    assert answer.status_code == 200, answer.text
    with reading(site.engine) as session:
        kind = find_kind(session, site.challenge.limits, "bee", BUDGET)
        assert kind.limit(session) == (then if isinstance(then, int) else kind.default)
        *_, one, other = session.exec(select(QuotaChangeRow).order_by(col(QuotaChangeRow.id))).all()
        assert (other.reason, other.before) == ("later", one.after)


def test_an_account_that_two_make_at_once_is_one_and_has_the_higher_role(bob: Bob) -> None:
    site = bob.api.site

    def add(session: Session, name: str, role: Role) -> str:
        return accounts.add(session, name, role=role, now=site.clock()).role

    def add_person(name: str) -> str:
        with writing(site.engine) as session:
            return add(session, name, Role.PERSON)

    add_person("here")
    for name in ("new", "here"):
        with bob.overtaken(partial(add, name=name, role=Role.ORGANIZER), partial(add_person, name)) as later:
            assert later.result() == Role.ORGANIZER
    with reading(site.engine) as session:
        roles = {row.name: row.role for row in accounts.everybody(session)}
        assert (roles["new"], roles["here"]) == (Role.ORGANIZER, Role.ORGANIZER)


def test_a_token_that_two_rotate_at_once_has_one_successor(bob: Bob) -> None:
    site, token_id = bob.api.site, bob.caller.token_id

    def rotate(session: Session) -> object:
        row = tokens.get_own(session, "bob", token_id)
        return tokens.rotate(session, row, secret=site.secret, now=site.clock())

    answer = bob.answer(rotate, partial(bob.call, "POST", f"/v1/me/tokens/{token_id}:rotate", None))
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "NOT_FOUND")
    with reading(site.engine) as session:
        assert len(tokens.tokens_of(session, "bob", now=site.clock())) == 1


def test_of_two_who_make_their_last_token_at_once_one_is_refused(bob: Bob) -> None:
    site = bob.api.site
    with writing(site.engine) as session:
        for _ in range(minting.MOST - 2):
            tokens.create(session, "bob", secret=site.secret, now=site.clock())

    def make(session: Session) -> object:
        return minting.mint(session, bob.caller, minting.Wish(), secret=site.secret, now=site.clock())

    answer = bob.answer(make, partial(bob.call, "POST", "/v1/me/tokens", {}))
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "TOO_MANY_TOKENS"), answer.text
    with reading(site.engine) as session:
        assert len(tokens.tokens_of(session, "bob", now=site.clock())) == minting.MOST


def test_a_run_that_a_worker_takes_while_it_is_cancelled_is_asked_to_stop(bob: Bob) -> None:
    """Ended as if it had never begun, it would be given back to its owner's budget while it runs."""
    site = bob.api.site
    job = bob.call("POST", "/v1/jobs:run", ORDER).json()["job_id"]

    def take(session: Session) -> object:
        return queue.claim(session, worker="w", now=site.clock(), lease=timedelta(seconds=60))

    answer = bob.answer(take, partial(bob.call, "POST", f"/v1/jobs/{job}:cancel", None))
    assert answer.status_code == 200, answer.text
    with reading(site.engine) as session:
        row = queue.get_job(session, job)
        assert (row.state, row.cancel_requested) == (State.PREPARING, True)


def test_a_post_meets_a_rebuild_of_the_index_and_is_in_it_once(bob: Bob, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes when the rows are gone and the files not yet read: then it would be taken in twice."""
    site, clear = bob.api.site, search_index.clear
    post = partial(bob.call, "POST", "/v1/messages", {"agent_id": "bee", "body": "meanwhile"})

    def then_post(session: Session) -> None:
        clear(session)
        posted.append(pool.submit(post))
        eventually(lambda: posted[0].done() or bob.is_somebody_waiting(), what="the post's waiting")

    posted: list[Future[Response]] = []
    with ThreadPoolExecutor(1) as pool:
        with monkeypatch.context() as patched, writing(site.engine) as session:
            patched.setattr(search_index, "clear", then_post)
            reindex.rebuild(site, session)
        assert posted[0].result().status_code == 201
    with writing(site.engine) as session:
        assert reindex.check(site, session) == []


def test_a_check_of_the_index_waits_for_a_post_under_way(bob: Bob) -> None:
    """It would be among the files that are read anew and not among the rows that were read before."""
    site = bob.api.site

    def check() -> list[str]:
        with writing(site.engine) as session:
            return reindex.check(site, session)

    def post(session: Session) -> object:
        return messages.post_raw(site, session, bob.caller, "bee", "meanwhile", messages.Wish())

    with bob.overtaken(post, check) as later:
        assert later.result() == []


def test_an_import_and_a_post_at_once_both_get_through(
    bob: Bob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, rebuild = bob.api.site, reindex.rebuild
    source = tmp_path / "theirs"
    (source / "message_board").mkdir(parents=True)
    (source / "message_board/20200101-000000-000_zed.md").write_text("---\nagent: zed\n---\nhi\n")
    post = partial(bob.call, "POST", "/v1/messages", {"agent_id": "bee", "body": "meanwhile"})
    posted: list[Future[Response]] = []

    def let_in(site: Site, session: Session) -> object:
        posted.append(pool.submit(post))
        eventually(lambda: posted[0].done() or bob.is_somebody_waiting(), what="the post's waiting")
        return rebuild(site, session)

    with ThreadPoolExecutor(1) as pool:
        with monkeypatch.context() as patched, writing(site.engine) as session:
            patched.setattr(reindex, "rebuild", let_in)
            assert import_board(site, session, source, label="theirs").taken
        assert posted[0].result().status_code == 201


@pytest.mark.parametrize(("key", "status"), [("k", 202), ("other", 409)])
def test_a_run_asked_for_twice_at_once_is_queued_once(bob: Bob, key: str, status: int) -> None:
    """With the same key it is the same run; with another one its folder is taken."""
    site = bob.api.site

    def ask(session: Session) -> object:
        order = Order(**ORDER, idempotency_key="k")
        return jobs.request(site, session, bob.caller, order, lambda _user: None)

    answer = bob.answer(ask, lambda: bob.call("POST", "/v1/jobs:run", ORDER, bob.headers | {"Idempotency-Key": key}))
    with reading(site.engine) as session:
        [job] = session.exec(select(JobRow.id)).all()
    assert answer.status_code == status, answer.text
    if status == 202:
        assert answer.json()["job_id"] == job
    else:
        assert (answer.json()["error"]["code"], answer.json()["error"]["hint"]) == ("RUN_PREFIX_IN_USE", job)


def test_a_message_promoted_twice_at_once_is_on_the_board_once(bob: Bob) -> None:
    """A client that had no answer in time asks again while the first call is still under way."""
    source, site = bob.api.upload("bee", "m.md", "A message.\n"), bob.api.site
    answer = bob.answer(
        lambda session: messages.post_source(site, session, bob.caller, source, messages.Wish()),
        lambda: bob.call("POST", "/v1/messages", {"source": source}),
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "ALREADY_PROMOTED")
    with reading(site.engine) as session:
        assert session.exec(select(func.count()).select_from(PostRow)).one() == 1


def test_a_bucket_that_goes_while_submissions_are_looked_for_takes_no_other_with_it(
    bob: Bob, clock: HeldClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    site, find = bob.api.site, LocalBuckets.find
    bob.api.agent("ant", bob.headers)
    bob.api.upload("bee", "submissions/bee/mine/manifest.json", MANIFEST)
    clock.forward(seconds=site.settings.staged_settle)

    def then_it_goes(store: LocalBuckets, name: BucketName) -> Bucket | None:
        found = find(store, name)
        if found is not None and name == site.scratch("ant"):
            with writing(site.engine) as other:
                LocalBuckets(other, site.blobs).delete(name)
        return found

    monkeypatch.setattr(LocalBuckets, "find", then_it_goes)
    assert len(staged.scan(site, lambda _user: None)) == 1
    assert str(site.scratch("ant")) in caplog.text
