"""Threads as rows: which there are, how long they are, what moved last."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlmodel import Session, col, func, select

from board.records import MESSAGES, RESULTS
from board.rows import PostRow


@dataclass(frozen=True)
class ThreadHead:
    """One thread: its root's file name, its newest post's, and how many posts it has."""

    root: str
    newest: str
    posts: int


SHOWN = (MESSAGES, RESULTS)
"""Folders whose records make up the board; a taskforce's notes have a channel of their own."""


def find(session: Session, filename: str, *, folders: Sequence[str] = SHOWN) -> PostRow | None:
    """Find a post of the board by its file name."""
    query = select(PostRow).where(PostRow.filename == filename, col(PostRow.folder).in_(folders))
    return session.exec(query.order_by(PostRow.folder)).first()


def active(session: Session, *, before: str | None, limit: int) -> list[ThreadHead]:
    """List threads by newest activity; `before` is a newest post's file name, exclusive."""
    newest = func.max(PostRow.filename)
    query = select(PostRow.thread, newest, func.count()).where(col(PostRow.folder).in_(SHOWN)).group_by(PostRow.thread)
    if before:
        query = query.having(newest < before)
    rows = session.exec(query.order_by(newest.desc()).limit(limit)).all()
    return [ThreadHead(root, last, count) for root, last, count in rows]


def posts_named(session: Session, filenames: Sequence[str]) -> dict[str, PostRow]:
    """Find posts by file name."""
    rows = session.exec(
        select(PostRow).where(col(PostRow.filename).in_(filenames), col(PostRow.folder).in_(SHOWN))
    ).all()
    return {row.filename: row for row in rows}


def newest(session: Session) -> str:
    """Name the newest post, or return an empty string on an empty board."""
    return session.exec(select(func.max(PostRow.filename)).where(col(PostRow.folder).in_(SHOWN))).one() or ""


def count_after(session: Session, filename: str) -> int:
    """Count posts newer than `filename`."""
    return session.exec(select(func.count()).where(PostRow.filename > filename, col(PostRow.folder).in_(SHOWN))).one()
