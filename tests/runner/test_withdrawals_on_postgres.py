"""A retraction and a worker that meet: on PostgreSQL neither waits for what the other one holds."""

import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlmodel import Session, col, select

from board import results
from runner import endings, queue, volleys
from runner.rows import JobRow
from runner.states import Fault, State
from storage.buckets import Put
from storage.database import reading, writing
from storage.settings import Settings
from storage.site import Site, open_site
from tests.board import postgres
from tests.conftest import eventually
from tests.runner.conftest import AGENT, Owner, make_owner
from tests.runner.test_withdrawals import standing, take_back, text_of

server = pytest.fixture(postgres.served)


@pytest.fixture
def far_site(server: str, settings: Settings) -> Iterator[Site]:
    """The race on a PostgreSQL of its own."""
    site = open_site(settings.model_copy(update={"database_url": server}))
    yield site
    site.engine.dispose()


def _post_with_draws(site: Site) -> tuple[Owner, str]:
    with writing(site.engine) as session:
        owner = make_owner(site, session)
        source = f"{owner.bucket.uri}/r.md"
        site.buckets(session).apply(owner.bucket, [Put("r.md", text_of(f"{owner.bucket.uri}/s"))])
        result = results.post(site, session, owner.caller, source).filename
        volley = volleys.enter(
            site,
            session,
            result=result,
            agent_id=AGENT,
            user="ada",
            content_hash="0" * 64,
            bucket=str(owner.bucket),
            prefix="s",
        )
        volley.state = volleys.OPEN
        volleys.queue_draws(site, session, volley)
    return owner, result


def _is_somebody_waiting(site: Site) -> bool:
    asked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    with reading(site.engine) as looking:
        return bool(looking.connection().exec_driver_sql(asked).scalar())


def _claim(site: Site, session: Session) -> None:
    assert queue.claim(session, worker="w", now=site.clock(), lease=timedelta(seconds=99))


@pytest.mark.parametrize("does", ["claims", "ends"])
def test_a_retraction_waits_for_a_worker_that_holds_a_draw(does: str, far_site: Site) -> None:
    site, (owner, filename) = far_site, _post_with_draws(far_site)
    if does == "ends":
        with writing(site.engine) as session:
            _claim(site, session)
    taken_back: list[bool] = []
    retraction = threading.Thread(target=lambda: taken_back.append(take_back(site, owner, filename)))
    with writing(site.engine) as session:
        first = select(JobRow).order_by(col(JobRow.created_at), col(JobRow.id)).limit(1).with_for_update()
        row = session.exec(first).one()
        retraction.start()
        eventually(lambda: _is_somebody_waiting(site), what="the retraction's waiting")
        if does == "claims":
            _claim(site, session)
        else:
            endings.end(site, session, row, State.FAILED, fault=Fault.OURS, code="x")
    retraction.join(30)
    assert taken_back == [False]
    states, draws, _ = standing(site, filename)
    assert states == ["open"]
    assert sorted(draws) == (["preparing", "queued"] if does == "claims" else ["failed", "queued", "queued"])
