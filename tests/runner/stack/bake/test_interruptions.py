"""A bake that is killed, runs out of disk or meets another; and how much memory it takes."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from paddock_stack.bake.baking import Route, bake
from paddock_stack.bake.building import Building
from paddock_stack.bake.steps.drop_layers import DropLayers
from paddock_stack.bake.verification import verify
from paddock_stack.refusals import Refused
from tests.runner.stack.bake.checkpoints import arrays, text_config, write_checkpoint
from tests.runner.stack.bake.test_baking import Silent

SOURCES = Path(__file__).resolve().parents[4] / "runner/stack/src"
DROP = DropLayers((0, 7, 8))
# Stops for ever once the third weights file has begun, so that a kill always finds the same state.
STALLING = """
import signal, sys
from pathlib import Path
from paddock_stack.bake.baking import Route, bake
from paddock_stack.bake.steps.drop_layers import DropLayers

class Stalling:
    def __init__(self, total): pass
    def add(self, count, what):
        if what.startswith("model-00003"):
            print("stalled", flush=True)
            signal.pause()

source, out = map(Path, sys.argv[1:])
bake([DropLayers((0, 7, 8))], Route(source, out), shard_bytes=100_000, make_progress=Stalling)
"""
# Prints the peak of its own memory in kilobytes; getrusage would count what the process that forked it had.
MEASURED = """
import re, sys
from paddock_stack.cli import main
status = main(sys.argv[1:])
print("peak", re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1])
sys.exit(status)
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "in", text_config(), arrays(text_config()))


def python(code: str, *words: str) -> list[str]:
    return [sys.executable, "-c", code, *words]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SOURCES)}


def test_a_killed_bake_goes_on_where_it_was_and_ends_the_same(source: Path, tmp_path: Path) -> None:
    out, building = tmp_path / "out", tmp_path / "out.baking"
    command = python(STALLING, str(source), str(out))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "stalled\n"
        process.kill()
    assert not out.exists()
    finished = sorted(building.glob("*.safetensors"))
    before = {path.name: path.stat().st_ino for path in finished}
    assert len(finished) == 2
    assert len(list(building.glob("*.part"))) == 1
    bake([DROP], Route(source, out), shard_bytes=100_000, make_progress=Silent)
    assert {name: (out / name).stat().st_ino for name in before} == before  # taken over, not written again
    verify(out)
    bake([DROP], Route(source, tmp_path / "other"), shard_bytes=100_000, make_progress=Silent)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == {
        path.name: path.read_bytes() for path in (tmp_path / "other").iterdir()
    }
    assert not building.exists()


def test_a_kill_right_after_the_last_rename_leaves_a_sound_bake(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    bake([DROP], Route(source, out), make_progress=Silent)
    (out / ".state.json").write_text("{}")  # what such a kill leaves
    verify(out)
    assert not bake([DROP], Route(source, out), make_progress=Silent)[0].is_new


@pytest.mark.long
def test_kills_at_any_moment_never_show(source: Path, tmp_path: Path) -> None:
    bake([DROP], Route(source, tmp_path / "other"), shard_bytes=30_000, make_progress=Silent)
    expected = {path.name: path.read_bytes() for path in (tmp_path / "other").iterdir()}
    options = ["--layers", "0,7,8", "--shard-gb", "0.00003"]
    killed, random = 0, Random(7)
    for number in range(10):
        out = tmp_path / f"out-{number}"
        command = [sys.executable, "-m", "paddock_stack.cli", "bake", "drop-layers", str(source), str(out), *options]
        for patience_s in (random.uniform(0.1, 3), random.uniform(0.1, 3), None):
            with subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL) as process:
                try:
                    process.wait(patience_s)
                except subprocess.TimeoutExpired:
                    process.kill()
                    killed += 1
            assert not out.exists() or {path.name for path in out.iterdir()} - {".state.json"} == set(expected)
        assert {path.name: path.read_bytes() for path in out.iterdir() if path.name in expected} == expected
        assert not out.with_name(out.name + ".baking").exists()
    print(f"killed {killed} times over 10 bakes; every one ended with the same bytes")
    assert killed > 0


def test_an_unfinished_bake_of_another_plan_is_not_mixed_in(source: Path, tmp_path: Path) -> None:
    building = tmp_path / "out.baking"
    building.mkdir()
    (building / ".state.json").write_text(json.dumps({"plan": "another", "shards": {}}))
    (building / "model.safetensors").write_text("half of something else")
    with pytest.raises(Refused, match="another plan; --discard"):
        bake([DROP], Route(source, tmp_path / "out"), make_progress=Silent)
    assert (building / "model.safetensors").exists()
    bake([DROP], Route(source, tmp_path / "out"), make_progress=Silent, discard=True)
    verify(tmp_path / "out")


def test_two_bakes_of_one_output_don_t_meet(source: Path, tmp_path: Path) -> None:
    with Building(tmp_path / "out", "plan"), pytest.raises(Refused, match="another bake is writing"):
        bake([DROP], Route(source, tmp_path / "out"), make_progress=Silent)


class Changing(Silent):
    """Append to the input while it is read."""

    path = Path()

    def add(self, count: int, what: str) -> None:
        super().add(count, what)
        with self.path.open("ab") as file:
            file.write(b"x")


def test_an_input_that_changes_meanwhile_is_noticed(source: Path, tmp_path: Path) -> None:
    Changing.path = source / "model.safetensors"
    with pytest.raises(Refused, match="was changed while it was read"):
        bake([DROP], Route(source, tmp_path / "out"), make_progress=Changing)
    assert not (tmp_path / "out").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount four megabytes of memory as a disk."""
    place = tmp_path / "disk"
    place.mkdir()
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("SKIPPED: only root can mount a small disk to fill")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)], check=False)
    if mounted.returncode != 0:
        pytest.skip("SKIPPED: this machine lets nobody mount a small disk to fill")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_too_little_space_is_refused_before_the_first_byte(source: Path, small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(bytes(3_500_000))
    with pytest.raises(Refused, match=r"has \d+ bytes free, but the bake needs \d+"):
        bake([DROP], Route(source, small_disk / "out"), make_progress=Silent)
    assert [path.name for path in small_disk.iterdir()] == ["ballast"]


class Filling(Silent):
    """Fill the disk as soon as the weights file named `at` has begun."""

    disk = Path()
    at = ""

    def add(self, count: int, what: str) -> None:
        super().add(count, what)
        if what.startswith(self.at) and not (self.disk / "ballast").exists():
            seen = os.statvfs(self.disk)
            (self.disk / "ballast").write_bytes(bytes(seen.f_bavail * seen.f_frsize))


@pytest.mark.parametrize(("shard_bytes", "at", "kept"), [(10**9, "model", 0), (100_000, "model-00003", 2)])
def test_a_disk_that_fills_leaves_whole_files_or_nothing(
    source: Path, small_disk: Path, shard_bytes: int, at: str, kept: int
) -> None:
    Filling.disk, Filling.at = small_disk, at
    out = small_disk / "out"
    stays = f"{kept} finished files stay" if kept else "nothing stays"
    with pytest.raises(Refused, match=f"No space left on device; {stays} in {out}.baking; run again to go on"):
        bake([DROP], Route(source, out), shard_bytes=shard_bytes, make_progress=Filling)
    assert not out.exists()
    assert len(list(small_disk.glob("out.baking/model-*"))) == kept
    assert not list(small_disk.glob("out.baking/*.part"))
    assert (small_disk / "out.baking").exists() == (kept > 0)
    (small_disk / "ballast").unlink()
    bake([DROP], Route(source, out), shard_bytes=shard_bytes, make_progress=Silent)
    verify(out)


def test_memory_stays_bounded_whatever_the_tensor(tmp_path: Path) -> None:
    source, words = tmp_path / "in", 1_200_000  # 0.92 GB of table, 0.15 GB of embedding, all holes
    text = text_config(vocab_size=words, vocab_size_per_layer_input=words)
    write_checkpoint(source, text, arrays(text_config()))
    _grow(source / "model.safetensors", words)
    assert (source / "model.safetensors").stat().st_size > 1.07e9
    words_of_step = ["bake", "drop-layers", str(source), str(tmp_path / "out"), "--layers", "0,1,2,3,6,7,8,9,10"]
    chain = ["--then", "untie-head", "--bits", "4"]
    done = subprocess.run(python(MEASURED, *words_of_step, *chain), capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr
    peak_kb = int(done.stdout.rpartition("peak ")[2])
    assert peak_kb < 256 * 1024
    shutil.rmtree(tmp_path / "out")


def _grow(path: Path, words: int) -> None:
    """Make the two embeddings of the file `words` rows long by holes, which take no disk."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header, position = json.loads(content[8 : 8 + length]), 0
    for name, entry in header.items():
        if name.startswith("model.embed_tokens"):
            entry["shape"][0] = words
        count = 1
        for size in entry["shape"]:
            count *= size
        entry["data_offsets"] = [position, position + count * 2]
        position += count * 2
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + position)
