"""Keep xorbs as files, `xorbs/ab/cd/abcd…`, whole or not at all."""

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from storage.errors import Corrupt


class Blobs:
    """A folder of xorbs. Whether one belongs to the store is for the rows to say: a file alone is harmless."""

    def __init__(self, folder: Path) -> None:
        """Use `folder`, which is made on the first write."""
        self.folder = folder

    @property
    def generation(self) -> str:
        """Name this store's life: clients drop what they remember of uploads when it changes."""
        file = self.folder / "generation"
        if not file.exists():
            with self._fresh_generation() as fresh, suppress(FileExistsError):  # another was first: its word stands
                os.link(fresh, file)
            _sync_folder(self.folder)
        return file.read_text("ascii")

    def begin_generation(self) -> str:
        """Start over in clients' eyes, as must be when xorbs were lost or restored from an older backup."""
        with self._fresh_generation() as fresh:
            fresh.replace(self.folder / "generation")
        _sync_folder(self.folder)
        return self.generation

    @contextmanager
    def _fresh_generation(self) -> Iterator[Path]:
        with self.incoming() as file:
            file.write(secrets.token_hex(6).encode())
            file.flush()
            os.fsync(file.fileno())
            yield Path(file.name)

    def path(self, digest: str) -> Path:
        """Say where the xorb of that name lies or would lie."""
        return self.folder / "xorbs" / digest[:2] / digest[2:4] / digest

    def lacks(self, digest: str) -> bool:
        """Tell whether a xorb's file is certainly not there; one that can't be looked at may be."""
        try:
            self.path(digest).stat()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return False

    @contextmanager
    def incoming(self) -> Iterator[BinaryIO]:
        """Open a temporary file for reading and writing; unless kept, it is gone at the end of the block."""
        folder = self.folder / "incoming"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            try:
                yield cast(BinaryIO, file)
            finally:
                Path(file.name).unlink(missing_ok=True)

    def keep(self, file: BinaryIO, digest: str) -> None:
        """Make a temporary file the xorb `digest`, durable when this returns; one that lay there is replaced."""
        file.flush()
        os.fsync(file.fileno())
        target = self.path(digest)
        made = _make_folders(target.parent)
        Path(file.name).replace(target)
        for folder in (target.parent, *made):
            _sync_folder(folder)

    def quarantine(self, digest: str) -> None:
        """Move a xorb's file out of the way, to `quarantine/`, if there is one; an older one there is replaced."""
        folder = self.folder / "quarantine"
        made = _make_folders(folder)
        with suppress(FileNotFoundError):
            self.path(digest).replace(folder / digest)
        for changed in (folder, *made):
            _sync_folder(changed)

    def open(self, digest: str) -> BinaryIO:
        """Open a xorb for reading.

        Raises:
            Corrupt: its file is gone.
            OSError: it can't be read, for another reason.
        """
        try:
            return self.path(digest).open("rb")
        except FileNotFoundError as error:
            raise Corrupt(f"The xorb {digest} is recorded but its file is missing.") from error


def _make_folders(folder: Path) -> list[Path]:
    """Make a folder with its parents; return the parents that gained an entry."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return [path.parent for path in missing]


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
