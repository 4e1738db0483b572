"""One slot per concurrent run: a user id of its own and a short folder for its socket, held under a file lock."""

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_MOST_SLOTS = 64


class NoSlot(RuntimeError):
    """Every slot is taken, or its folder isn't ours."""


@dataclass(frozen=True)
class Slot:
    """`uid` is the run's user; `sockets` is short enough that a socket's path fits its 107 bytes."""

    number: int
    uid: int
    sockets: Path


@contextmanager
def hold_slot(first_uid: int) -> Iterator[Slot]:
    """Hold the first free slot of this machine until the block ends; a killed holder frees it at once.

    Raises:
        NoSlot: all are taken.
    """
    folder = _private_folder(first_uid)
    for number in range(_MOST_SLOTS):
        with open(folder / f"{number}.lock", "w") as lock:  # noqa: PTH123 - the handle is the lock
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield _empty(folder, number, first_uid)
            return
    raise NoSlot(f"all {_MOST_SLOTS} slots of this machine are taken")


def _private_folder(first_uid: int) -> Path:
    """Make the folder that only we may change, in a place whose path is short; others may pass through it.

    It belongs to the range of user ids, not to a data folder: two sites on one machine never share a user.
    """
    folder = Path(tempfile.gettempdir()) / f"paddock-{os.geteuid()}-{first_uid}"
    folder.mkdir(mode=0o711, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise NoSlot(f"{folder} isn't a folder of ours alone")
    return folder


def _empty(folder: Path, number: int, first_uid: int) -> Slot:
    sockets = folder / str(number)
    shutil.rmtree(sockets, ignore_errors=True)
    sockets.mkdir(mode=0o700)
    return Slot(number=number, uid=first_uid + number, sockets=sockets)
