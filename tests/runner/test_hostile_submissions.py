"""What a submission can make of itself so that the runner fails: it is named as the submission's fault, or refused."""

import json
import subprocess
from pathlib import Path

import pytest

from runner.jobs import RunPrefixInUse
from runner.launchers import dependencies, trees
from runner.manifests import BadManifest
from runner.rows import JobRow
from runner.worker import Worker
from storage.buckets import NameTaken
from storage.errors import InvalidPath
from storage.site import Site
from tests.runner.conftest import AGENT, EXPLOITS, Owner, left_behind, row_of

PROJECT = (
    '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    '[project]\nname = "hostile"\nversion = "1"\n'
)


def _manifest(**fields: object) -> bytes:
    honest = json.loads((EXPLOITS / "honest/manifest.json").read_text())
    return json.dumps({**honest, **fields}).encode()


def _run(site: Site, owner: Owner, worker: Worker, changes: dict[str, bytes]) -> JobRow:
    job = owner.order(owner.upload("honest", changes=changes))
    assert worker.run_one() == job.row.id
    assert not left_behind(site.settings)
    assert list((site.settings.data / "work").iterdir()) == []
    return row_of(site, job.row.id)


def _installing(body: str) -> dict[str, bytes]:
    backend = f"import os\ndef build_wheel(directory, config_settings=None, metadata_directory=None):\n{body}"
    return {
        "manifest.json": _manifest(dependencies=["./hostile"]),
        "hostile/backend.py": backend.encode(),
        "hostile/pyproject.toml": PROJECT.encode(),
    }


def test_a_name_that_no_disk_can_hold_is_refused_before_anything_is_spent(owner: Owner) -> None:
    with pytest.raises(InvalidPath, match="255 bytes"):
        owner.order(owner.upload("honest", changes={"x" * 256: b"1"}))
    long_model = {"manifest.json": _manifest(model_id="\U0001f40e" * 64)}
    with pytest.raises(BadManifest, match=r"wrong at model_id: .* 255 bytes"):
        owner.order(owner.upload("honest", to=f"submissions/{AGENT}/model", changes=long_model))
    assert owner.order(owner.upload("honest", to=f"submissions/{AGENT}/sound")).quota.agent_remaining == 4


@pytest.mark.parametrize("name", ["a\x85b", "a\u2028b", "\u202etxet", "a\ufeffb", "\x1b[31m", "a\tb"])
def test_a_name_that_breaks_its_line_or_hides_text_is_refused(name: str, owner: Owner) -> None:
    with pytest.raises(BadManifest, match="wrong at name"):
        owner.order(owner.upload("honest", changes={"manifest.json": _manifest(name=name)}))


def test_a_run_prefix_that_leaves_no_room_for_its_files_is_refused(owner: Owner) -> None:
    with pytest.raises(InvalidPath, match="900 bytes"):
        owner.order(owner.upload("honest"), "r" * 901)


@pytest.mark.parametrize("other", ["runs/a", "runs/a/b", "runs/a/b/c/d"])
def test_run_folders_never_lie_inside_each_other(other: str, owner: Owner) -> None:
    prefix = owner.upload("honest")
    first = owner.order(prefix, "runs/a/b").row.id
    with pytest.raises(RunPrefixInUse) as refused:
        owner.order(prefix, other)
    assert refused.value.hint == first
    for apart in ("runs/a/bc", "runs/a_b", "runs/a/%"):
        owner.order(prefix, apart)
    with pytest.raises(NameTaken):
        owner.order(prefix, "runs/A/b")


def test_a_layer_deeper_than_any_stack_is_named_and_removed(site: Site, owner: Owner, worker: Worker) -> None:
    deep = '    os.chdir("/layer")\n    for _ in range(3000):\n        os.mkdir("d")\n        os.chdir("d")\n'
    row = _run(site, owner, worker, _installing(deep + '    raise SystemExit("dug")\n'))
    assert (row.fault, row.code) == ("submission", "install_failed")
    assert "dug" in row.message


def test_what_a_killed_worker_left_never_keeps_the_next_one_from_starting(site: Site, worker: Worker) -> None:
    left = site.settings.data / "work" / "job_gone"
    left.mkdir(parents=True)
    trees_deep = 'cd "$1" && i=0; while [ $i -lt 1500 ]; do mkdir d; cd -P d; i=$((i+1)); done'
    _shell(trees_deep, left)
    worker.sweep()
    assert not left.exists()


FILLS = {
    "many files": '    for n in range(2000): os.mkdir(f"/layer/{n}")\n',
    "large files": '    open("/layer/large", "wb").write(bytes(30_000_000))\n',
    "deleted but open files": (
        '    held = open("/layer/held", "wb")\n    os.unlink("/layer/held")\n    held.write(bytes(200_000_000))\n'
        "    held.flush()\n"
    ),
}


@pytest.mark.parametrize("how", sorted(FILLS))
@pytest.mark.parametrize("goes_on", [True, False])
def test_an_installing_package_that_fills_the_disk_is_stopped(
    how: str, goes_on: bool, site: Site, owner: Owner, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dependencies, "MOST_ENTRIES", 1000)
    monkeypatch.setattr(dependencies, "MOST_BYTES", 20_000_000)
    monkeypatch.setattr(dependencies, "LEAST_FREE_BYTES", trees.free_bytes(site.settings.data) - 100_000_000)
    tail = "    import threading\n    threading.Event().wait()\n" if goes_on else '    raise SystemExit("full")\n'
    row = _run(site, owner, worker, _installing(FILLS[how] + tail))
    assert (row.fault, row.code) == ("submission", "install_failed")
    if goes_on:
        assert any(words in row.message for words in ("files", "wrote more than", "left less than"))


def test_a_disk_that_is_full_already_is_our_fault(
    site: Site, owner: Owner, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dependencies, "LEAST_FREE_BYTES", 10**18)
    row = _run(site, owner, worker, _installing("    pass\n"))
    assert (row.fault, row.code) == ("ours", "runner_error")


DAEMON = (
    "    import signal, threading\n    if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0:\n"
    "            signal.signal(signal.SIGTERM, signal.SIG_IGN)\n{first}            threading.Event().wait()\n"
    '        os._exit(0)\n    raise SystemExit("left a daemon")\n'
)


@pytest.mark.parametrize("first", ["", "            os.closerange(0, 100)\n"])
def test_a_daemon_of_the_installing_stage_ends_with_it(
    first: str, site: Site, owner: Owner, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dependencies, "MOST_SECONDS", 3.0)
    row = _run(site, owner, worker, _installing(DAEMON.format(first=first)))
    assert (row.fault, row.code) == ("submission", "install_failed")


@pytest.mark.parametrize("line", [" -e /", "@ file:///etc/shadow", "-r/etc/shadow", "\u2010e /", "./../../etc"])
def test_a_requirement_that_is_something_else_installs_nothing(
    line: str, site: Site, owner: Owner, worker: Worker
) -> None:
    try:
        row = _run(site, owner, worker, {"manifest.json": _manifest(dependencies=[line])})
    except BadManifest:
        return
    assert (row.fault, row.code) == ("submission", "install_failed")
    assert "root:" not in row.message
    assert b"root:" not in owner.read("runs/one/job_logs.txt")


def _shell(script: str, folder: Path) -> None:
    subprocess.run(["/bin/sh", "-c", script, "sh", str(folder)], check=True)
