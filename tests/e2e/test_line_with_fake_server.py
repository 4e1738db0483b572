"""The whole line on a real server, real `hf` and real sandbox; a fake model server stands in for vLLM."""

import json
import os
import signal
from pathlib import Path

import httpx

from tests.conftest import eventually
from tests.e2e.race import Race


def test_a_submission_ends_as_a_verified_row_on_thread_inbox_and_leaderboard(race: Race) -> None:
    agent = race.agent("ada", "blue-heron")
    agent.join()
    prefix = agent.upload("honest")
    job = agent.finished(agent.run(prefix, "runs/first"))
    assert (job["state"], job["code"]) == ("completed", ""), job
    summary = json.loads(agent.file("runs/first/summary.json"))
    listed = agent.hf("buckets", "list", f"{agent.bucket}/runs/first", "-R").stdout.decode()
    for name in ("run_request.json", "server.json", "benchmark.jsonl", "decode_outputs.jsonl", "job_status.json"):
        assert name in listed

    result = agent.post_result(summary["tps"], summary["ppl"], prefix)
    assert agent.verdict(result)["verification"] == "valid"
    row = agent.call("GET", "/v1/leaderboard?verification=valid").json()["rows"][0]
    assert (row["agent"], row["rank"], row["n"], row["filename"]) == ("blue-heron", 1, 2, result)
    assert row["score"] == row["measured"] == row["tps"]
    inbox = agent.call("GET", "/v1/inbox/blue-heron?expand=true").json()
    assert [item["frontmatter"]["agent"] for item in inbox["items"]] == ["verifier"]
    thread = httpx.get(f"{race.url}/t/{result}").text
    assert "@blue-heron" in thread

    race.stop()
    checked = race.paddock("reindex", "--check")
    assert checked.returncode == 0, checked.stdout


def test_a_verification_leaves_nothing_that_others_can_read_but_its_verdict(race: Race) -> None:
    agent = race.agent("ada", "blue-heron")
    agent.join()
    prefix = agent.upload("honest")
    agent.finished(agent.run(prefix, "runs/first"))
    result = agent.post_result(5.0, 1.2, prefix)
    agent.verdict(result)
    for path in ("/api/buckets/race-admin/tiny-audit", "/api/buckets/race-admin/tiny-audit/tree?recursive=true"):
        assert agent.call("GET", path).status_code == 404
        assert httpx.get(f"{race.url}{path}").status_code == 404
    prompts = (race.data / "private" / "prompts.jsonl").read_text().splitlines()
    secrets = [", ".join(map(str, json.loads(line)["context_token_ids"])) for line in prompts]
    public = [
        httpx.get(f"{race.url}{path}").text
        for path in (
            f"/t/{result}",
            f"/r/{result}",
            "/queue",
            "/v1/jobs?limit=0",
            f"/v1/results/{result}",
            "/api/messages",
        )
    ]
    assert not [text for text in public for secret in secrets if secret in text]


def test_a_token_is_found_in_no_file_of_the_data_folder(race: Race) -> None:
    agent = race.agent("ada", "blue-heron")
    agent.join()
    agent.finished(agent.run(agent.upload("reads_secrets"), "runs/first"))
    race.stop()
    holders = [path for path in race.data.rglob("*") if path.is_file() and agent.token.encode() in path.read_bytes()]
    assert holders == []


def test_a_staged_submission_is_benchmarked_posted_and_verified_by_itself(auto_race: Race) -> None:
    agent = auto_race.agent("ada", "blue-heron")
    agent.join()
    agent.upload("honest")
    rows = eventually(
        lambda: agent.call("GET", "/v1/leaderboard?verification=valid").json()["rows"],
        within_s=180,
        what="a verified row for the staged submission",
    )
    assert [row["agent"] for row in rows] == ["blue-heron"]
    jobs = agent.call("GET", "/v1/jobs?limit=50").json()["items"]
    assert sorted(job["kind"] for job in jobs) == ["benchmark", "draw", "draw"]


def test_kill_9_while_measuring_loses_nothing_and_ends_the_job_once(race: Race) -> None:
    agent = race.agent("ada", "blue-heron")
    agent.join()
    job_id = agent.run(agent.upload("slow"), "runs/first")
    posted = agent.call("POST", "/v1/messages", {"agent_id": "blue-heron", "body": "Before the crash."}).json()
    eventually(lambda: agent.job(job_id)["state"] == "measuring", within_s=60, what="a job that measures")
    assert _servers(), "the model server runs"

    race.stop(signal.SIGKILL)
    eventually(lambda: not _servers(), what="the end of every process of the submission")
    race.start()
    job = agent.finished(job_id)
    assert (job["state"], job["code"]) == ("failed", "worker_lost")
    assert agent.call("GET", f"/v1/messages/{posted['filename']}").json()["body"].strip() == "Before the crash."
    assert agent.file("submissions/blue-heron/mine/serve.py")
    again = agent.finished(agent.run(agent.upload("honest", "two"), "runs/second"))
    assert again["state"] == "completed"
    race.stop()
    assert race.paddock("reindex", "--check").returncode == 0


def test_a_worker_that_dies_is_started_again(race: Race) -> None:
    agent = race.agent("ada", "blue-heron")
    agent.join()
    [worker] = eventually(lambda: _children(race), what="a worker process")
    os.kill(worker, signal.SIGKILL)
    eventually(lambda: _children(race) not in ([], [worker]), what="another worker process")
    assert agent.finished(agent.run(agent.upload("honest"), "runs/first"))["state"] == "completed"


def _children(race: Race) -> list[int]:
    """Processes that `paddock serve` itself started and that still run."""
    assert race.process is not None
    ours = f"PPid:\t{race.process.pid}\n"
    found = []
    for path in Path("/proc").glob("[0-9]*/status"):
        try:
            found += [int(path.parent.name)] if ours in path.read_text() else []
        except OSError:  # it ended while we looked
            continue
    return found


def _servers() -> list[str]:
    """Command lines of every process that serves a submission of these tests."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if b"SERVED_MODEL_NAME=tiny" in path.read_bytes():
                found.append((path.parent / "cmdline").read_text().replace("\0", " "))
        except OSError:  # it ended while we looked
            continue
    return found
