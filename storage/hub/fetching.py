"""Fetch a whole file from the Hub and check it: the Hub's client hands out what comes, right or wrong."""

from collections.abc import Iterator
from tempfile import NamedTemporaryFile
from typing import BinaryIO, cast
from urllib.parse import quote

from hf_xet import hash_files
from huggingface_hub import HfApi
from huggingface_hub.utils import build_hf_headers, http_stream_backoff  # type: ignore[attr-defined]  # documented

from storage.buckets import StoredFile
from storage.errors import Corrupt
from storage.hub.failing import asking
from storage.paths import BucketName

_PIECE_BYTES = 1 << 18


def fetch(api: HfApi, name: BucketName, file: StoredFile) -> BinaryIO:
    """Download a file into a temporary one that vanishes when it is closed.

    Raises:
        Corrupt: what came isn't what the bucket lists.
    """
    kept = cast(BinaryIO, NamedTemporaryFile())  # noqa: SIM115 - whoever reads it closes it
    for piece in _pieces(api, name, file.path) if file.size else ():
        kept.write(piece)
    kept.flush()
    if file.size and hash_files([kept.name])[0].hash != file.digest:
        kept.close()
        raise Corrupt(f"The Hub sent other bytes than {name} lists for {file.path!r:.200}.")
    kept.seek(0)
    return kept


def stream(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes `start` to `end` (exclusive) and close the file."""
    with file:
        file.seek(start)
        left = end - start
        while left > 0 and (piece := file.read(min(left, _PIECE_BYTES))):
            left -= len(piece)
            yield piece


def _pieces(api: HfApi, name: BucketName, path: str) -> Iterator[bytes]:
    url = f"{api.endpoint}/buckets/{name}/resolve/{quote(path, safe='')}"
    headers = build_hf_headers(token=api.token, headers={"Accept-Encoding": "identity"})
    with asking(name), http_stream_backoff("GET", url, headers=headers, follow_redirects=True) as answer:
        answer.raise_for_status()
        yield from answer.iter_bytes(_PIECE_BYTES)
