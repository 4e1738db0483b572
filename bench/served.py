"""A running server, a client with an empty bucket, and the figures that a bench of the store prints."""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.e2e.race import Agent, Race, lay_out

HERE = Path(__file__).resolve().parent


@dataclass
class Bench:
    """A folder to work in, a running server and an agent with an empty bucket."""

    folder: Path
    race: Race
    agent: Agent

    def timed(self, command: list[object], home: str, endpoint: str = "") -> tuple[float, str]:
        """Run a command with the client's settings and a cache of its own; return its seconds and what it printed."""
        env = os.environ | {"HF_ENDPOINT": endpoint or self.race.url, "HF_TOKEN": self.agent.token, "NO_COLOR": "1"}
        env |= {
            "HF_HOME": str(self.folder / home),
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_XET_TELEMETRY_ENABLED": "0",
        }
        began = time.perf_counter()
        done = subprocess.run([*map(str, command)], env=env, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - began
        if done.returncode:
            raise SystemExit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return seconds, done.stdout

    def transfer(self, way: str, home: str, address: str, *arguments: object) -> dict[str, Any]:
        """Send or fetch one file; return what that took, beginning with nothing left to be written to the disk."""
        os.sync()
        _, told = self.timed([sys.executable, HERE / "xet_transfer.py", way, address, *arguments], home)
        return dict(json.loads(told.splitlines()[-1]))

    def uri(self, path: str) -> str:
        return f"hf://buckets/{self.agent.bucket}/{path}"


@contextmanager
def bench(parent: Path | None) -> Iterator[Bench]:
    """Serve from a new folder, gone at the end."""
    folder = Path(tempfile.mkdtemp(prefix="storage-", dir=parent))
    try:
        race = lay_out(folder / "race")
        race.start(worker=False)
        try:
            made = Bench(folder, race, race.agent("ada", "blue-heron"))
            made.agent.hf("buckets", "create", made.agent.bucket)
            made.agent.put("warm", "up")
            yield made
        finally:
            race.stop()
    finally:
        shutil.rmtree(folder)


class Watched:
    """A server process, watched from now on."""

    def __init__(self, race: Race, *, is_memory_new: bool = False) -> None:
        """Let the kernel's record of its largest resident size begin anew, unless only its CPU matters."""
        assert race.process
        self._folder = Path("/proc") / str(race.process.pid)
        if is_memory_new:
            (self._folder / "clear_refs").write_text("5")
        self._idle_mb, self._began_s = self._peak_mb(), self._total_s()

    def cpu_s(self) -> float:
        """Return the seconds of CPU that it has taken since."""
        return self._total_s() - self._began_s

    def report(self) -> None:
        """Print what it took since."""
        over_idle = self._peak_mb() - self._idle_mb
        print(f"server: {self.cpu_s():.1f} s of CPU; {self._idle_mb} MB idle")
        figure("server, peak memory over idle", over_idle, "MB", "< 200")

    def _peak_mb(self) -> int:
        status = (self._folder / "status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) // 1000

    def _total_s(self) -> float:
        fields = (self._folder / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def figure(name: str, value: float, unit: str, goal: str = "-") -> None:
    """Print a figure with its goal."""
    print(f"{name:<58} {value:9.3f} {unit:<6} goal {goal}", flush=True)


def noise(file: Path, size: int, seed: object) -> None:
    """Write a file of random bytes, with the folders around it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    source = random.Random(str(seed))
    with file.open("wb") as stream:
        for start in range(0, size, 1 << 24):
            stream.write(source.randbytes(min(1 << 24, size - start)))
