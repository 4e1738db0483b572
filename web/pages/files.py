"""Files of buckets as links: name, size, the page that shows one, the address that gives its bytes."""

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


@dataclass(frozen=True)
class Crumb:
    """One step of the way to a place; the last one is the place itself."""

    text: str
    href: str


def link(bucket: BucketName, path: str) -> str:
    """Build the address that gives a file's bytes."""
    return f"/buckets/{quote(str(bucket))}/resolve/{quote(path)}"


def page_of(bucket: BucketName, path: str = "") -> str:
    """Build the address of the page that shows a file, a folder or the whole bucket."""
    return f"/buckets/{quote(str(bucket))}" + (f"/tree/{quote(path)}" if path else "")


def links(bucket: BucketName, folder: str, files: Iterable[StoredFile]) -> tuple[FileLink, ...]:
    """Link each file, named relative to `folder`."""
    start = folder.rstrip("/") + "/" if folder else ""
    return tuple(FileLink(file.path.removeprefix(start), link(bucket, file.path), file.size) for file in files)


def crumbs(bucket: BucketName, path: str) -> tuple[Crumb, ...]:
    """Lead from the bucket to a path."""
    parts = path.split("/") if path else []
    steps = (Crumb(part, page_of(bucket, "/".join(parts[: at + 1]))) for at, part in enumerate(parts))
    return (Crumb(str(bucket), page_of(bucket)), *steps)
