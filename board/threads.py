"""A thread: its root and every record that answers it, in the order of their names."""

from dataclasses import dataclass

from sqlmodel import Session, col, func, select

from board.listing import Record
from board.messages import MessageNotFound, to_record
from board.records import MESSAGES, RESULTS
from board.results import to_records
from board.rows import PostRow
from storage.paths import check_path

MAX_PAGE = 100
SUPERSEDED, VISIBLE = "superseded", "visible"


@dataclass(frozen=True)
class ThreadPage:
    """A page of a thread: its root's file name, how many records it has, this page's, and where it goes on."""

    root: str
    count: int
    rows: list[PostRow]
    next: str | None


def read(session: Session, filename: str, *, limit: int, after: str = "") -> ThreadPage:
    """Read the thread that holds `filename`; `after` is an exclusive file name.

    Raises:
        InvalidPath: that can be no file name.
        MessageNotFound: there is no such record on the board.
    """
    check_path(filename)
    shown = col(PostRow.folder).in_((MESSAGES, RESULTS))
    named = select(PostRow.thread).where(shown, PostRow.filename == filename).order_by(PostRow.folder)
    root = session.exec(named).first()
    if root is None:
        raise MessageNotFound(f"There is no record {filename!r:.100} on the board.")
    inside = (shown, PostRow.thread == root)
    query = select(PostRow).where(*inside, PostRow.filename > after).order_by(col(PostRow.filename)).limit(limit + 1)
    rows = list(session.exec(query))
    count = session.exec(select(func.count()).select_from(PostRow).where(*inside)).one()
    return ThreadPage(root, count, rows[:limit], rows[limit - 1].filename if len(rows) > limit else None)


def as_json(session: Session, page: ThreadPage) -> Record:
    """Shape a page of a thread: full records, each with its folder and the state of its text."""
    results = {
        record["filename"]: record
        for record in to_records(session, [row for row in page.rows if row.folder == RESULTS])
    }
    items = [{**results.get(row.filename, to_record(row)), **_state(row)} for row in page.rows]
    return {"root": page.root, "count": page.count, "items": items, "next": page.next}


def _state(row: PostRow) -> Record:
    """`visible`, `superseded` (still readable), `hidden` or `retracted`."""
    state = row.state or (SUPERSEDED if row.superseded_by else VISIBLE)
    return {"folder": row.folder, "state": state, "superseded_by": row.superseded_by}
