"""Rebuild every row that indexes the record from the central bucket's files, or prove that it would change nothing.

A file that can't be read as what its place says it is never stops the others: it is counted and reported, and
a result among them is indexed as malformed.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sqlmodel import Session, SQLModel, delete, select

from agents.registrations import FOLDER as AGENTS
from agents.registrations import index_agent
from agents.rows import AgentRow
from agents.sources import MAX_BYTES
from board import moderation, outcomes, search_index, taskforces_index, traces_index, verdicts, verification_status
from board.changes import take_turn
from board.records import BROADCASTS, INBOX, MESSAGES, RESULTS, index_file, parse_name
from board.rows import (
    InboxRow,
    ModerationRow,
    PostRow,
    PromotionRow,
    RefRow,
    ResultRow,
    SearchRow,
    TaskforceFileRow,
    TaskforceRow,
    TraceRow,
)
from board.verdicts import State
from storage.buckets import StoredFile
from storage.errors import PaddockError
from storage.site import Site

TABLES: tuple[type[SQLModel], ...] = (
    AgentRow,
    PostRow,
    RefRow,
    InboxRow,
    ResultRow,
    PromotionRow,
    ModerationRow,
    SearchRow,
    *(TaskforceRow, TaskforceFileRow, TraceRow),
)
"""Every table that holds nothing but what the central bucket's files say."""

_RECORDS = (MESSAGES, RESULTS, BROADCASTS, INBOX, "taskforces")
_VERDICTS = "verdicts"
_MAX_DIFFERENCES = 100
_MAX_MAP_BYTES = 50_000_000

_NAMED_BY: dict[type[SQLModel], tuple[str, ...]] = {PostRow: ("folder", "filename"), SearchRow: ("kind", "name")}
"""What names a row whose key is a number."""

Rows = dict[str, dict[str, object]]
Index = Callable[[Site, Session, StoredFile], bool]
"""Writes the row of a stored file, if its place has one, and tells whether it has."""


@dataclass
class Report:
    """What a rebuild found: files indexed by folder, and those that couldn't be, each with the reason."""

    indexed: Counter[str] = field(default_factory=Counter)
    bad: list[str] = field(default_factory=list)

    def count(self, path: str) -> None:
        """Note that the file at `path` is indexed."""
        self.indexed[path.partition("/")[0]] += 1

    def blame(self, path: str, reason: str) -> None:
        """Note that the file at `path` couldn't be indexed as it should."""
        self.bad.append(f"{path}: {reason}")


def rebuild(site: Site, session: Session) -> Report:
    """Replace the rows of `TABLES` by what the files say, and write the map of states anew if it lags behind."""
    take_turn(session)  # a server may be at work beside us
    report = _rebuild_rows(site, session)
    if _stale_map(site, session):
        verification_status.write(site, session)
    return report


def check(site: Site, session: Session) -> list[str]:
    """List how the rows differ from what the files say, at most a hundred sentences; none means they agree.

    The rebuild it compares with runs in a savepoint that is rolled back, so `session` must be one that may write.
    """
    take_turn(session)  # what is posted meanwhile would be among the files and not among the rows
    session.flush()
    stale, live = _stale_map(site, session), _snapshot(session)
    savepoint = session.begin_nested()
    try:
        _rebuild_rows(site, session)
        rebuilt = _snapshot(session)
    finally:
        savepoint.rollback()
        session.expire_all()
    return [*stale, *_differences(live, rebuilt)][:_MAX_DIFFERENCES]


def _rebuild_rows(site: Site, session: Session) -> Report:
    for table in TABLES:
        session.exec(delete(table))
    search_index.clear(session)
    report = Report()
    for path in _paths(site, session, [AGENTS]):
        _index_agent(site, session, path, report)
    # Oldest first: a reply finds its thread only through records that are there already.
    for path in sorted(_paths(site, session, _RECORDS), key=lambda path: path.rpartition("/")[2]):
        _index_record(site, session, path, report)
    for folder, index in ((taskforces_index.FOLDER, taskforces_index), (traces_index.FOLDER, traces_index)):
        _index_others(site, session, folder, index.index_stored, report)
    _index_others(site, session, moderation.FOLDER, moderation.index_stored, report)
    _index_verification(site, session, report)
    session.flush()
    return report


def _paths(site: Site, session: Session, folders: Iterable[str]) -> list[str]:
    store = site.buckets(session)
    return [file.path for folder in folders for file in store.list(site.central, folder)]


def _index_agent(site: Site, session: Session, path: str, report: Report) -> None:
    try:
        index_agent(session, path, site.buckets(session).read(site.central, path, max_bytes=MAX_BYTES))
    except PaddockError as error:
        report.blame(path, error.message)
    else:
        report.count(path)


def _index_record(site: Site, session: Session, path: str, report: Report) -> None:
    folder, _, filename = path.rpartition("/")
    name = parse_name(filename)
    if name is None:
        if folder in (MESSAGES, RESULTS) and path != verification_status.PATH:
            report.blame(path, "the name is not a record's")
        return
    try:
        post = index_file(session, path, site.buckets(session).read(site.central, path, max_bytes=MAX_BYTES))
    except PaddockError as error:
        report.blame(path, error.message)
        result = outcomes.malformed_row(name, error.message) if folder == RESULTS else None
    else:
        report.count(path)
        result = outcomes.row_of(site, name, post.frontmatter) if post and folder == RESULTS else None
        if result and result.malformed:
            report.blame(path, result.reason)
    if result:
        session.add(result)


def _index_others(site: Site, session: Session, folder: str, index: Index, report: Report) -> None:
    for stored in site.buckets(session).list(site.central, folder):
        try:
            is_indexed = index(site, session, stored)
        except PaddockError as error:
            report.blame(stored.path, error.message)
        else:
            if is_indexed:
                report.count(stored.path)


def _index_verification(site: Site, session: Session, report: Report) -> None:
    """Give each result its verdict, or, where there is none, the state that the map of an import lists."""
    listed = _listed_states(site, session, report)
    verdict_paths = {path for path in _paths(site, session, [_VERDICTS]) if path.endswith("/verdict.json")}
    for row in session.exec(select(ResultRow)).all():
        path = verdicts.path_of(row.filename)
        if path in verdict_paths:
            _index_verdict(site, session, row, path, report)
        elif row.verification != State.IMPORTED:
            row.verification = listed.get(row.filename, State.PENDING).value
        verdict_paths.discard(path)
    for path in sorted(verdict_paths):
        report.blame(path, "it is the verdict on no result")


def _index_verdict(site: Site, session: Session, row: ResultRow, path: str, report: Report) -> None:
    try:
        verdict = verdicts.parse(site.buckets(session).read(site.central, path))
    except PaddockError as error:
        report.blame(path, error.message)
        row.reason = "Its verdict can't be read."
    else:
        report.count(path)
        outcomes.apply_verdict(row, verdict, path=path)


def _listed_states(site: Site, session: Session, report: Report) -> dict[str, State]:
    try:
        return verification_status.parse(_stored_map(site, session) or b"{}")
    except PaddockError as error:
        report.blame(verification_status.PATH, error.message)
        return {}


def _stored_map(site: Site, session: Session) -> bytes | None:
    store = site.buckets(session)
    if store.stat(site.central, verification_status.PATH) is None:
        return None
    return store.read(site.central, verification_status.PATH, max_bytes=_MAX_MAP_BYTES)


def _stale_map(site: Site, session: Session) -> list[str]:
    states = verification_status.current(session)
    try:
        stored = _stored_map(site, session)
    except PaddockError as error:
        return [f"{verification_status.PATH}: {error.message}"]
    if stored == verification_status.to_bytes(states) or (stored is None and not states):
        return []
    return [f"{verification_status.PATH}: the file does not list the states that the rows have"]


def _snapshot(session: Session) -> Rows:
    """Copy every row under a name that says which record it belongs to; surrogate keys are left out."""
    session.flush()
    rows: Rows = {}
    for table in TABLES:
        for row in session.exec(select(table)):
            fields = row.model_dump(exclude={"id"})
            keys = _NAMED_BY.get(table) or table.__mapper__.primary_key  # type: ignore[attr-defined]
            name = ", ".join(str(fields[getattr(key, "name", key)]) for key in keys)
            rows[f"{table.__tablename__} ({name})"] = fields
    return rows


def _differences(live: Rows, rebuilt: Rows) -> list[str]:
    missing = [f"{name}: the files give it, the rows lack it" for name in sorted(rebuilt.keys() - live.keys())]
    surplus = [f"{name}: the rows have it, the files don't give it" for name in sorted(live.keys() - rebuilt.keys())]
    changed = [
        f"{name}: {column} is {live[name][column]!r:.80} in the rows and {value!r:.80} in the files"
        for name in sorted(live.keys() & rebuilt.keys())
        for column, value in rebuilt[name].items()
        if live[name][column] != value
    ]
    return [*missing, *surplus, *changed]
