"""A stored file as it is, sent so that no browser runs it on this site's origin."""

from typing import Any
from urllib.parse import quote

from fastapi import Response
from sqlmodel import Session

from storage.buckets import StoredFile
from storage.site import Site
from web.hub.ranges import Span
from web.hub.sending import send

_TEXT = "text/plain; charset=utf-8"
_OTHER = "application/octet-stream"
_SHOWN = {
    "csv": _TEXT,
    "json": "application/json",
    "jsonl": _TEXT,
    "log": _TEXT,
    "md": _TEXT,
    "py": _TEXT,
    "toml": _TEXT,
    "txt": _TEXT,
    "yaml": _TEXT,
    "yml": _TEXT,
    "gif": "image/gif",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "png": "image/png",
    "webp": "image/webp",
}
"""What a browser may show; everything else, HTML and SVG above all, it is told to save."""
RAW: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file's bytes.", "content": {kind: {} for kind in sorted({*_SHOWN.values(), _OTHER})}}
}
"""How a call that answers with a file is described."""


def raw_file(site: Site, session: Session, stored: StoredFile) -> Response:
    """Send the bytes of a file of the central bucket."""
    pieces = site.buckets(session).open(site.central, stored.path)
    span = Span(0, stored.size, is_partial=False)
    return send(pieces, span, stored.size, _headers(stored.path.rpartition("/")[2], stored.digest))


def _headers(name: str, digest: str) -> dict[str, str]:
    kind = _SHOWN.get(name.rpartition(".")[2].lower())
    return {
        "Content-Type": kind or _OTHER,
        "Content-Disposition": f"{'inline' if kind else 'attachment'}; filename*=UTF-8''{quote(name, safe='')}",
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Resource-Policy": "same-origin",
        "ETag": f'"{digest}"',
        "Cache-Control": "private, no-cache",
    }
