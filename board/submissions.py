"""Where a result's submission lies: the places its post names, tried in order.

A place is a source URI, or relative: `artifacts/…` lies in the central bucket, anything else in the owner's
scratch bucket. Places in any other bucket are passed over, so no result ever leads into another agent's.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from storage.buckets import BucketStore, FileNotInBucket
from storage.errors import InvalidPath, TooLarge
from storage.paths import BucketName, Source, check_path, parse_source

MANIFEST = "manifest.json"
_FIELDS = ("submission", "artifacts")
_RUN_FILES = ("run_request.json", "job_status.json")
_MAX_PLACES = 20
_TICKED = re.compile(r"`([^`]+)`")


def named(frontmatter: Mapping[str, object], *, central: BucketName, scratch: BucketName) -> list[Source]:
    """List the places that a post names, `submission` before `artifacts`; at most twenty."""
    texts = [text for field in _FIELDS for text in _texts(frontmatter.get(field))]
    places = (_place(text, central=central, scratch=scratch) for text in texts[:_MAX_PLACES])
    return [place for place in places if place is not None]


def find(store: BucketStore, places: Iterable[Source], *, central: BucketName, scratch: BucketName) -> Source | None:
    """Return the folder of the first submission among `places`, or None.

    A place holds one if a manifest lies in it (or is it); failing that in all places, the
    `submission_prefix` that a run's files in one of them give is tried.
    """
    folders = [_folder(place) for place in places]
    runs = (source for folder in folders for source in _of_run(store, folder, central=central, scratch=scratch))
    for candidate in (*folders, *runs):
        if _holds(store, candidate):
            return candidate
    return None


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str):
        yield from _TICKED.findall(value) or [value.strip()]


def _place(text: str, *, central: BucketName, scratch: BucketName) -> Source | None:
    try:
        if "://" in text:
            source = parse_source(text)
        else:
            bucket = central if text.startswith("artifacts/") else scratch
            source = Source(bucket, check_path(text.removesuffix("/")))
    except InvalidPath:
        return None
    return source if source.bucket in (central, scratch) else None


def _folder(place: Source) -> Source:
    folder, _, name = place.path.rpartition("/")
    return Source(place.bucket, folder) if name == MANIFEST and folder else place


def _holds(store: BucketStore, folder: Source) -> bool:
    return store.find(folder.bucket) is not None and store.stat(folder.bucket, f"{folder.path}/{MANIFEST}") is not None


def _of_run(store: BucketStore, folder: Source, *, central: BucketName, scratch: BucketName) -> Iterator[Source]:
    if store.find(folder.bucket) is None:
        return
    for name in _RUN_FILES:
        fields = _read_fields(store, folder, name)
        prefix, bucket = fields.get("submission_prefix"), fields.get("submission_bucket", str(scratch))
        if isinstance(prefix, str) and isinstance(bucket, str):
            place = _place(f"hf://buckets/{bucket}/{prefix}", central=central, scratch=scratch)
            if place is not None:
                yield place


def _read_fields(store: BucketStore, folder: Source, name: str) -> dict[str, object]:
    try:
        fields = json.loads(store.read(folder.bucket, f"{folder.path}/{name}"))
    except (FileNotInBucket, TooLarge, ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}
