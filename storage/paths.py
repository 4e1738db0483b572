"""The one gate for bucket names, paths and source URIs.

    hf://buckets/race/gemma-a10g-blue-heron/results/r1.md
                 ^org ^name                 ^path

What passes here can be stored, listed and shown as it is.
"""

import re
import unicodedata
from dataclasses import dataclass

from storage.errors import InvalidPath

MAX_PATH_BYTES = 1024
_PREFIX = "hf://buckets/"
_INVISIBLE = re.compile("[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
"""Marks that reorder or hide text, so that a path could look like another one."""
_BUCKET_PART = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,94}[A-Za-z0-9])?", re.ASCII)


@dataclass(frozen=True, order=True)
class BucketName:
    """A bucket's two-part name, `{namespace}/{name}`."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def uri(self) -> str:
        """The bucket as a source URI, without a slash at the end."""
        return f"{_PREFIX}{self}"


@dataclass(frozen=True)
class Source:
    """A path inside a bucket; `path` is empty for the bucket's root and never ends in a slash."""

    bucket: BucketName
    path: str

    def __str__(self) -> str:
        return f"{self.bucket.uri}/{self.path}"


def parse_bucket(text: str) -> BucketName:
    """Read `namespace/name`.

    Raises:
        InvalidPath: it has another form.
    """
    namespace, _, name = text.partition("/")
    for part in (namespace, name):
        if not _BUCKET_PART.fullmatch(part) or ".." in part:
            raise InvalidPath(f"{text!r:.120} is not a bucket name of the form namespace/name.")
    return BucketName(namespace, name)


def check_path(path: str, *, dot_led: bool = False) -> str:
    """Return `path` if it is a clean relative file path.

    Refused: an absolute, empty, `.` or `..` component, control characters, backslashes, invisible marks, text
    that isn't in Unicode's NFC form (its twin would look alike), more than 1,024 bytes, and, unless `dot_led`, any
    component that starts with a dot (inside one's own bucket those are fine).

    Raises:
        InvalidPath: with the reason.
    """
    reason = _path_fault(path, dot_led=dot_led)
    if reason:
        raise InvalidPath(f"The path {path!r:.120} {reason}.")
    return path


def fold(path: str) -> str:
    """Return what paths have in common that a Mac's or Windows' disk takes for one: case and Unicode form put aside."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())


def parents(path: str) -> list[str]:
    """List the folders that a path lies in, the outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


def _path_fault(path: str, *, dot_led: bool) -> str | None:
    try:
        too_long = len(path.encode()) > MAX_PATH_BYTES
    except UnicodeEncodeError:
        return "is not valid Unicode"
    parts = path.split("/")
    if too_long:
        return f"is longer than {MAX_PATH_BYTES} bytes"
    if any(part in ("", ".", "..") for part in parts):
        return "has an empty, '.' or '..' component"
    if any(unicodedata.category(char) in ("Cc", "Zl", "Zp") or char == "\\" for char in path):
        return "has a control character or a backslash"
    if _INVISIBLE.search(path):
        return "has an invisible character"
    if unicodedata.normalize("NFC", path) != path:
        return "is not in Unicode's NFC form"
    if not dot_led and any(part.startswith(".") for part in parts):
        return "has a component that starts with a dot"
    return None


def parse_source(text: str, *, dot_led: bool = False) -> Source:
    """Read a source URI; a slash at its end is dropped.

    Raises:
        InvalidPath: it isn't `hf://buckets/{org}/{bucket}/{path}` with a clean path.
    """
    if not text.startswith(_PREFIX):
        raise InvalidPath(f"{text!r:.120} is not a source of the form {_PREFIX}{{org}}/{{bucket}}/{{path}}.")
    parts = text.removeprefix(_PREFIX).split("/", 2)
    if len(parts) < 3 or not parts[2].rstrip("/"):
        raise InvalidPath(f"{text!r:.120} names no path inside a bucket.")
    path = parts[2].removesuffix("/")
    return Source(parse_bucket("/".join(parts[:2])), check_path(path, dot_led=dot_led))
