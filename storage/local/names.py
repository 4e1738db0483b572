"""Keep a bucket's names such that every computer can hold them side by side.

Refused are a file beside another one whose name differs only by case or Unicode form, and a file of the name of a
folder: a client on a Mac or on Windows would write one over the other.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from sqlalchemy import Select, exists, literal, union_all
from sqlmodel import Session, col, select

from storage.buckets import NameTaken
from storage.local import upserts
from storage.local.rows import FileRow
from storage.paths import fold, parents

_BELOW_PER_QUERY = 200

Leaves = Callable[[str], bool]
"""Tells whether a path that is there now is deleted later in the same batch."""


def later(deletions: Mapping[str, int], done: int) -> Leaves:
    """Tell which paths are deleted behind the first `done` changes; `deletions` has each one's last place."""
    return lambda path: deletions.get(path, -1) >= done


def check(session: Session, bucket_id: int, paths: Sequence[str], *, leaves: Leaves) -> None:
    """Make sure that `paths` may be placed together.

    Raises:
        NameTaken: for the first one that may not.
    """
    for reason in collisions(session, bucket_id, paths, leaves=leaves).values():
        raise NameTaken(reason)


def collisions(session: Session, bucket_id: int, paths: Sequence[str], *, leaves: Leaves) -> dict[str, str]:
    """Say of each path that can't be placed why; the others may be placed together.

    The caller has pinned the bucket alone, so that no two writers take twins at once.
    """
    names = _Names(_files_at(session, bucket_id, paths, leaves), _folders_at(session, bucket_id, paths, leaves))
    faults = ((path, names.take(path)) for path in dict.fromkeys(paths))
    return {path: reason for path, reason in faults if reason}


class _Names:
    """Names that are taken: by folded form, a file's path or, for a folder, that of one file in it."""

    def __init__(self, files: dict[str, str], folders: dict[str, str]) -> None:
        self._files = files
        self._folders = folders

    def take(self, path: str) -> str | None:
        """Take a name, or return why it can't be had."""
        folded = fold(path)
        reason = self._fault(path, folded)
        if reason is None:
            self._files[folded] = path
            self._folders.update(dict.fromkeys(parents(folded), path))
        return reason

    def _fault(self, path: str, folded: str) -> str | None:
        twin = self._files.get(folded, path)
        if twin != path:
            return f"{twin!r:.200} is there, whose name differs only by case or Unicode form; delete it first"
        if folded in self._folders:
            return f"a folder of that name is there (it holds {self._folders[folded]!r:.200})"
        inside = next((self._files[parent] for parent in parents(folded) if parent in self._files), None)
        return f"{inside!r:.200} is a file, not a folder; delete it first" if inside else None


def _files_at(session: Session, bucket_id: int, paths: Sequence[str], leaves: Leaves) -> dict[str, str]:
    """Find the files whose name is that of a path or of a folder around it."""
    wanted = {name for path in paths for name in (fold(path), *parents(fold(path)))}
    found: dict[str, str] = {}
    for some in upserts.slices(sorted(wanted)):
        query = select(FileRow.folded, FileRow.path).where(
            FileRow.bucket_id == bucket_id, col(FileRow.folded).in_(some)
        )
        found.update((folded, path) for folded, path in session.exec(query) if not leaves(path))
    return found


def _folders_at(session: Session, bucket_id: int, paths: Sequence[str], leaves: Leaves) -> dict[str, str]:
    """Find which of the paths are folders, with a file in each that stays."""
    wanted = sorted({fold(path) for path in paths})
    found: dict[str, str] = {}
    for start in range(0, len(wanted), _BELOW_PER_QUERY):
        for folded in session.scalars(_that_are_folders(bucket_id, wanted[start : start + _BELOW_PER_QUERY])):
            inside = next((path for path in _below(session, bucket_id, folded) if not leaves(path)), None)
            if inside is not None:
                found[folded] = inside
    return found


def _that_are_folders(bucket_id: int, wanted: Iterable[str]) -> Select[str]:
    """Ask for those of the folded names below which a file lies, one look at the index for each."""
    asked = union_all(*(select(literal(name).label("name")) for name in wanted)).subquery()
    low, high = asked.c.name.concat("/"), asked.c.name.concat("0")  # "0" follows "/"
    below = exists().where(col(FileRow.bucket_id) == bucket_id, col(FileRow.folded) > low, col(FileRow.folded) < high)
    return select(asked.c.name).where(below)


def _below(session: Session, bucket_id: int, folded: str) -> Iterator[str]:
    query = select(FileRow.path).where(
        FileRow.bucket_id == bucket_id, col(FileRow.folded) > f"{folded}/", col(FileRow.folded) < f"{folded}0"
    )
    yield from session.exec(query)
