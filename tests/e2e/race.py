"""A whole race on this machine: `paddock serve` as a process, the real `hf` binary, plain HTTP.

A small fake model server (tests/exploits) stands in for vLLM; nothing else is replaced.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.bigram import write_prompts, write_tokenizer
from tests.conftest import eventually

ROOT = Path(__file__).resolve().parent.parent.parent
EXPLOITS = ROOT / "tests" / "exploits"
ENDED = ("completed", "failed", "timed_out", "cancelled")
CHALLENGE = """
org = "race"
slug = "tiny"
title = "A tiny race"
description = "For tests."
model = "tiny"
hardware = "cpu"
auto_benchmark = {auto}
[harness]
num_prompts = 3
output_tokens = 16
warmup_requests = 1
max_prompt_tokens = 2000
request_timeout_s = 20
startup_timeout_s = 60
run_timeout_s = 120
[prompts]
tokenizer = "tokenizer"
public = "public.jsonl"
public_references = "references.jsonl"
private_count = 4
[verification]
draws = 2
claim_band = 0.5
"""


@dataclass
class Race:
    """A data folder with its race, and the server process while there is one."""

    folder: Path
    env: dict[str, str]
    port: int = field(default_factory=lambda: _free_port())
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        """What the server, its worker and its ticks wrote."""
        return self.folder / "serve.log"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def paddock(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "web", *arguments, "--data", str(self.data)]
        command += ["--challenge", str(self.folder / "challenge.toml")]
        return subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=120, check=False)

    def start(self, *, worker: bool = True) -> None:
        command = [sys.executable, "-m", "web", "serve", "--data", str(self.data), "--port", str(self.port)]
        command += [] if worker else ["--no-worker"]
        command += ["--challenge", str(self.folder / "challenge.toml")]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, env=self.env, start_new_session=True, stdout=log, stderr=subprocess.STDOUT
            )
        eventually(self.is_up, within_s=60, what="the server's answer to /v1/healthz")

    def is_up(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, "paddock serve ended at once"
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"{self.url}/v1/healthz").status_code == 200
        return False

    def stop(self, sign: signal.Signals = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(sign)
            self.process.wait(60)
            self.process = None

    def agent(self, user: str, agent_id: str) -> "Agent":
        made = self.paddock("user", "add", user)
        assert made.returncode == 0, made.stderr
        return Agent(self, user, agent_id, made.stdout.strip())


@dataclass
class Agent:
    """An agent with its token, its bucket and the real `hf` binary."""

    race: Race
    user: str
    agent_id: str
    token: str

    @property
    def bucket(self) -> str:
        return f"race/tiny-{self.agent_id}"

    def call(self, method: str, path: str, body: object | None = None) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.request(method, f"{self.race.url}{path}", json=body, headers=headers, timeout=60)

    def hf(self, *arguments: object, check: bool = True) -> "subprocess.CompletedProcess[bytes]":
        home = self.race.folder / f"hf-{self.agent_id}"
        env = {**os.environ, "HF_ENDPOINT": self.race.url, "HF_TOKEN": self.token, "HF_HOME": str(home)}
        env |= {"HF_XET_TELEMETRY_ENABLED": "0", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "NO_COLOR": "1"}
        command = [str(Path(sys.executable).parent / "hf"), *map(str, arguments)]
        done = subprocess.run(command, env=env, capture_output=True, timeout=120, check=False)
        assert not check or done.returncode == 0, (done.stdout + done.stderr).decode()
        return done

    def put(self, path: str, text: str) -> str:
        file = self.race.folder / "upload"
        file.write_text(text)
        uri = f"hf://buckets/{self.bucket}/{path}"
        self.hf("buckets", "cp", file, uri)
        return uri

    def join(self) -> None:
        self.hf("buckets", "create", self.bucket)
        self.put(".bucket-sync-handshake", self.user)
        answer = self.call(
            "POST", "/v1/agents/register", {"agent_id": self.agent_id, "model": "m", "harness": "pytest"}
        )
        assert answer.status_code == 201, answer.text

    def upload(self, exploit: str, name: str = "mine") -> str:
        folder = self.race.folder / exploit
        shutil.copytree(EXPLOITS / exploit, folder, dirs_exist_ok=True)
        shutil.copy(EXPLOITS / "fake_server.py", folder)
        prefix = f"submissions/{self.agent_id}/{name}"
        self.hf("buckets", "sync", folder, f"hf://buckets/{self.bucket}/{prefix}")
        return prefix

    def run(self, prefix: str, run_prefix: str) -> str:
        body = {"agent_id": self.agent_id, "submission_prefix": prefix, "run_prefix": run_prefix}
        answer = self.call("POST", "/v1/jobs:run", body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["job_id"])

    def job(self, job_id: str) -> dict[str, Any]:
        return dict(self.call("GET", f"/v1/jobs/{job_id}").json())

    def finished(self, job_id: str) -> dict[str, Any]:
        def ended() -> dict[str, Any] | None:
            job = self.job(job_id)
            return job if job["state"] in ENDED else None

        job = eventually(ended, within_s=120, what=f"the end of {job_id}")
        assert job is not None
        return job

    def file(self, path: str) -> bytes:
        return self.hf("buckets", "cp", f"hf://buckets/{self.bucket}/{path}", "-").stdout

    def post_result(self, tps: float, ppl: float, prefix: str) -> str:
        text = f"---\ntps: {tps:.3f}\nppl: {ppl:.4f}\nmethod: fake\nstatus: agent-run\ndescription: a fake\n"
        source = self.put(
            f"results/{prefix.replace('/', '-')}.md",
            f"{text}submission: hf://buckets/{self.bucket}/{prefix}\n---\nMeasured.\n",
        )
        answer = self.call("POST", "/v1/results", {"source": source})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["filename"])

    def verdict(self, result: str) -> dict[str, Any]:
        def decided() -> dict[str, Any] | None:
            record = self.call("GET", f"/v1/results/{result}").json()
            return record if record["verification"] != "pending" else None

        record = eventually(decided, within_s=180, what=f"the verdict on {result}")
        assert record is not None
        return record


def lay_out(folder: Path, *, auto: bool = False) -> Race:
    """Write the race's files and the private reference records that its operator would make."""
    folder.mkdir(exist_ok=True)
    write_tokenizer(folder / "tokenizer")
    (folder / "challenge.toml").write_text(CHALLENGE.format(auto=str(auto).lower()))
    write_prompts(folder / "public.jsonl", folder / "references.jsonl", salt=0)
    private = folder / "data" / "private"
    private.mkdir(parents=True)
    write_prompts(private / "prompts.jsonl", private / "references.jsonl", salt=17)
    env = {**os.environ, "PADDOCK_SERVER_ENV": sys.prefix, "PADDOCK_TICK": "0.1", "PADDOCK_LEASE": "4"}
    env |= {"PADDOCK_STAGED_SETTLE": "0.5", "PADDOCK_TRUSTED_SUBMITTERS": "ada,bob"}
    return Race(folder, env)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
