"""What leads into a run from outside, made by us and inherited by its first process: no folder of ours is writable.

A submission that could write into the folder of its own socket could fill our disk through it.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_SOCKET = "http.sock"
_BACKLOG = 64


@dataclass(frozen=True)
class Doors:
    """A listening unix socket at `address`, a pipe that says "the first process runs", and one that says "end".

    A byte written to `lifeline` lets the server end by itself; its end of file, as by our death, ends it at once.
    """

    address: Path
    listener: socket.socket
    started_out: int
    started_in: int
    lifeline: IO[bytes]
    lifeline_out: int

    @property
    def inherited(self) -> tuple[int, int, int]:
        """File descriptors that the first process inherits."""
        return self.listener.fileno(), self.started_in, self.lifeline_out


@contextmanager
def open_doors(folder: Path, cleanup: ExitStack) -> Iterator[Doors]:
    """Open the doors in `folder`; our copies of what the run inherits close with the block, the rest in `cleanup`."""
    with ExitStack() as inherited:
        started_out, started_in = os.pipe()
        cleanup.callback(os.close, started_out)
        inherited.callback(os.close, started_in)
        os.set_blocking(started_out, False)
        lifeline_out, lifeline_in = os.pipe()
        lifeline = cleanup.enter_context(os.fdopen(lifeline_in, "wb", buffering=0))
        inherited.callback(os.close, lifeline_out)
        listener = inherited.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        address = folder / _SOCKET
        listener.bind(str(address))
        listener.listen(_BACKLOG)
        yield Doors(address, listener, started_out, started_in, lifeline, lifeline_out)


def has_started(started_out: int) -> bool:
    """Tell whether the first process ran; asked once, after the end."""
    try:
        return os.read(started_out, 1) == b"1"
    except BlockingIOError:
        return False
