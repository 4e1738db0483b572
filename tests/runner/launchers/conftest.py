"""Fixtures of the launcher's tests: the two ways to serve, and submissions laid out to be served."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runner.launchers.contract import LaunchSpec, Running
from runner.launchers.local import LocalLauncher
from runner.launchers.means import Means
from runner.manifests import parse_manifest
from storage.settings import Settings

Make = Callable[[str], LaunchSpec]
Launch = Callable[[LocalLauncher, LaunchSpec], Running]


@pytest.fixture(params=["sandboxed", "bare"])
def launcher(request: pytest.FixtureRequest, settings: Settings) -> LocalLauncher:
    if request.param == "bare":
        return LocalLauncher(settings, Means(bwrap=None, setpriv=None, is_root=False))
    request.getfixturevalue("sandboxing")
    return LocalLauncher(settings)


@pytest.fixture
def confined(sandboxing: None, settings: Settings) -> LocalLauncher:
    return LocalLauncher(settings)


@pytest.fixture
def make(tmp_path: Path, submission: Callable[[str], Path]) -> Make:
    def build(name: str) -> LaunchSpec:
        folder = submission(name)
        workspace = tmp_path / "work" / name
        workspace.mkdir(parents=True)
        manifest = parse_manifest((folder / "manifest.json").read_bytes())
        return LaunchSpec(run_id=name, user="ada", manifest=manifest, submission=folder, workspace=workspace)

    return build


@pytest.fixture
def launched(make: Make) -> Iterator[Launch]:
    started: list[Running] = []

    def launch(launcher: LocalLauncher, spec: LaunchSpec) -> Running:
        started.append(launcher.launch(spec))
        return started[-1]

    yield launch
    for running in started:
        running.stop()


def go() -> None:
    """Let whoever waits go on."""
