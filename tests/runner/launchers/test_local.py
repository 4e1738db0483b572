"""The launcher's contract, on this machine with a sandbox and without one."""

import json
import socket
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from runner.launchers import cgroups
from runner.launchers.cgroups import Caps
from runner.launchers.contract import JobsDisabled, LaunchSpec, SubmissionFailed
from runner.launchers.lingering import processes_of
from runner.launchers.local import LocalLauncher
from runner.launchers.means import Means
from runner.launchers.ready import is_ready
from runner.launchers.sandboxed import Exposed
from runner.launchers.served import SandboxBroke
from storage.settings import Settings
from tests.runner.conftest import left_behind
from tests.runner.launchers.conftest import Launch, Make, go


def test_an_honest_server_gets_ready_and_nothing_of_it_is_left_after_stop(
    launcher: LocalLauncher, make: Make, launched: Launch, settings: Settings
) -> None:
    spec = make("honest")
    running = launched(launcher, spec)
    assert running.wait_ready(20, go) < 20
    assert running.exit_code() is None
    assert is_ready(running.address, within_s=5)
    running.stop()
    running.stop()
    assert "serving /submission/model" in running.log() or "serving model" in running.log()
    assert not running.address.exists()
    assert not left_behind(settings)


def test_a_server_that_never_answers_is_named_not_ready(
    launcher: LocalLauncher, make: Make, launched: Launch, settings: Settings
) -> None:
    running = launched(launcher, make("never_ready"))
    with pytest.raises(SubmissionFailed) as failed:
        running.wait_ready(1.5, go)
    assert failed.value.code == "server_not_ready"
    assert "loading weights for ever" in failed.value.message
    running.stop()
    assert not left_behind(settings)


def test_a_server_that_dies_is_named_with_its_exit_code_and_last_words(
    launcher: LocalLauncher, make: Make, launched: Launch
) -> None:
    running = launched(launcher, make("dies_at_start"))
    with pytest.raises(SubmissionFailed) as failed:
        running.wait_ready(20, go)
    assert failed.value.code == "server_exited"
    assert "code 7" in failed.value.message
    assert "CUDA out of memory" in failed.value.message
    assert running.exit_code() == 7


def test_a_command_that_is_not_there_is_named(launcher: LocalLauncher, make: Make, launched: Launch) -> None:
    spec = make("honest")
    spec = replace(spec, manifest=spec.manifest.model_copy(update={"serve": ["no-such-program"]}))
    with pytest.raises(SubmissionFailed, match="cannot start 'no-such-program'"):
        launched(launcher, spec).wait_ready(20, go)


def test_waiting_ends_when_the_job_is_to_stop(launcher: LocalLauncher, make: Make, launched: Launch) -> None:
    class CancelledError(Exception):
        pass

    def stop() -> None:
        raise CancelledError

    with pytest.raises(CancelledError):
        launched(launcher, make("never_ready")).wait_ready(60, stop)


def test_a_server_cannot_fill_the_disk_with_its_log(
    settings: Settings, launcher: LocalLauncher, make: Make, launched: Launch
) -> None:
    spec = make("honest")
    (spec.submission / "serve.py").write_text("import sys\nfor n in range(400000): print('line', n)\nsys.exit(3)\n")
    running = launched(launcher, spec)
    with pytest.raises(SubmissionFailed, match="line 399999"):
        running.wait_ready(60, go)
    assert len(running.log()) <= settings.log_tail + 100
    assert "bytes omitted]" in running.log()
    assert running.log().startswith("line 0\n")


def _wheel(folder: Path) -> None:
    with zipfile.ZipFile(folder / "tinydep-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tinydep.py", "WORD = 'from a layer'\n")
        wheel.writestr("tinydep-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tinydep\nVersion: 1.0\n")
        wheel.writestr("tinydep-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("tinydep-1.0.dist-info/RECORD", "")


def _needing(spec: LaunchSpec, *dependencies: str) -> LaunchSpec:
    return replace(spec, manifest=spec.manifest.model_copy(update={"dependencies": list(dependencies)}))


def test_dependencies_are_installed_in_a_stage_of_their_own(
    launcher: LocalLauncher, make: Make, launched: Launch
) -> None:
    spec = _needing(make("honest"), "./tinydep-1.0-py3-none-any.whl")
    _wheel(spec.submission)
    (spec.submission / "serve.py").write_text(
        "import tinydep\nprint(tinydep.WORD, tinydep.__file__)\nimport fake_server\nfake_server.serve()\n"
    )
    assert "tinydep" in launcher.prepare(spec, go)
    running = launched(launcher, spec)
    running.wait_ready(20, go)
    assert "from a layer" in running.log()


def test_a_dependency_that_cannot_be_had_is_named(launcher: LocalLauncher, make: Make) -> None:
    spec = _needing(make("honest"), "./absent-1.0-py3-none-any.whl")
    with pytest.raises(SubmissionFailed) as failed:
        launcher.prepare(spec, go)
    assert failed.value.code == "install_failed"
    assert "absent" in failed.value.message


HOSTILE_BACKEND = """
import os, pathlib
def build_wheel(directory, config_settings=None, metadata_directory=None):
    for place in ("/etc/shadow", {places}):
        try:
            pathlib.Path(place).read_bytes()
            print("SEEN", place, flush=True)
        except OSError as error:
            print("refused", place, flush=True)
    raise SystemExit("uid %d env %s" % (os.getuid(), sorted(os.environ)))
"""


def test_an_installing_package_sees_no_data_and_no_secret(
    confined: LocalLauncher, make: Make, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://user:secret@index.invalid/simple")
    settings.data.mkdir()
    (settings.data / "secret.key").write_text("key")
    spec = _needing(make("honest"), "./hostile")
    package = spec.submission / "hostile"
    package.mkdir()
    places = repr(str(settings.data / "secret.key"))
    (package / "backend.py").write_text(HOSTILE_BACKEND.format(places=places))
    (package / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        '[project]\nname = "hostile"\nversion = "1"\n'
    )
    with pytest.raises(SubmissionFailed) as failed:
        confined.prepare(spec, go)
    assert failed.value.code == "install_failed"
    assert f"uid {settings.sandbox_uid} " in failed.value.message
    assert "SEEN" not in failed.value.message
    assert "secret" not in failed.value.message.replace("secret.key", "")
    assert "HF_TOKEN" not in failed.value.message
    assert not processes_of(settings.sandbox_uid)


def test_a_served_submission_sees_nothing_of_this_machine(
    confined: LocalLauncher, make: Make, launched: Launch, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    private = settings.data / "private" / "prompts.jsonl"
    private.parent.mkdir(parents=True)
    private.write_text("{}")
    bystander = subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait()"])
    spec = make("reads_secrets")
    with socket.create_server(("127.0.0.1", 0)) as outside:
        env = {
            "KIND": "x",
            "LD_PRELOAD": "",
            "PYTHONSTARTUP": "/submission/serve.py",
            "LOOK": f"{private}:{settings.data / 'secret.key'}:{Path(__file__)}:{spec.submission}/serve.py",
            "OUTSIDE_PORT": str(outside.getsockname()[1]),
            "OUTSIDE_PID": str(bystander.pid),
        }
        running = launched(confined, replace(spec, manifest=spec.manifest.model_copy(update={"env": env})))
        running.wait_ready(30, go)
    log = running.log()
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()
    assert "SEEN" not in log
    assert log.count("refused") >= 12, log
    assert f"UID {settings.sandbox_uid} {settings.sandbox_uid} []" in log
    ours = {"MODEL_ID", "SERVED_MODEL_NAME", "HOST", "PORT", "PATH", "HOME", "LANG"}
    seen = next(line for line in log.splitlines() if line.startswith("ENV")).removeprefix("ENV ")
    assert set(json.loads(seen.replace("'", '"'))) - {"LC_CTYPE"} == ours | set(env)
    assert "secret" not in "".join(line for line in log.splitlines() if line.startswith("LISTED"))


def test_without_a_sandbox_only_named_users_are_served(settings: Settings, make: Make) -> None:
    launcher = LocalLauncher(settings, Means(bwrap=None, setpriv="/usr/bin/setpriv", is_root=False))
    assert launcher.refusal("ada") is None
    refusal = launcher.refusal("eve")
    assert refusal is not None
    assert "bubblewrap is not installed" in refusal
    spec = replace(make("honest"), user="eve")
    with pytest.raises(JobsDisabled, match="not root"):
        launcher.launch(spec)
    with pytest.raises(JobsDisabled):
        launcher.prepare(spec, go)
    assert not left_behind(settings)


def test_without_a_server_environment_nobody_is_served(settings: Settings, tmp_path: Path) -> None:
    launcher = LocalLauncher(settings.model_copy(update={"server_env": tmp_path / "absent"}))
    assert "isn't built" in (launcher.refusal("ada") or "")


def test_two_runs_at_once_have_users_of_their_own(
    confined: LocalLauncher, make: Make, launched: Launch, settings: Settings
) -> None:
    first, second = make("honest"), make("usage_lie")
    running = [launched(confined, spec) for spec in (first, second)]
    for one in running:
        one.wait_ready(20, go)
    assert processes_of(settings.sandbox_uid)
    assert processes_of(settings.sandbox_uid + 1)


def test_a_sandbox_that_cannot_be_set_up_is_our_fault_and_no_failure_of_the_submission(
    sandboxing: None, make: Make, launched: Launch, settings: Settings, tmp_path: Path
) -> None:
    broken = tmp_path / "broken-env"
    (broken / "bin").mkdir(parents=True)
    (broken / "pyvenv.cfg").write_text(f"home = {sys.base_prefix}/bin\n")
    running = launched(LocalLauncher(settings.model_copy(update={"server_env": broken})), make("honest"))
    with pytest.raises(SandboxBroke):
        running.wait_ready(20, go)


def test_a_data_folder_that_a_submission_could_read_is_never_exposed(
    sandboxing: None, make: Make, settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "pyvenv.cfg").write_text(f"home = {sys.base_prefix}/bin\n")
    exposing = LocalLauncher(settings.model_copy(update={"server_env": tmp_path}))
    with pytest.raises(Exposed, match="submissions can read"):
        exposing.launch(make("honest"))
    assert not left_behind(settings)


HOGS = {
    "memory": "held = [bytearray(50_000_000) for _ in range(40)]",
    "pids": "import os, threading\nfor _ in range(200):\n    if os.fork() == 0: threading.Event().wait()",
}


@pytest.mark.parametrize("controller", sorted(HOGS))
def test_a_hog_is_stopped_at_its_cap(
    controller: str,
    sandboxing: None,
    make: Make,
    launched: Launch,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if controller in cgroups.missing():
        pytest.skip(f"this machine offers no writable {controller} controller")
    monkeypatch.setattr("runner.launchers.layout.machine_caps", lambda: Caps(memory_bytes=300_000_000, processes=64))
    spec = make("honest")
    (spec.submission / "serve.py").write_text(HOGS[controller] + "\nprint('unstopped', flush=True)\n")
    running = launched(LocalLauncher(settings), spec)
    with pytest.raises(SubmissionFailed) as failed:
        running.wait_ready(30, go)
    assert failed.value.code == "server_exited"
    assert "unstopped" not in running.log()
    if controller == "memory":
        assert running.exit_code() == 137
    running.stop()
    assert not left_behind(settings)
