"""An author who takes a result back stops its verification only before a draw has started."""

from datetime import timedelta

import pytest
from fastapi.testclient import TestClient
from sqlmodel import select

from board import results
from board.records import RESULTS
from runner import queue, verification, volleys, withdrawals
from runner.rows import JobRow, VolleyRow
from runner.schedule import start_waiting
from storage.buckets import Put
from storage.database import reading, writing
from storage.site import Site
from tests.bigram import write_prompts
from tests.people import add_agent, add_files, add_person
from tests.runner.conftest import AGENT, EXPLOITS, Owner
from web.app import create_app


def make_private(site: Site) -> None:
    write_prompts(site.private / "prompts.jsonl", site.private / "references.jsonl", salt=17)


def text_of(submission: str) -> bytes:
    head = "tps: 1.5\nppl: 1.1\nmethod: plain\nstatus: agent-run\ndescription: d\n"
    return f"---\n{head}submission: {submission}\n---\nA result.\n".encode()


def post(site: Site, owner: Owner) -> str:
    submission = owner.upload("honest")
    with writing(site.engine) as session:
        puts = [Put("results/r.md", text_of(f"{owner.bucket.uri}/{submission}"))]
        site.buckets(session).apply(owner.bucket, puts)
        filename = results.post(site, session, owner.caller, f"{owner.bucket.uri}/results/r.md").filename
        verification.open_for(site, session, filename)
    return filename


def take_back(site: Site, owner: Owner, filename: str) -> bool:
    with writing(site.engine) as session:
        withdrawals.retract(site, session, owner.caller, filename, "Wrong.", folder=RESULTS)
    return standing(site, filename)[0] == ["withdrawn"]


def standing(site: Site, filename: str) -> tuple[list[str], list[str], str]:
    """The states of volleys and draws, and why there is no verdict."""
    with reading(site.engine) as session:
        found = session.exec(select(VolleyRow.state)).all(), session.exec(select(JobRow.state)).all()
        return list(found[0]), list(found[1]), results.get_row(session, filename).reason


def test_a_volley_that_waits_is_withdrawn_and_never_starts(site: Site, owner: Owner) -> None:
    filename = post(site, owner)
    assert standing(site, filename)[:2] == (["waiting"], [])
    assert take_back(site, owner, filename)
    make_private(site)
    start_waiting(site)
    states, draws, reason = standing(site, filename)
    assert (states, draws) == (["withdrawn"], [])
    assert "took the result back" in reason


def test_queued_draws_none_of_which_has_started_are_cancelled(site: Site, owner: Owner) -> None:
    make_private(site)
    filename = post(site, owner)
    assert take_back(site, owner, filename)
    assert standing(site, filename)[:2] == (["withdrawn"], ["cancelled", "cancelled"])
    with writing(site.engine) as session:
        assert queue.claim(session, worker="w", now=site.clock(), lease=timedelta(seconds=9)) is None


def test_once_a_draw_has_started_the_volley_goes_on(site: Site, owner: Owner) -> None:
    make_private(site)
    filename = post(site, owner)
    with writing(site.engine) as session:
        assert queue.claim(session, worker="w", now=site.clock(), lease=timedelta(seconds=9))
    assert not take_back(site, owner, filename)
    assert standing(site, filename)[:2] == (["open"], ["preparing", "queued"])


def test_a_withdrawn_volley_holds_up_no_other_and_is_no_evidence_for_it(site: Site, owner: Owner) -> None:
    make_private(site)
    first = post(site, owner)
    with writing(site.engine) as session:
        again = text_of(f"{owner.bucket.uri}/submissions/{AGENT}/honest") + b"Again.\n"
        site.buckets(session).apply(owner.bucket, [Put("results/r2.md", again)])
        second = results.post(site, session, owner.caller, f"{owner.bucket.uri}/results/r2.md").filename
        verification.open_for(site, session, second)
    assert "judged by the same draws" in standing(site, second)[2]
    take_back(site, owner, first)
    start_waiting(site)
    assert sorted(standing(site, second)[0]) == ["open", "withdrawn"]
    with reading(site.engine) as session:
        volley = volleys.find_unfinished(session, second)
        assert volley is not None
        assert volleys.earlier_draws(site, session, volley) == []


@pytest.mark.parametrize("verb", ["retract", "hide"])
def test_over_http_a_retraction_withdraws_and_a_hide_does_not(site: Site, verb: str) -> None:
    make_private(site)
    with writing(site.engine) as session:
        token = add_person(site, session, "ada", is_organizer=True)
        add_agent(site, session, AGENT, token)
        files = {f"s/{path.name}": path.read_bytes() for path in (EXPLOITS / "honest").glob("*.*")}
        scratch = site.scratch(AGENT).uri
        add_files(site, session, AGENT, {**files, "r.md": text_of(f"{scratch}/s")})
    with TestClient(create_app(site), headers={"Authorization": f"Bearer {token}"}) as client:
        filename = client.post("/v1/results", json={"source": f"{scratch}/r.md"}).json()["filename"]
        assert client.post(f"/v1/results/{filename}:{verb}", json={"reason": "x"}).status_code == 200
    expected = ["withdrawn"] if verb == "retract" else ["open"]
    assert standing(site, filename)[0] == expected
