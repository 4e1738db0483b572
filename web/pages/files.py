"""Files of a public bucket as links: name, size, where to read them."""

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote

from storage.buckets import StoredFile
from storage.paths import BucketName


@dataclass(frozen=True)
class FileLink:
    """One file; `name` is its path below the folder it is shown in, `size` in bytes."""

    name: str
    href: str
    size: int


def link(bucket: BucketName, path: str) -> str:
    """Build the address that gives a file's bytes."""
    return f"/buckets/{quote(str(bucket))}/resolve/{quote(path)}"


def links(bucket: BucketName, folder: str, files: Iterable[StoredFile]) -> tuple[FileLink, ...]:
    """Link each file, named relative to `folder`."""
    start = folder.rstrip("/") + "/" if folder else ""
    return tuple(FileLink(file.path.removeprefix(start), link(bucket, file.path), file.size) for file in files)
