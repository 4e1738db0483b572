"""Results that try to get a verdict they don't deserve, or a second one."""

from datetime import timedelta

import pytest

from board import results
from board.verdicts import State
from runner import queue, volleys
from runner.gates import judge
from runner.schedule import reap_lost
from runner.verification import open_for
from runner.worker import Worker
from storage.buckets import Put
from storage.database import writing
from storage.site import Site
from tests.conftest import HeldClock
from tests.runner.conftest import AGENT, EXPLOITS, Owner
from tests.runner.test_gates import AT, FAILED, GOOD, RULES
from tests.runner.test_verification import _jobs, _post, _result, _run_all, _verdict_posts, private

__all__ = ["private"]

CROSSES = [
    "hf://buckets/race/tiny-other/submissions/other/theirs",
    "hf://buckets/race-admin/tiny-audit/snapshots/{content}",
    "hf://buckets/race/tiny-main-bucket/results",
    "hf://buckets/race/tiny-blue-heron/submissions/../../tiny-other",
    "artifacts/../submissions/blue-heron/honest",
    "/submissions/blue-heron/honest",
    "results",
]


def _post_naming(site: Site, owner: Owner, place: str, **fields: str) -> str:
    """Post a result whose `submission` is `place`, word for word."""
    head = {"tps": "1.5", "ppl": "1.1", "method": "m", "status": "agent-run", "description": "d", **fields}
    lines = [f"{key}: {value}\n" for key, value in {**head, "submission": f'"{place}"'}.items()]
    with writing(site.engine) as session:
        site.buckets(session).apply(owner.bucket, [Put("results/x.md", f"---\n{''.join(lines)}---\nx\n".encode())])
        filename = results.post(site, session, owner.caller, f"{owner.bucket.uri}/results/x.md").filename
        open_for(site, session, filename)
        return filename


@pytest.mark.parametrize("place", CROSSES)
def test_a_submission_that_is_not_the_owners_is_never_run(
    place: str, site: Site, owner: Owner, worker: Worker, private: None
) -> None:
    content = owner.order(owner.upload("honest")).row.content_hash
    with writing(site.engine) as session:
        other = site.scratch("other")
        site.buckets(session).create(other, owner="eve")
        files = [*(EXPLOITS / "honest").glob("*.*"), EXPLOITS / "fake_server.py"]
        theirs = [Put(f"submissions/other/theirs/{path.name}", path.read_bytes()) for path in files]
        site.buckets(session).apply(other, theirs)
    filename = _post_naming(site, owner, place.format(content=content))
    assert [job for job in _jobs(site) if job.kind == "draw"] == []
    assert _result(site, filename).verification == "pending"
    assert "names no folder" in _result(site, filename).reason


def test_a_negative_result_opens_no_volley(site: Site, owner: Owner, private: None) -> None:
    _post_naming(site, owner, owner.upload("honest"), status="negative")
    assert _jobs(site) == []


def test_the_largest_claim_there_is_is_judged_like_any(site: Site, owner: Owner, worker: Worker, private: None) -> None:
    filename = _post_naming(site, owner, owner.upload("honest"), tps="9" * 40)
    _run_all(worker)
    row = _result(site, filename)
    assert (row.verification, row.claim_state) == ("valid", "overclaimed")
    assert len(_verdict_posts(site)[0].body) < 2000


def test_what_is_changed_between_the_post_and_the_draws_does_not_run(
    site: Site, owner: Owner, worker: Worker, private: None
) -> None:
    filename = _post(site, owner, owner.upload("honest"))
    owner.upload("dies_at_start", to=f"submissions/{AGENT}/honest")
    worker.run_one()
    with writing(site.engine) as session:
        site.buckets(session).delete(owner.bucket)
    worker.run_one()
    assert _result(site, filename).verification == "valid"


def test_a_volley_is_opened_once_and_its_verdict_is_said_once(
    site: Site, owner: Owner, worker: Worker, private: None, clock: HeldClock
) -> None:
    filename = _post(site, owner, owner.upload("honest"))
    with writing(site.engine) as session:
        open_for(site, session, filename)
    assert len(_jobs(site)) == 2
    with writing(site.engine) as session:
        lost = queue.claim(session, worker="w", now=clock(), lease=timedelta(seconds=3))
    clock.forward(seconds=4)
    assert reap_lost(site) == [lost.job_id if lost else ""]
    assert _run_all(worker) == 2
    clock.forward(hours=1)
    assert (reap_lost(site), _run_all(worker), len(_verdict_posts(site))) == ([], 0, 1)
    assert _result(site, filename).verification == "valid"


def test_a_failed_draw_stays_with_its_content_however_often_it_is_posted_again() -> None:
    verdict = judge([GOOD, GOOD], [GOOD, FAILED], claimed=None, rules=RULES, opened_at=AT, closed_at=AT)
    assert verdict.state is State.INVALID
    assert "server_exited" in verdict.reason


def test_draws_on_other_hardware_are_not_pooled(site: Site, owner: Owner, worker: Worker, private: None) -> None:
    prefix = owner.upload("honest")
    _post(site, owner, prefix)
    _run_all(worker)
    with writing(site.engine) as session:
        for job in _jobs(site):
            queue.get_job(session, job.id).hardware = "another machine"
    second = _post(site, owner, prefix, name="r2")
    _run_all(worker)
    assert _result(site, second).n == 2


def test_no_one_can_try_every_seed_of_a_draw(site: Site) -> None:
    """With the seed, which the warm-up prompts follow from, a server would know which scored records are decoys."""
    seeds = [volleys.seed_of(site.secret, "vol_x", draw) for draw in range(64)]
    assert len(set(seeds)) == 64
    assert max(seeds) > 2**60
    assert max(seeds) < 2**63
