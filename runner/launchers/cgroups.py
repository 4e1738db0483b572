"""Memory and process caps for one run, wherever a writable controller is found: cgroup v1, v2 or neither."""

import os
from dataclasses import dataclass, field
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_FAMILY = "paddock"


@dataclass(frozen=True)
class Caps:
    """What a run may use at most."""

    memory_bytes: int
    processes: int


@dataclass
class Group:
    """The groups of one run: one folder under v2, one per controller under v1, none where nothing is writable."""

    folders: list[Path] = field(default_factory=list)

    @property
    def joins(self) -> list[str]:
        """Files that a process writes its id to before it becomes the run's first."""
        return [str(folder / "cgroup.procs") for folder in self.folders]

    def remove(self) -> None:
        """Remove the groups; one that the kernel still holds busy stays and is used again, for names repeat."""
        for folder in self.folders:
            try:
                folder.rmdir()
            except OSError:
                continue


def missing(root: Path = _ROOT) -> list[str]:
    """Name the controllers that a run's group can't have on this machine."""
    return [controller for controller in ("memory", "pids") if _folder(controller, "run", root) is None]


def make(name: str, caps: Caps, root: Path = _ROOT) -> Group:
    """Make the groups of a run and set their caps, for each controller that can be had."""
    group = Group()
    wanted = {
        "memory": {"memory.limit_in_bytes": caps.memory_bytes, "memory.max": caps.memory_bytes},
        "pids": {"pids.max": caps.processes},
    }
    for controller, values in wanted.items():
        folder = _folder(controller, name, root)
        if folder is None:
            continue
        folder.mkdir(parents=True, exist_ok=True)
        for file, value in values.items():
            if (folder / file).exists():
                (folder / file).write_text(str(value))
        if folder not in group.folders:
            group.folders.append(folder)
    return group


def _folder(controller: str, name: str, root: Path) -> Path | None:
    one, two = root / controller, root
    if (one / "cgroup.procs").exists() and os.access(one, os.W_OK):
        return one / _FAMILY / name
    if _delegates(two, controller) and os.access(two, os.W_OK):
        return two / f"{_FAMILY}-{name}"
    return None


def _delegates(folder: Path, controller: str) -> bool:
    file = folder / "cgroup.subtree_control"
    return file.is_file() and controller in file.read_text().split()
