"""Note that xorbs or contents were named just now: clients may rely on them for three more weeks."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import update
from sqlmodel import Session, col, select

from storage.local import upserts
from storage.local.rows import ContentRow, XorbRow

Mentioned = type[XorbRow] | type[ContentRow]


def mention(session: Session, table: Mentioned, digests: Collection[str], *, now: datetime) -> int:
    """Note a mention of those that are here, and count them. Until the transaction ends none can be swept."""
    count = 0
    for some in upserts.slices(lock(session, table, digests)):
        session.execute(update(table).where(col(table.digest).in_(some)).values(mentioned_at=now))
        count += len(some)
    return count


def lock(session: Session, table: Mentioned, digests: Collection[str]) -> list[str]:
    """Hold the rows of those that are here until the transaction ends, in order: then two writers don't deadlock."""
    held: list[str] = []
    for some in upserts.slices(sorted(set(digests))):
        asked = select(table.digest).where(col(table.digest).in_(some)).order_by(table.digest)
        held += session.exec(asked.with_for_update(key_share=True))
    return held
