"""One file of a bucket as a page: its first lines as numbered text, never as anything that runs."""

import codecs
from collections.abc import Container
from dataclasses import dataclass
from typing import ClassVar

from markupsafe import Markup

from board import moderation_files
from storage.buckets import StoredFile
from storage.errors import InvalidFrontmatter
from storage.frontmatter import parse_bytes
from storage.local.buckets import LocalBuckets
from storage.paths import BucketName
from storage.site import Site
from web.pages import files, logs, moments, posts
from web.pages.files import Crumb
from web.pages.logs import LogLine
from web.pages.moments import Moment
from web.pages.rights import NOBODY, Rights

_TEXT_BYTES = 256 << 10
_LINES = 4000
_README_BYTES = 500_000


@dataclass(frozen=True)
class FileView:
    """One file. `size` is in bytes; `is_text` tells whether it can be read here, `is_cut` that there is more of it.

    `hidden` says why an organizer hid it, if one did; its reader may hide it or bring it back.
    """

    template: ClassVar[str] = "file.html"

    bucket: str
    name: str
    crumbs: tuple[Crumb, ...]
    size: int
    at: Moment
    digest: str
    download: str
    uri: str
    is_text: bool
    lines: tuple[LogLine, ...]
    is_cut: bool
    path: str
    hidden: str
    can_hide: bool
    can_unhide: bool


def file_view(
    site: Site, store: LocalBuckets, bucket: BucketName, file: StoredFile, *, may: Rights = NOBODY
) -> FileView:
    """Read the beginning of one file for who `may`.

    Raises:
        Corrupt: the stored bytes are damaged.
    """
    start = b"".join(store.open(bucket, file.path, end=_TEXT_BYTES))
    text = text_of(start, is_whole=file.size <= _TEXT_BYTES)
    lines, is_cut = logs.head(text or "", shown=_LINES)
    is_open = bucket == site.central and moderation_files.can_be_hidden(file.path)
    reason = moderation_files.find_reason(store.session, file.path) if is_open else None
    return FileView(
        bucket=str(bucket),
        name=file.path.rpartition("/")[2],
        crumbs=files.crumbs(bucket, file.path),
        size=file.size,
        at=moments.moment(file.uploaded_at, now=site.clock()),
        digest=file.digest,
        download=files.link(bucket, file.path),
        uri=f"{bucket.uri}/{file.path}",
        is_text=text is not None,
        lines=lines,
        is_cut=is_cut or file.size > _TEXT_BYTES,
        path=file.path,
        hidden=reason or "",
        can_hide=is_open and may.is_organizer and reason is None,
        can_unhide=is_open and may.is_organizer and reason is not None,
    )


def text_of(start: bytes, *, is_whole: bool) -> str | None:
    """Read the first bytes of a file as text, or return None where they are none.

    A character that the end of `start` cuts in two is left out.
    """
    if b"\0" in start:
        return None
    try:
        return codecs.getincrementaldecoder("utf-8-sig")().decode(start, final=is_whole)
    except UnicodeDecodeError:
        return None


def readme(store: LocalBuckets, bucket: BucketName, file: StoredFile, *, known: Container[str]) -> Markup | None:
    """Render a README without its frontmatter; None where it is too large to be one, or no text."""
    if file.size > _README_BYTES:
        return None
    content = store.read(bucket, file.path, max_bytes=_README_BYTES)
    text = text_of(content, is_whole=True)
    return None if text is None else posts.rendered(_without_head(content, text), known=known)


def _without_head(content: bytes, text: str) -> str:
    """Drop the frontmatter; one that can't be read stays as the text it is."""
    try:
        return parse_bytes(content).body
    except InvalidFrontmatter:
        return text
