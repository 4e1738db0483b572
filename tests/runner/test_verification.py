"""From a posted result to its verdict, with the real worker, launcher and harness."""

import json
from datetime import timedelta

import pytest
from sqlmodel import col, select

from board import results
from board.rows import InboxRow, PostRow, ResultRow
from runner import jobs, queue, quotas, verification
from runner.rows import JobRow, VolleyRow
from runner.schedule import reap_lost, start_waiting
from runner.worker import Worker
from storage.buckets import Put
from storage.database import reading, writing
from storage.site import Site
from tests.bigram import write_prompts
from tests.conftest import HeldClock
from tests.runner.conftest import AGENT, Owner


@pytest.fixture
def private(site: Site) -> None:
    """The private prompts and references, other than the public ones."""
    write_prompts(site.private / "prompts.jsonl", site.private / "references.jsonl", salt=17)


def _post(site: Site, owner: Owner, submission: str, *, tps: str = "1.5", name: str = "r1") -> str:
    head = f"tps: {tps}\nppl: 1.1\nmethod: plain\nstatus: agent-run\ndescription: d\n"
    text = f"---\n{head}submission: {owner.bucket.uri}/{submission}\n---\nA result.\n"
    with writing(site.engine) as session:
        site.buckets(session).apply(owner.bucket, [Put(f"results/{name}.md", text.encode())])
        filename = results.post(site, session, owner.caller, f"{owner.bucket.uri}/results/{name}.md").filename
        verification.open_for(site, session, filename)
        return filename


def _result(site: Site, filename: str) -> ResultRow:
    with reading(site.engine) as session:
        row = results.get_row(session, filename)
        session.expunge(row)
        return row


def _jobs(site: Site) -> list[JobRow]:
    with reading(site.engine) as session:
        rows = list(session.exec(select(JobRow).order_by(col(JobRow.created_at), col(JobRow.draw))))
        session.expunge_all()
        return rows


def _verdict_posts(site: Site) -> list[PostRow]:
    with reading(site.engine) as session:
        rows = list(session.exec(select(PostRow).where(PostRow.agent == "verifier").order_by(PostRow.filename)))
        session.expunge_all()
        return rows


def _central(site: Site, path: str) -> bytes:
    with reading(site.engine) as session:
        return site.buckets(session).read(site.central, path)


def _run_all(worker: Worker) -> int:
    count = 0
    while worker.run_one():
        count += 1
    return count


def test_a_result_is_verified_on_the_private_prompts_and_its_owner_hears_of_it(
    site: Site, owner: Owner, worker: Worker, private: None
) -> None:
    filename = _post(site, owner, owner.upload("honest"))
    assert _result(site, filename).verification == "pending"
    assert "2 draws" in _result(site, filename).reason
    assert [(job.kind, job.state, job.draw) for job in _jobs(site)] == [("draw", "queued", 1), ("draw", "queued", 2)]
    assert _run_all(worker) == 2
    row = _result(site, filename)
    assert (row.verification, row.n, row.claim_state, row.hardware) == ("valid", 2, "held", "cpu")
    assert row.measured is not None
    assert row.measured > 10
    assert row.measured_guard == pytest.approx(1.105, abs=1e-3)
    verdict = json.loads(_central(site, f"verdicts/{filename.removesuffix('.md')}/verdict.json"))
    assert [gate["name"] for gate in verdict["gates"]] == ["serves", "tokens", "guard"]
    assert [draw["state"] for draw in verdict["draws"]] == ["completed", "completed"]
    [post] = _verdict_posts(site)
    assert (post.type, post.thread, post.via) == ("verification", filename, "server")
    assert post.frontmatter["refs"] == filename
    assert f"@{AGENT}" in post.body
    with reading(site.engine) as session:
        assert session.get(InboxRow, (AGENT, post.filename)) is not None


def test_what_a_draw_saw_lies_in_the_audit_bucket_alone(
    site: Site, owner: Owner, worker: Worker, private: None
) -> None:
    _post(site, owner, owner.upload("honest"))
    _run_all(worker)
    with reading(site.engine) as session:
        runs = [file.path for file in site.buckets(session).list(site.audit, "runs")]
        for job in _jobs(site):
            assert f"runs/{job.id}/decode_outputs.jsonl" in runs
            assert f"runs/{job.id}/job_logs.txt" in runs
        central = [file.path for file in site.buckets(session).list(site.central)]
        scratch = [file.path for file in site.buckets(session).list(owner.bucket)]
    assert not [path for path in central + scratch if "decode" in path or "job_logs" in path]
    prompts = [json.loads(line) for line in (site.private / "prompts.jsonl").read_text().splitlines()]
    outputs = [json.loads(line) for line in _audit(site, f"runs/{_jobs(site)[0].id}/decode_outputs.jsonl").splitlines()]
    assert all(one["prompt_token_ids"] in [prompt["context_token_ids"] for prompt in prompts] for one in outputs)
    seeds = {json.loads(_audit(site, f"runs/{job.id}/summary.json"))["seed"] for job in _jobs(site)}
    assert len(seeds) == 2


def _audit(site: Site, path: str) -> str:
    with reading(site.engine) as session:
        return site.buckets(session).read(site.audit, path).decode()


def test_a_submission_that_dies_on_the_private_prompts_is_invalid_by_name(
    site: Site, owner: Owner, worker: Worker, private: None
) -> None:
    filename = _post(site, owner, owner.upload("dies_half_way"))
    _run_all(worker)
    row = _result(site, filename)
    assert row.verification == "invalid"
    assert row.reason == "Gate serves: a draw could not be measured (server_exited, server_exited)."
    [post] = _verdict_posts(site)
    assert "engine core died" not in post.body


def test_an_overclaim_ranks_at_what_was_measured(site: Site, owner: Owner, worker: Worker, private: None) -> None:
    filename = _post(site, owner, owner.upload("honest"), tps="9999999")
    _run_all(worker)
    row = _result(site, filename)
    assert (row.verification, row.claim_state) == ("valid", "overclaimed")
    assert row.measured is not None
    assert row.measured < 9999999


def test_a_second_post_of_the_same_bytes_is_judged_by_the_same_draws(
    site: Site, owner: Owner, worker: Worker, private: None, clock: HeldClock
) -> None:
    prefix = owner.upload("honest")
    _post(site, owner, prefix)
    assert _run_all(worker) == 2
    clock.forward(minutes=1)
    second = _post(site, owner, prefix, name="r2")
    assert (_run_all(worker), len(_verdict_posts(site))) == (0, 2)
    row = _result(site, second)
    assert (row.verification, row.n) == ("valid", 2)


def test_a_post_of_bytes_that_are_being_drawn_waits_for_those_draws(
    site: Site, owner: Owner, worker: Worker, private: None
) -> None:
    prefix = owner.upload("honest")
    first = _post(site, owner, prefix)
    second = _post(site, owner, prefix, name="r2")
    start_waiting(site)
    assert first in _result(site, second).reason
    assert _run_all(worker) == 2
    start_waiting(site)
    assert [_result(site, name).verification for name in (first, second)] == ["valid", "valid"]


def test_a_volley_over_the_days_budget_waits_with_its_content_kept(
    site: Site, owner: Owner, private: None, clock: HeldClock
) -> None:
    with writing(site.engine) as session:
        for _ in range(site.challenge.limits.verifications_per_user_per_day):
            quotas.spend_verification(session, site.challenge.limits, user="ada", ref="", now=clock())
    prefix = owner.upload("honest")
    filename = _post(site, owner, prefix)
    assert _jobs(site) == []
    assert "when there is room again" in _result(site, filename).reason
    with writing(site.engine) as session:
        kept = session.exec(select(VolleyRow.content_hash)).one()
        site.buckets(session).apply(owner.bucket, [Put(f"{prefix}/serve.py", b"changed")])
    clock.forward(hours=25)
    start_waiting(site)
    assert [job.content_hash for job in _jobs(site)] == [kept, kept]


def test_a_result_that_waited_for_the_reference_records_is_drawn_once_they_are_made(
    site: Site, owner: Owner, worker: Worker
) -> None:
    filename = _post(site, owner, owner.upload("honest"))
    start_waiting(site)
    assert _jobs(site) == []
    write_prompts(site.private / "prompts.jsonl", site.private / "references.jsonl", salt=17)
    start_waiting(site)
    _run_all(worker)
    assert _result(site, filename).verification == "valid"


def test_a_draw_lost_through_us_is_drawn_anew_at_most_twice_and_then_nothing_is_concluded(
    site: Site, owner: Owner, private: None, clock: HeldClock
) -> None:
    filename = _post(site, owner, owner.upload("honest"))
    for _ in range(4):
        with writing(site.engine) as session:
            queue.claim(session, worker="w", now=clock(), lease=timedelta(seconds=3))
        clock.forward(seconds=4)
        assert len(reap_lost(site)) == 1
    with reading(site.engine) as session:
        [volley] = session.exec(select(VolleyRow))
        assert (volley.replaced, volley.state) == (2, "inconclusive")
    assert len(_jobs(site)) == 4
    row = _result(site, filename)
    assert (row.verification, row.measured) == ("inconclusive", None)
    assert "0 of 2 draws" in row.reason


def test_without_private_references_a_result_waits_and_says_for_what(site: Site, owner: Owner) -> None:
    filename = _post(site, owner, owner.upload("honest"))
    assert (_result(site, filename).verification, _jobs(site)) == ("pending", [])
    assert "private reference records" in _result(site, filename).reason


def test_a_result_that_names_no_submission_waits_and_says_so(site: Site, owner: Owner, private: None) -> None:
    filename = _post(site, owner, "submissions/absent")
    assert (_result(site, filename).verification, _jobs(site)) == ("pending", [])
    assert "manifest.json" in _result(site, filename).reason


def test_a_submission_with_a_bad_manifest_waits_and_says_why(site: Site, owner: Owner, private: None) -> None:
    filename = _post(site, owner, owner.upload("honest", changes={"manifest.json": b'{"port": 1}'}))
    assert _jobs(site) == []
    assert "manifest.json is wrong at" in _result(site, filename).reason


def test_of_a_draw_the_public_sees_a_code_and_nothing_its_server_said(
    site: Site, owner: Owner, worker: Worker, private: None
) -> None:
    _post(site, owner, owner.upload("dies_half_way"))
    _run_all(worker)
    draw = _jobs(site)[0]
    assert "engine core died" in draw.message
    with reading(site.engine) as session:
        shown = jobs.view(session, draw)
    assert shown["code"] == "server_exited"
    assert not {"message", "summary", "times", "run_prefix", "submission_prefix"} & set(shown)
    assert "engine core died" not in json.dumps(shown)


def test_references_that_vanish_while_a_volley_is_drawn_leave_the_result_pending(
    site: Site, owner: Owner, worker: Worker, private: None
) -> None:
    filename = _post(site, owner, owner.upload("honest"))
    worker.run_one()
    (site.private / "references.jsonl").unlink()
    worker.run_one()
    assert _result(site, filename).verification == "pending"
    assert "vanished" in _result(site, filename).reason
    assert {job.state for job in _jobs(site)} == {"completed"}
