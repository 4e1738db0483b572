"""Copies from a scratch bucket into the central one: by hash, so no data moves, and all or none.

Doing the same again changes nothing and gives the same answer. Files that are no longer in the source stay.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlmodel import Session

from agents.directory import agent_ids
from agents.sources import SourceNotFound
from agents.tokens import Caller
from board import destinations, moderation_files
from board.changes import take_turn
from board.promotion import own_source, spend_promotion
from storage.buckets import Copy, StoredFile
from storage.errors import TooLarge
from storage.paths import Source, check_path
from storage.site import Site


class SyncTooLarge(TooLarge):
    """A copy has more bytes or files than one may have."""

    code = "SYNC_TOO_LARGE"


@dataclass(frozen=True)
class Copied:
    """One file that the central bucket now holds; `size` is in bytes."""

    source_path: str
    path: str
    size: int


@dataclass(frozen=True)
class Synced:
    """What a copy brought; `skipped` are the source's dot-led files, which no destination may hold."""

    dest: str
    files: tuple[Copied, ...]
    skipped: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        """Shape the answer of both sync calls."""
        return {
            "dest": self.dest,
            "files": [
                {"src_path": file.source_path, "dest_path": file.path, "bytes": file.size} for file in self.files
            ],
            "bytes_copied": sum(file.size for file in self.files),
            "skipped": list(self.skipped),
        }


def sync_artifacts(site: Site, session: Session, caller: Caller | None, source: str, slug: str) -> Synced:
    """Copy a file or a folder into `artifacts/{slug}_{agent}/`.

    Raises:
        InvalidPath, Unauthorized, BucketNotOwned, NotRegistered, BucketMissing: the caller may not.
        SourceNotFound, SyncTooLarge, RateLimited, FileHidden: nothing is copied.
    """
    where, agent_id = own_source(site, session, caller, source)
    dest = f"{destinations.artifacts_folder(slug, agent_id)}/"
    return _sync(site, session, source, where, dest)


def sync_shared(site: Site, session: Session, caller: Caller | None, source: str, dest_path: str) -> Synced:
    """Copy a file or a folder to `shared_resources/{dest_path}`, which carries `_{agent}`.

    A file goes to that very path, or into it where `dest_path` ends in a slash.

    Raises:
        As `sync_artifacts`.
    """
    where, agent_id = own_source(site, session, caller, source)
    dest = destinations.shared_path(dest_path, agent_id, agent_ids(session))
    return _sync(site, session, source, where, f"{dest}/" if dest_path.endswith("/") else dest)


def _sync(site: Site, session: Session, source: str, where: Source, dest: str) -> Synced:
    files = files_of(site, session, where, is_folder=source.endswith("/"))
    spend_promotion(site, session, source)
    if files[0].path == where.path:
        name = where.path.rpartition("/")[2] if dest.endswith("/") else ""
        return Synced(dest, copy(site, session, where, [(files[0], check_path(f"{dest}{name}"))]), ())
    copies, skipped = into_folder(files, where.path, dest.rstrip("/"))
    return Synced(dest, copy(site, session, where, copies), tuple(skipped))


def files_of(site: Site, session: Session, where: Source, *, is_folder: bool) -> list[StoredFile]:
    """List the file at `where` alone, or the files below it, by path.

    Raises:
        SourceNotFound: there is nothing.
        SyncTooLarge: it has more files or bytes than one copy may have.
    """
    most = site.settings.max_sync_files
    files = site.buckets(session).list(where.bucket, where.path, limit=most + 2)
    exact = [file for file in files if file.path == where.path]
    chosen = exact if exact and not is_folder else [file for file in files if file.path != where.path]
    if not chosen:
        raise SourceNotFound(f"There is nothing at {where.path} in {where.bucket}.", hint=f"hf buckets cp FILE {where}")
    if not (len(chosen) <= most):
        raise SyncTooLarge(f"The source has more than {most} files.", hint="Copy its folders one by one.")
    size, largest = sum(file.size for file in chosen), site.settings.max_sync_bytes
    if not (size <= largest):
        raise SyncTooLarge(f"The source has {size} bytes; at most {largest} are copied at once.")
    return chosen


def into_folder(files: Sequence[StoredFile], folder: str, dest: str) -> tuple[list[tuple[StoredFile, str]], list[str]]:
    """Pair each file below `folder` with its path below `dest`; dot-led ones are left out and named.

    Raises:
        InvalidPath: a destination is longer than a path may be.
    """
    named = [(file, file.path.removeprefix(f"{folder}/")) for file in files]
    copies = [(file, check_path(f"{dest}/{name}")) for file, name in named if not _is_dot_led(name)]
    return copies, [file.path for file, name in named if _is_dot_led(name)]


def copy(site: Site, session: Session, where: Source, copies: Sequence[tuple[StoredFile, str]]) -> tuple[Copied, ...]:
    """Make each central path hold what its file in the source's bucket holds now.

    Raises:
        FileHidden: an organizer hid what is at one of them. Nothing is copied.
    """
    take_turn(session)  # before the bucket's locks, as whoever posts does: else two writers deadlock
    moderation_files.check_not_hidden(session, [path for _, path in copies])
    changes = [Copy(path, where.bucket, file.path) for file, path in copies]
    site.buckets(session).apply(site.central, changes)
    return tuple(Copied(file.path, path, file.size) for file, path in copies)


def _is_dot_led(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))
