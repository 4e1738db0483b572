"""A bundled submission that is run as the runner does leaves the acceptance of its drafts in the run's log."""

import json
from pathlib import Path

import pytest

from paddock_stack.launcher.record import LINE
from paddock_stack.submissions.writing import Wanted, write
from runner.launchers.contract import LaunchSpec
from runner.launchers.local import LocalLauncher
from runner.manifests import parse_manifest
from storage.settings import Settings
from tests.runner.stack.conftest import SERVER_ENV

pytestmark = pytest.mark.vllm


def test_log_of_a_run_that_drafts_ends_with_the_acceptance_by_position(
    sandboxing: None, settings: Settings, checkpoints: Path, tmp_path: Path
) -> None:
    folder, workspace = tmp_path / "mine", tmp_path / "work"
    write("exact-mtp", Wanted("mine", model=checkpoints / "text", drafter=checkpoints / "drafter-text"), folder)
    workspace.mkdir()
    for path in (workspace, *folder.rglob("*.safetensors")):  # a snapshot's files are the sandbox's to read, too
        path.chmod(0o755)
    manifest = parse_manifest((folder / "manifest.json").read_bytes())
    spec = LaunchSpec(run_id="r", user="ada", manifest=manifest, submission=folder, workspace=workspace)
    running = LocalLauncher(settings.model_copy(update={"server_env": SERVER_ENV})).launch(spec)
    try:
        running.wait_ready(300, lambda: None)
    finally:
        running.stop()
    lines = [line for line in running.log().splitlines() if line.startswith(LINE)]
    first, last = (json.loads(lines[at].removeprefix(LINE)) for at in (0, -1))
    assert first["acceptance"] is None
    assert last["acceptance"]["drafts"] > 0
    assert len(last["acceptance"]["accepted_share_by_position"]) == 3
