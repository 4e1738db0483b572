"""What a text names and where this site shows it: posts, files of buckets, artifacts, pictures.

    20261129-120000-000_blue-heron.md   /p/20261129-120000-000_blue-heron
    hf://buckets/race/tiny-x/runs/1     /buckets/race/tiny-x/tree/runs/1
    artifacts/plots_blue-heron/a.png    /artifacts/plots_blue-heron/a.png     leads into the central bucket

Whether there is such a thing is not asked: one text has one rendering. Pictures are loaded from buckets of this site
alone, so that no post can tell another server who reads it.
"""

import re
from collections.abc import Iterator
from urllib.parse import quote, unquote

from storage.errors import InvalidPath
from storage.paths import check_path, parse_bucket

_BUCKETS = "hf://buckets/"
_ARTIFACTS = "artifacts/"
_RECORD = r"[0-9]{8}-[0-9]{6}(?:-[0-9]{3})?_[a-z0-9-]{1,40}(?:_[0-9a-f]{8})?\.md"
_NAMED = re.compile(
    rf"(?<![\w/.:-])(?:{_RECORD}"
    r"|(?:hf://buckets/|artifacts/)[A-Za-z0-9][\w.+=~/@%-]{0,400})"
)
_RESOLVE = re.compile(r"/buckets/([^/?#]+)/([^/?#]+)/resolve/([^?#]+)")


def find_named(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, address) of what a run of text names; the full stop after it is not of its name."""
    for match in _NAMED.finditer(text):
        name = match[0].rstrip(".,;:-@%")
        address = address_of(name)
        if address:
            yield match.start(), match.start() + len(name), address


def address_of(name: str) -> str | None:
    """Find the page of a post's file name, an `hf://buckets/` URI or an `artifacts/` path; None for anything else."""
    if name.startswith(_BUCKETS):
        return _of_bucket(name.removeprefix(_BUCKETS), "tree")
    if name.startswith(_ARTIFACTS):
        path = _clean(name)
        return f"/{quote(path)}" if path else None
    return f"/p/{name.removesuffix('.md')}" if re.fullmatch(_RECORD, name, re.ASCII) else None


def picture_of(source: str) -> str | None:
    """Find the address of a picture in a bucket of this site; None for one that lies anywhere else."""
    if source.startswith(_BUCKETS):
        return _of_bucket(unquote(source.removeprefix(_BUCKETS)), "resolve")
    if source.startswith(_ARTIFACTS):
        path = _clean(unquote(source))
        return f"/{quote(path)}?raw" if path else None
    match = _RESOLVE.fullmatch(source)
    return _of_bucket(unquote("/".join(match.groups())), "resolve") if match else None


def _of_bucket(text: str, verb: str) -> str | None:
    parts = text.split("/", 2)
    try:
        bucket = parse_bucket("/".join(parts[:2]))
    except InvalidPath:
        return None
    path = _clean(parts[2]) if len(parts) > 2 and parts[2].strip("/") else ""
    if path is None or (verb == "resolve" and not path):
        return None
    return f"/buckets/{bucket}" + (f"/{verb}/{quote(path)}" if path else "")


def _clean(path: str) -> str | None:
    try:
        return check_path(path.rstrip("/"))
    except InvalidPath:
        return None
