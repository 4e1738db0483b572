"""Work out, before anything is sent, what a sequence of changes comes to: each path's last state, once.

The Hub does the lines of a batch one by one and keeps what it did when a later one fails. So everything that can
be known to fail is found here, and what is sent no longer depends on its order.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from storage.buckets import Change, Copy, FileNotInBucket, NameTaken, Put
from storage.paths import BucketName, fold, parents

Digests = Mapping[tuple[BucketName, str], str]
"""What is at the Hub now, by bucket and path."""


@dataclass(frozen=True)
class Held:
    """A content that a bucket at the Hub holds."""

    digest: str
    source: BucketName


@dataclass
class Plan:
    """What to send: copies go first, for what follows may remove what they copy."""

    copies: dict[str, Held] = field(default_factory=dict)
    adds: dict[str, Put] = field(default_factory=dict)
    deletes: list[str] = field(default_factory=list)


def lookups(name: BucketName, changes: Sequence[Change]) -> dict[BucketName, set[str]]:
    """List what must be known of each bucket to plan: targets with the folders around them, and sources."""
    wanted: dict[BucketName, set[str]] = {name: set()}
    for change in changes:
        wanted[name].update((change.path, *parents(change.path)))
        if isinstance(change, Copy):
            wanted.setdefault(change.source, set()).add(change.source_path)
    return wanted


def plan(name: BucketName, changes: Sequence[Change], there: Digests) -> Plan:
    """Play the changes through.

    Raises:
        FileNotInBucket: one copies or deletes what isn't there at its turn.
        NameTaken: two names can't lie side by side in the end.
    """
    before = {path: Held(digest, name) for (bucket, path), digest in there.items() if bucket == name}
    states: dict[str, Put | Held] = dict(before)
    for change in changes:
        if isinstance(change, Put):
            states[change.path] = change
        elif isinstance(change, Copy):
            states[change.path] = _copied(name, change, states, there)
        elif states.pop(change.path, None) is None:
            raise FileNotInBucket(f"There is no file {change.path!r:.200} to delete.")
    _check_names(states)
    return _difference(before, states)


def _copied(name: BucketName, copy: Copy, states: Mapping[str, Put | Held], there: Digests) -> Put | Held:
    if copy.source == name and copy.source_path in states:
        return states[copy.source_path]
    if copy.source == name or (copy.source, copy.source_path) not in there:
        raise FileNotInBucket(f"There is no file {copy.source_path!r:.200} in the bucket {copy.source}.")
    return Held(there[copy.source, copy.source_path], copy.source)


def _check_names(states: Mapping[str, Put | Held]) -> None:
    files: dict[str, str] = {}
    for path in states:
        twin = files.setdefault(fold(path), path)
        if twin != path:
            raise NameTaken(f"{twin!r:.200} and {path!r:.200} differ only by case or Unicode form.")
    for path in states:
        inside = next((files[folder] for folder in parents(fold(path)) if folder in files), None)
        if inside is not None:
            raise NameTaken(f"{inside!r:.200} is a file, not a folder; delete it first.")


def _difference(before: Mapping[str, Held], states: Mapping[str, Put | Held]) -> Plan:
    made = Plan(deletes=[path for path in before if path not in states])
    for path, state in sorted(_changed(before, states), key=lambda pair: isinstance(pair[1], Put)):
        if isinstance(state, Put):
            made.adds[path] = state
        else:
            made.copies[path] = state
    return made


def _changed(before: Mapping[str, Held], states: Mapping[str, Put | Held]) -> Iterator[tuple[str, Put | Held]]:
    """Give what is to be written; a copy of a file onto itself is nothing to do."""
    yield from ((path, state) for path, state in states.items() if before.get(path) != state)
