"""A submission as it was: copied by content hash into the audit bucket, so that later changes don't matter.

The hash is the SHA-256 of one line `{path} TAB {digest} TAB {size}` per file, in the order of the paths.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlmodel import Session

from runner import manifests
from runner.launchers.contract import KeepGoing
from runner.manifests import BadManifest, Manifest, parse_manifest
from storage.buckets import Copy, StoredFile
from storage.database import reading
from storage.errors import InvalidPath, NotFound, TooLarge
from storage.paths import Source
from storage.site import Site


class SubmissionNotFound(NotFound):
    """There is no file at the submission's prefix."""

    code = "SOURCE_NOT_FOUND"


class SubmissionTooLarge(TooLarge):
    """A submission has more bytes or files than the limit."""

    code = "SYNC_TOO_LARGE"


@dataclass(frozen=True)
class Snapshot:
    """A submission's content: its hash, size and what its manifest says."""

    content_hash: str
    files: int
    size_bytes: int
    manifest: Manifest


def look(site: Site, session: Session, source: Source) -> Snapshot:
    """Check a submission without keeping anything: caps, paths, manifest.

    Raises:
        SubmissionNotFound, SubmissionTooLarge, BadManifest, InvalidPath: each named for its owner.
    """
    return _snapshot(site, session, source, _files(site, session, source))


def take(site: Site, session: Session, source: Source) -> Snapshot:
    """Check a submission and keep its content in the audit bucket; keeping it again copies nothing.

    Raises:
        SubmissionNotFound, SubmissionTooLarge, BadManifest, InvalidPath: nothing is kept.
    """
    files = _files(site, session, source)
    snapshot = _snapshot(site, session, source, files)
    folder = _folder(snapshot.content_hash)
    if site.buckets(session).stat(site.audit, f"{folder}/{manifests.FILE}") is None:
        inner = len(source.path) + 1
        copies = [Copy(f"{folder}/{file.path[inner:]}", source.bucket, file.path) for file in files]
        site.buckets(session).apply(site.audit, copies)
    return snapshot


def read_manifest(site: Site, session: Session, content_hash: str) -> Manifest:
    """Read the manifest of a kept snapshot."""
    path = f"{_folder(content_hash)}/{manifests.FILE}"
    return parse_manifest(site.buckets(session).read(site.audit, path, max_bytes=manifests.MAX_BYTES))


def materialise(site: Site, content_hash: str, target: Path, keep_going: KeepGoing) -> None:
    """Write a kept snapshot into the new folder `target`, read-only; every piece is verified on its way."""
    folder = _folder(content_hash)
    with reading(site.engine) as session:
        buckets = site.buckets(session)
        for file in buckets.list(site.audit, folder):
            keep_going()
            path = target / file.path.removeprefix(f"{folder}/")
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as out:
                for piece in buckets.open(site.audit, file.path):
                    out.write(piece)
            path.chmod(0o555)


def _folder(content_hash: str) -> str:
    return f"snapshots/{content_hash}"


def _files(site: Site, session: Session, source: Source) -> list[StoredFile]:
    most_files, most_bytes = site.settings.max_sync_files, site.settings.max_sync_bytes
    files = site.buckets(session).list(source.bucket, source.path, limit=most_files + 1)
    files = [file for file in files if file.path.startswith(f"{source.path}/")]
    if not files:
        raise SubmissionNotFound(f"There is no file below {source}.", hint=f"hf buckets sync FOLDER {source}")
    if not (len(files) <= most_files):
        raise SubmissionTooLarge(f"The submission has more than {most_files} files.")
    if not (sum(file.size for file in files) <= most_bytes):
        raise SubmissionTooLarge(f"The submission has more than {most_bytes} bytes.")
    return files


def _snapshot(site: Site, session: Session, source: Source, files: Sequence[StoredFile]) -> Snapshot:
    inner = len(source.path) + 1
    paths = [file.path[inner:] for file in files]
    _check_folders(paths)
    if manifests.FILE not in paths:
        raise BadManifest(f"{source} holds no {manifests.FILE}.", hint="A submission's folder has one at its top.")
    manifest = files[paths.index(manifests.FILE)]
    if not (manifest.size <= manifests.MAX_BYTES):
        raise BadManifest(f"{manifests.FILE} has more than {manifests.MAX_BYTES} bytes.")
    content = site.buckets(session).read(source.bucket, manifest.path, max_bytes=manifests.MAX_BYTES)
    return Snapshot(
        content_hash=content_hash([(path, file.digest, file.size) for path, file in zip(paths, files, strict=True)]),
        files=len(files),
        size_bytes=sum(file.size for file in files),
        manifest=parse_manifest(content),
    )


def content_hash(files: Sequence[tuple[str, str, int]]) -> str:
    """Hash (path, digest, size in bytes) of every file, in any order."""
    lines = (f"{path}\t{digest}\t{size}\n" for path, digest, size in sorted(files))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _check_folders(paths: Sequence[str]) -> None:
    known = set(paths)
    for path in paths:
        manifests.check_parts(path)
        for parent in Path(path).parents:
            if str(parent) in known:
                raise InvalidPath(f"{str(parent)!r:.120} is a file and a folder of the submission at once.")
