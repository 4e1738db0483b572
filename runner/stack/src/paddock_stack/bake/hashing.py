"""Compute SHA-256 beside the work: of input files in a thread of their own, of output while it is written."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Any, Self

from paddock_stack.bake.tensors import BLOCK_BYTES
from paddock_stack.bake.weights_file import InputFile
from paddock_stack.refusals import Refused


@dataclass(frozen=True)
class Digest:
    """What a provenance file says of one file."""

    sha256: str
    size_bytes: int

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)


def digest_of(path: Path) -> Digest:
    """Return the digest of the file at `path`."""
    file = InputFile(path)
    try:
        return _digest(file, Event())
    finally:
        file.close()


class InputDigests:
    """Hash open input files in the background from now on; leave the `with` to stop."""

    def __init__(self, files: Sequence[InputFile]) -> None:
        self._files, self._stop = files, Event()
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hash-input")

    def __enter__(self) -> Self:
        self._digests = [self._pool.submit(_digest, file, self._stop) for file in self._files]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)

    def result(self) -> dict[str, Digest]:
        """Wait for all digests and return them by file name; raise `Refused` where a file was changed meanwhile."""
        made = {file.path.name: digest.result() for file, digest in zip(self._files, self._digests, strict=True)}
        changed = [str(file.path) for file in self._files if file.identity_now() != file.identity]
        if changed:
            raise Refused(f"{changed[0]} was changed while it was read; bake again from a file that keeps still")
        return made


def _digest(file: InputFile, stop: Event) -> Digest:
    seen, size, buffer = hashlib.sha256(), file.identity.size_bytes, memoryview(bytearray(BLOCK_BYTES))
    for offset in range(0, size, BLOCK_BYTES):
        if stop.is_set():
            raise Refused("the bake ended before its input was hashed")
        block = buffer[: min(BLOCK_BYTES, size - offset)]
        file.read_into(block, offset)
        seen.update(block)
    return Digest(seen.hexdigest(), size)


class HashedFile:
    """Write a new file and hash it in another thread; `finish` makes it durable and returns its digest."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        self._seen, self._size = hashlib.sha256(), 0
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hash-output")
        self._pending: deque[Future[None]] = deque()

    def write(self, block: memoryview) -> None:
        """Append `block`, which must stay as it is until the next but one is given."""
        self._pending.append(self._pool.submit(self._seen.update, block))
        self._size += len(block)
        while block:
            block = block[os.write(self._fd, block) :]
        if len(self._pending) > 1:
            self._pending.popleft().result()

    def finish(self) -> Digest:
        """Wait until all is on the disk and hashed; return the digest. The file is closed."""
        os.fsync(self._fd)
        self.close()
        return Digest(self._seen.hexdigest(), self._size)

    def close(self) -> None:
        """Close the file, whatever state it is in; closing twice is no error."""
        self._pool.shutdown()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
