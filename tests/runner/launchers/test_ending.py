"""How a run ends, on this machine with a sandbox and without one: its last words, and that nothing of it is left."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runner.launchers.contract import LaunchSpec, SubmissionFailed
from runner.launchers.lingering import processes_of
from runner.launchers.local import LocalLauncher
from runner.launchers.ready import is_ready
from storage.settings import Settings
from tests.conftest import eventually
from tests.runner.conftest import left_behind
from tests.runner.launchers.conftest import Launch, Make, go

TOLD_TO_END = (
    "import signal, sys, threading\n"
    "def end(*_):\n"
    "    print('drafted 7, accepted 5', flush=True)\n"
    "    {then}\n"
    "signal.signal(signal.SIGTERM, end)\n"
    "import fake_server\nfake_server.serve()\n"
)


def _told_to_end(spec: LaunchSpec, then: str) -> LaunchSpec:
    (spec.submission / "serve.py").write_text(TOLD_TO_END.format(then=then))
    return spec


def test_last_words_of_a_server_that_is_stopped_are_in_its_log(
    launcher: LocalLauncher, make: Make, launched: Launch, settings: Settings
) -> None:
    running = launched(launcher, _told_to_end(make("honest"), "sys.exit(0)"))
    running.wait_ready(20, go)
    running.stop()
    assert running.log().endswith("-- the run is over: the server is told to end --\ndrafted 7, accepted 5\n")
    assert not left_behind(settings)


def test_a_server_that_does_not_end_when_told_is_killed(
    launcher: LocalLauncher, make: Make, launched: Launch, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.launchers.layout.FAREWELL_S", 1.0)
    running = launched(launcher, _told_to_end(make("honest"), "return"))
    running.wait_ready(20, go)
    running.stop()
    assert "drafted 7" in running.log()
    assert not left_behind(settings)


def test_daemons_end_with_the_run(confined: LocalLauncher, make: Make, launched: Launch, settings: Settings) -> None:
    spec = make("honest")
    (spec.submission / "serve.py").write_text(
        "import os, threading\n"
        "for _ in range(20):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        threading.Event().wait()\n"
        "import fake_server\nfake_server.serve()\n"
    )
    running = launched(confined, spec)
    running.wait_ready(20, go)
    assert len(processes_of(settings.sandbox_uid)) >= 21
    running.stop()
    assert processes_of(settings.sandbox_uid) == []


STRAYS = (
    "import os, sys, threading\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    if os.fork() == 0:\n"
    "        os.setsid()\n"
    "        threading.Event().wait()\n"
    "    os._exit(0)\n"
)


@pytest.mark.parametrize("end", ["import fake_server\nfake_server.serve()\n", "sys.exit(7)\n"])
def test_what_left_its_session_and_lost_its_parent_ends_with_the_run(
    end: str, launcher: LocalLauncher, make: Make, launched: Launch, settings: Settings
) -> None:
    spec = make("honest")
    (spec.submission / "serve.py").write_text(STRAYS + end)
    running = launched(launcher, spec)
    eventually(lambda: running.exit_code() is not None or is_ready(running.address, within_s=1), what="a first sign")
    running.stop()
    assert not left_behind(settings)


def test_children_of_a_server_that_died_end_with_the_run(
    launcher: LocalLauncher, make: Make, launched: Launch, settings: Settings
) -> None:
    spec = make("honest")
    (spec.submission / "serve.py").write_text(
        "import os, sys, threading\nif os.fork() == 0: threading.Event().wait()\nsys.exit(7)\n"
    )
    running = launched(launcher, spec)
    with pytest.raises(SubmissionFailed, match="code 7"):
        running.wait_ready(20, go)
    running.stop()
    assert not left_behind(settings)


OWNER = """
import sys
from pathlib import Path
from runner.launchers import layout
from runner.launchers.contract import LaunchSpec
from runner.launchers.local import LocalLauncher
from runner.launchers.means import Means, find_means
from runner.manifests import parse_manifest
from storage.settings import Settings
folder, work, data = map(Path, sys.argv[1:4])
layout.FAREWELL_S = 600.0
settings = Settings(data=data, server_env=Path(sys.prefix), trusted_submitters="ada", sandbox_uid=int(sys.argv[5]))
means = find_means() if sys.argv[4] == "sandboxed" else Means(None, None, False)
manifest = parse_manifest((folder / "manifest.json").read_bytes())
launcher = LocalLauncher(settings, means)
running = launcher.launch(LaunchSpec(run_id="r", user="ada", manifest=manifest, submission=folder, workspace=work))
running.wait_ready(20, lambda: None)
print("ready", flush=True)
import threading
threading.Event().wait()
"""


@pytest.mark.parametrize("way", ["sandboxed", "bare"])
def test_killing_the_worker_ends_every_process_of_the_run(
    way: str, make: Make, settings: Settings, request: pytest.FixtureRequest
) -> None:
    if way == "sandboxed":
        request.getfixturevalue("sandboxing")
    spec = _told_to_end(make("honest"), "return")  # nobody waits for its last words
    command = [
        sys.executable,
        "-c",
        OWNER,
        str(spec.submission),
        str(spec.workspace),
        str(settings.data),
        way,
        str(settings.sandbox_uid),
    ]
    owner = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3])
    assert owner.stdout is not None
    with owner.stdout:
        assert owner.stdout.readline() == b"ready\n"
        assert left_behind(settings)
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait()
    eventually(lambda: not left_behind(settings), within_s=10, what="the end of the server")
