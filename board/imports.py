"""Another board's central bucket, taken in as read-only history.

Each record keeps its name, its body and its author's keys. Who stands behind it is nothing that we saw: its `via`
becomes `imported`, what its own board found becomes `imported_verification`, and a registration loses its owner, so
that nobody here can act for it. Deliveries, verdicts and taskforces of the other board are left where they are.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from sqlmodel import Session

from agents.names import check_agent_id
from agents.registrations import FOLDER as AGENTS
from agents.sources import MAX_BYTES, RecordTooLarge
from board import reindex, verification_status
from board.changes import take_turn
from board.moderation import State
from board.promotion import CONTENT_TYPE, stored_form
from board.records import IMPORTED, MESSAGES, RESULTS, RecordName, parse_name
from storage.buckets import Put
from storage.errors import Conflict, Invalid, InvalidPath, PaddockError
from storage.frontmatter import Document, Value, parse_bytes
from storage.paths import check_path
from storage.site import Site

_FILES = ("artifacts", "shared_resources")
_MAX_MAP_BYTES = 50_000_000
_OURS = frozenset({"README.md", "shared_resources/README.md", verification_status.PATH})


class NotABoard(Invalid):
    """The folder holds nothing of the public layout."""

    code = "NOT_A_BOARD"


class NameTaken(Conflict):
    """The central bucket holds another file of that name."""

    code = "NAME_TAKEN"


class FutureRecord(Invalid):
    """A record's stamp lies ahead; every later post here would have to follow it."""

    code = "FUTURE_RECORD"


@dataclass
class Imported:
    """What came in, what was here already and what was left out, by folder; what can't be taken, and why."""

    taken: Counter[str] = field(default_factory=Counter)
    present: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    bad: list[str] = field(default_factory=list)


def import_board(site: Site, session: Session, source: Path, *, label: str) -> Imported:
    """Copy the board in the folder `source` into the central bucket and index everything anew.

    `label` says where it comes from. Importing again takes what is new. A file that can't be taken is reported and
    stops nothing; links are never followed.

    Raises:
        NotABoard: there is nothing that looks like one. Nothing was written.
    """
    if not any((source / folder).is_dir() for folder in (MESSAGES, RESULTS, AGENTS)):
        raise NotABoard(
            f"{source} has no {MESSAGES}/, {RESULTS}/ or {AGENTS}/.", hint="Name a copy of a central bucket."
        )
    take_turn(session)  # before the bucket's locks, as whoever posts does: else two writers deadlock
    report = Imported()
    visit = _Visit(site, session, source, label, _states(source, report))
    for path in _files(source):
        visit.take(path, report)
    reindex.rebuild(site, session)
    return report


def _files(source: Path) -> Iterator[str]:
    for found in sorted(source.rglob("*")):
        if found.is_file() and not any(
            part.is_symlink() for part in (found, *found.parents) if part.is_relative_to(source)
        ):
            yield found.relative_to(source).as_posix()


def _states(source: Path, report: Imported) -> Mapping[str, object]:
    """Read what the other board listed of each result; without a readable list they are all unknown."""
    listed = source / verification_status.PATH
    if not listed.is_file() or listed.is_symlink():
        return {}
    try:
        if not (listed.stat().st_size <= _MAX_MAP_BYTES):
            raise ValueError("it is too large")
        states = json.loads(listed.read_bytes())
    except (ValueError, RecursionError) as error:
        report.bad.append(f"{verification_status.PATH}: {' '.join(str(error).split()):.100}")
        return {}
    return states if isinstance(states, dict) else {}


@dataclass(frozen=True)
class _Visit:
    site: Site
    session: Session
    source: Path
    label: str
    states: Mapping[str, object]

    def take(self, path: str, report: Imported) -> None:
        """Take one file in, or say in the report why not."""
        top = path.partition("/")[0]
        if path in _OURS or top not in (MESSAGES, RESULTS, AGENTS, *_FILES):
            report.left_out[top if "/" in path else path] += 1
            return
        try:
            is_new = self._put(path, top)
        except (PaddockError, OSError) as error:
            report.bad.append(f"{path!r:.200}: {error}")
        else:
            (report.taken if is_new else report.present)[top] += 1

    def _put(self, path: str, top: str) -> bool:
        check_path(path)
        if top in _FILES:
            return self._keep(path, self.source / path)
        if top == AGENTS:
            return self._keep_agent(path)
        name = parse_name(path.removeprefix(f"{top}/"))
        if name is None:
            raise InvalidPath("The name is not a record's.")
        if name.latest_at > self.site.clock():
            raise FutureRecord("Its stamp lies in the future.")
        return self._keep(path, self._record(name, self._read(path), is_result=top == RESULTS))

    def _read(self, path: str) -> Document:
        file = self.source / path
        if not (file.stat().st_size <= MAX_BYTES):
            raise RecordTooLarge(f"It has more than {MAX_BYTES} bytes.")
        return parse_bytes(file.read_bytes())

    def _record(self, name: RecordName, document: Document, *, is_result: bool) -> bytes:
        head = document.frontmatter
        told = self.states.get(name.filename)
        server: dict[str, Value] = {
            "agent": name.handle,
            "timestamp": _text(head.get("timestamp")) or _written(name.at),
            "via": IMPORTED,
            "imported_from": self.label,
        }
        if is_result:
            server["imported_verification"] = told if isinstance(told, str) else None
        gone = {state.value: head[state.value] for state in State if state and state.value in head}
        return stored_form(server | gone, head, document.body)

    def _keep_agent(self, path: str) -> bool:
        """Take in a registration without its owner: an id that is registered here stays whose it is."""
        check_agent_id(path.removeprefix(f"{AGENTS}/").removesuffix(".md"))
        if not path.endswith(".md"):
            raise InvalidPath("The name is not a registration's.")
        document = self._read(path)
        server: dict[str, Value] = {
            "hf_user": "",
            "imported_hf_user": _text(document.frontmatter.get("hf_user")),
            "imported_from": self.label,
        }
        return self._keep(path, stored_form(server, document.frontmatter, document.body), ours_stays=True)

    def _keep(self, path: str, content: bytes | Path, *, ours_stays: bool = False) -> bool:
        """Write a file unless it is here; tell whether it was new."""
        store, central = self.site.buckets(self.session), self.site.central
        stored = store.stat(central, path)
        if stored is None:
            text = CONTENT_TYPE if isinstance(content, bytes) else None
            store.apply(central, [Put(path, content, text)])
            return True
        if ours_stays or isinstance(content, Path) or store.read(central, path, max_bytes=stored.size) == content:
            return False
        raise NameTaken("Another record of that name is here.")


def _text(value: Value) -> str:
    return value if isinstance(value, str) else ""


def _written(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M UTC")
