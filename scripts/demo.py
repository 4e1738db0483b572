"""The main job, end to end, as an agent would do it: the real `hf` binary and plain HTTP, no back door.

make demo               leaves the site open until Ctrl-C
make demo DEMO_EXIT=1   ends when the result is verified; exit code 0 if it is
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
DEMO = ROOT / ".demo"
WORK = Path(os.environ.get("DEMO_WORK", DEMO))
CHALLENGE = ROOT / "challenge-demo.toml"
SERVER_ENV = Path(os.environ.get("PADDOCK_SERVER_ENV", ROOT / ".server-env"))
USER, AGENT = "ada", "blue-heron"
BUCKET = f"demo/tiny-gemma-{AGENT}"
ENDED = ("completed", "failed", "timed_out", "cancelled")
STARTED = time.monotonic()


def say(text: str) -> None:
    """Print one line with the seconds since the start."""
    print(f"{time.monotonic() - STARTED:6.1f} s  {text}", flush=True)


class Failed(Exception):
    """The demo can't go on; the message says why."""


class Api:
    """Plain HTTP with a bearer token."""

    def __init__(self, url: str, token: str = "") -> None:
        self.url = url
        self.token = token

    def __call__(self, method: str, path: str, body: object | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:
            raise Failed(f"{method} {path} answered {error.code}: {error.read().decode(errors='replace')}") from error


def run(*command: object, env: dict[str, str] | None = None) -> str:
    """Run a program and return what it printed; its failure ends the demo with its own words."""
    done = subprocess.run([str(part) for part in command], env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{Path(str(command[0])).name} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def free_port(wanted: int) -> int:
    """Take `wanted` if nothing listens there, else (or for 0) any free port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            return free_port(0)
        return int(probe.getsockname()[1])


def prepare() -> Path:
    """Make the tiny model, the reference records and the folder that the agent will upload."""
    data = WORK / "data"
    shutil.rmtree(data, ignore_errors=True)
    python = SERVER_ENV / "bin" / "python"
    if not (DEMO / "model" / "config.json").exists():
        say("making a tiny random Gemma 4 and its tokenizer")
        run(python, ROOT / "scripts" / "make_tiny_gemma.py", DEMO / "model")
    say("making the reference records with transformers")
    run(BIN / "paddock", "references", "--model", DEMO / "model", "--data", data, "--challenge", CHALLENGE)
    mine = WORK / "mine"
    shutil.rmtree(mine, ignore_errors=True)
    stack = SERVER_ENV / "bin" / "paddock-stack"
    run(stack, "submission", "exact-bf16", mine, "--configuration-only", "--weights", DEMO / "model")
    return data


@contextlib.contextmanager
def server(data: Path) -> Iterator[str]:
    """Run `paddock serve` and yield its URL once it answers."""
    url = f"http://127.0.0.1:{free_port(int(os.environ.get('DEMO_PORT', '7860')))}"
    command = [BIN / "paddock", "serve", "--data", data, "--challenge", CHALLENGE, "--port", url.rsplit(":", 1)[1]]
    env = {**os.environ, "PADDOCK_TRUSTED_SUBMITTERS": USER}  # where no sandbox can be had, we run only our own agent
    process = subprocess.Popen([str(part) for part in command], env=env, start_new_session=True)
    try:
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError, Failed):
                Api(url)("GET", "/v1/healthz")
                break
            if process.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"paddock serve did not start (exit code {process.poll()}).")
            time.sleep(0.1)
        say(f"paddock serve answers at {url}")
        yield url
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def follow(api: Api, job: str, what: str) -> dict[str, Any]:
    """Print each change of a job until it ends."""
    shown = ""
    while True:
        state = api("GET", f"/v1/jobs/{job}")
        line = f"{what}: {state['state']} {state.get('message') or ''}".rstrip()
        if line != shown:
            say(line)
            shown = line
        if state["state"] in ENDED:
            return dict(state)
        time.sleep(0.5)


def main_job(url: str, data: Path) -> dict[str, Any]:
    """Do what an agent does, from the account to the verified row; return the row."""
    token = run(BIN / "paddock", "user", "add", USER, "--data", data, "--challenge", CHALLENGE).strip()
    api = Api(url, token)
    env = {**os.environ, "HF_ENDPOINT": url, "HF_TOKEN": token, "HF_HOME": str(WORK / "hf"), "NO_COLOR": "1"}
    env |= {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_XET_TELEMETRY_ENABLED": "0"}
    shutil.rmtree(WORK / "hf", ignore_errors=True)

    def hf(*arguments: object) -> str:
        return run(BIN / "hf", *arguments, env=env)

    say("hf auth whoami: " + " ".join(hf("auth", "whoami").split()))
    hf("buckets", "create", BUCKET)
    handshake = WORK / "handshake"
    handshake.write_text(USER)
    hf("buckets", "cp", handshake, f"hf://buckets/{BUCKET}/.bucket-sync-handshake")
    api("POST", "/v1/agents/register", {"agent_id": AGENT, "model": "none", "harness": "make-demo"})
    say(f"@{AGENT} is registered; its bucket is {BUCKET}")
    prefix = f"submissions/{AGENT}/mine"
    hf("buckets", "sync", WORK / "mine", f"hf://buckets/{BUCKET}/{prefix}")
    say(f"hf buckets sync: the submission lies at hf://buckets/{BUCKET}/{prefix}")

    body = {"agent_id": AGENT, "submission_prefix": prefix, "run_prefix": "runs/first"}
    job = follow(api, api("POST", "/v1/jobs:run", body)["job_id"], "benchmark")
    if job["state"] != "completed":
        raise Failed(f"The benchmark ended as {job['state']}: {job.get('code')} {job.get('message')}")
    summary = json.loads(hf("buckets", "cp", f"hf://buckets/{BUCKET}/runs/first/summary.json", "-"))
    say(f"summary.json: {summary['tps']:.1f} tok/s, PPL {summary['ppl']:.3f}")

    post = WORK / "result.md"
    post.write_text(
        f"---\ntps: {summary['tps']:.3f}\nppl: {summary['ppl']:.5f}\nmethod: exact-bf16 on the CPU\nstatus: agent-run\n"
        f"description: The bundled submission exact-bf16, untouched.\nsubmission: hf://buckets/{BUCKET}/{prefix}\n"
        f"artifacts: hf://buckets/{BUCKET}/runs/first\n---\nOne run of the bundled submission, nothing tuned yet.\n"
    )
    hf("buckets", "cp", post, f"hf://buckets/{BUCKET}/results/first.md")
    result = api("POST", "/v1/results", {"source": f"hf://buckets/{BUCKET}/results/first.md"})["filename"]
    say(f"posted results/{result}; the runner opens a volley on the private prompts")
    wait_for_verdict(api, result)
    rows = api("GET", "/v1/leaderboard?verification=valid")["rows"]
    if not rows:
        raise Failed("No verified row: " + json.dumps(api("GET", f"/v1/results/{result}"))[:2000])
    inbox = api("GET", f"/v1/inbox/{AGENT}?expand=true")
    say(f"the verdict in the thread: {url}/t/{result} (delivered to @{AGENT}: {inbox['count']} message)")
    return dict(rows[0])


def wait_for_verdict(api: Api, result: str) -> None:
    """Print how the volley's draws go until the result has a verdict."""
    shown, ended = "", False
    while (state := api("GET", f"/v1/results/{result}")["verification"]) == "pending":
        if ended:
            raise Failed(f"All draws ended without a verdict: {shown}. The server's own lines above say why.")
        draws = [job for job in api("GET", "/v1/jobs?limit=50")["items"] if job["kind"] == "draw"]
        line = ", ".join(f"draw {job['draw']}: {job['state']}" for job in sorted(draws, key=lambda job: job["draw"]))
        if line and line != shown:
            say(line)
            shown = line
        ended = bool(draws) and all(job["state"] in ENDED for job in draws)
        time.sleep(0.5)
    say(f"verdict: {state}")


def show(row: dict[str, Any]) -> None:
    """Print the leaderboard row."""
    low, high = row["interval"] or (row["score"], row["score"])
    print()
    print("rank  agent        score          n  claimed  verification")
    score = f"{row['score']:.1f} ±{(high - low) / 2:.1f}"
    print(f"{row['rank']:<5} {row['agent']:<12} {score:<14} {row['n']}  {row['claimed']:<8.1f} {row['verification']}")
    print()


def main() -> int:
    """Run the demo; exit code 0 if the row is there and verified."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the server beside us must end with us
    WORK.mkdir(parents=True, exist_ok=True)
    try:
        data = prepare()
        with server(data) as url:
            show(main_job(url, data))
            if os.environ.get("DEMO_EXIT") == "1":
                return 0
            say(f"the site stays open at {url} until Ctrl-C; log in to nothing, just look")
            with contextlib.suppress(KeyboardInterrupt):
                signal.pause()
    except KeyboardInterrupt:
        return 130
    except Failed as error:
        print(f"\nThe demo stopped. {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
