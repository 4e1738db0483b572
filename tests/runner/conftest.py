"""Fixtures of the runner: fake submissions, an agent who owns them, and what a sandbox needs of this machine."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlmodel import Session

from agents.rows import AgentRow, UserRow
from agents.tokens import Caller
from runner import jobs
from runner.jobs import Launched, Order
from runner.launchers.lingering import processes_of
from runner.launchers.local import LocalLauncher
from runner.launchers.means import find_means
from runner.queue import get_job
from runner.rows import JobRow
from runner.worker import Worker
from storage.buckets import Put
from storage.database import reading, writing
from storage.paths import BucketName
from storage.settings import Settings
from storage.site import Site
from tests.bigram import write_prompts, write_tokenizer

EXPLOITS = Path(__file__).resolve().parent.parent / "exploits"
AGENT = "blue-heron"

CHALLENGE = """
org = "race"
slug = "tiny"
title = "A tiny race"
description = "For tests."
model = "tiny"
hardware = "cpu"
auto_benchmark = true
[harness]
num_prompts = 4
output_tokens = 16
warmup_requests = 1
max_prompt_tokens = 300
request_timeout_s = 3
startup_timeout_s = 4
run_timeout_s = 30
[prompts]
tokenizer = "tokenizer"
public = "public.jsonl"
public_references = "references.jsonl"
private_count = 4
[verification]
draws = 2
"""


@pytest.fixture
def challenge_file(tmp_path: Path) -> Path:
    """A race whose prompts, references and tokenizer fit the fake server's bigram rule."""
    path = tmp_path / "race" / "challenge.toml"
    path.parent.mkdir()
    path.write_text(CHALLENGE)
    write_tokenizer(path.parent / "tokenizer")
    write_prompts(path.parent / "public.jsonl", path.parent / "references.jsonl", salt=0)
    return path


@pytest.fixture(scope="session")
def first_uid() -> Iterator[int]:
    """A range of user ids of this test run alone, whatever else runs on the machine."""
    first = 100_000 + os.getpid() % 10_000 * 64
    yield first
    shutil.rmtree(Path(tempfile.gettempdir()) / f"paddock-{os.geteuid()}-{first}", ignore_errors=True)


@pytest.fixture
def settings(tmp_path: Path, challenge_file: Path, first_uid: int) -> Settings:
    """The machine's settings; submissions are served by the Python that runs these tests."""
    return Settings(
        data=tmp_path / "data",
        challenge=challenge_file,
        tick=0.05,
        lease=3.0,
        server_env=Path(sys.prefix),
        trusted_submitters="ada",
        sandbox_uid=first_uid,
    )


def left_behind(settings: Settings) -> list[int]:
    """List processes of this test's runs: of the range's users, or at work on a file of the test's own folder."""
    ours = str(settings.data.parent)
    found = [pid for number in range(3) for pid in processes_of(settings.sandbox_uid + number)]
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                command = (entry / "cmdline").read_bytes().decode("utf-8", "replace")
                is_ours = ours in command and ("runner.harness" in command or "inside.py" in command)
                found += [int(entry.name)] if is_ours or str((entry / "cwd").readlink()).startswith(ours) else []
        except OSError:
            continue  # it ended while we looked
    return found


def row_of(site: Site, job_id: str) -> JobRow:
    """Read a job as it stands, apart from any session."""
    with reading(site.engine) as session:
        row = get_job(session, job_id)
        session.expunge(row)
        return row


@pytest.fixture
def sandboxing() -> None:
    """Skip, naming what is missing, where no sandbox can be had."""
    if missing := find_means().missing():
        pytest.skip(f"no sandbox on this machine: {', '.join(missing)}")


@pytest.fixture
def submission(tmp_path: Path) -> Callable[[str], Path]:
    """Lay out one of the fake submissions as a folder."""

    def lay_out(name: str) -> Path:
        folder = tmp_path / "submissions" / name
        shutil.copytree(EXPLOITS / name, folder)
        shutil.copy(EXPLOITS / "fake_server.py", folder)
        return folder

    return lay_out


@dataclass
class Owner:
    """An agent of the user `ada` and what it does."""

    site: Site
    caller: Caller
    bucket: BucketName

    def upload(self, name: str, *, to: str | None = None, changes: dict[str, bytes] | None = None) -> str:
        """Put one of the fake submissions into the agent's bucket; return its prefix."""
        prefix = to or f"submissions/{AGENT}/{name}"
        files = {path.name: path.read_bytes() for path in (EXPLOITS / name).glob("*.*")}
        files |= {"fake_server.py": (EXPLOITS / "fake_server.py").read_bytes(), **(changes or {})}
        with writing(self.site.engine) as session:
            puts = [Put(f"{prefix}/{path}", data) for path, data in files.items()]
            self.site.buckets(session).apply(self.bucket, puts)
        return prefix

    def order(self, submission_prefix: str, run_prefix: str = "runs/one", key: str | None = None) -> Launched:
        """Ask for a run."""
        order = Order(AGENT, submission_prefix, run_prefix, idempotency_key=key)
        with writing(self.site.engine) as session:
            launched = jobs.request(self.site, session, self.caller, order, LocalLauncher(self.site.settings).refusal)
            session.flush()
            session.refresh(launched.row)
            session.expunge(launched.row)
            return launched

    def read(self, path: str) -> bytes:
        """Read a file of the agent's bucket."""
        with reading(self.site.engine) as session:
            return self.site.buckets(session).read(self.bucket, path)

    def files(self, prefix: str) -> set[str]:
        """List the names of files in a folder of the agent's bucket."""
        with reading(self.site.engine) as session:
            return {
                file.path.removeprefix(f"{prefix}/") for file in self.site.buckets(session).list(self.bucket, prefix)
            }


def make_owner(site: Site, session: Session) -> Owner:
    """Register the agent, with its bucket and handshake."""
    session.add(UserRow(name="ada", created_at=site.clock()))
    bucket = site.scratch(AGENT)
    site.buckets(session).create(bucket, owner="ada")
    site.buckets(session).apply(bucket, [Put(".bucket-sync-handshake", b"ada\n")])
    agent = AgentRow(
        agent_id=AGENT,
        hf_user="ada",
        model="m",
        harness="h",
        tools=[],
        agent_bucket=str(bucket),
        joined="",
        content_digest="",
    )
    session.add(agent)
    session.flush()
    return Owner(site, Caller(user="ada", token_id="tok_x"), bucket)


@pytest.fixture
def owner(site: Site) -> Owner:
    with writing(site.engine) as session:
        return make_owner(site, session)


@pytest.fixture
def worker(site: Site) -> Worker:
    """The real worker with this machine's launcher."""
    return Worker(site, LocalLauncher(site.settings))
