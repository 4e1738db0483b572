"""Set damaged records aside, so that a fresh upload of the same bytes makes everything whole again."""

from collections.abc import Sequence

from sqlalchemy import delete
from sqlmodel import Session, col, select

from storage import quota_meter
from storage.local import upserts
from storage.local.blobs import Blobs
from storage.local.claims import Claimed
from storage.local.rows import ClaimRow, ContentRow, ContentXorbRow, XorbRow


def set_xorb_aside(session: Session, blobs: Blobs, name: str) -> None:
    """Forget a damaged xorb and move its file to `quarantine/`; nobody may build on it any more.

    Clients must be told to forget it too, by a new generation of the store.
    """
    session.execute(delete(XorbRow).where(col(XorbRow.digest) == name))
    session.execute(delete(ClaimRow).where(col(ClaimRow.kind) == Claimed.XORB.value, col(ClaimRow.digest) == name))
    session.flush()
    quota_meter.forget(session)
    blobs.quarantine(name)


def set_contents_aside(session: Session, names: Sequence[str]) -> None:
    """Forget what damaged contents are made of; files that name them stay, unreadable until one is uploaded again."""
    for some in upserts.slices(names):
        session.execute(delete(ContentRow).where(col(ContentRow.digest).in_(some)))
    quota_meter.forget(session)


def mend_references(session: Session, content: str, xorbs: Sequence[str]) -> None:
    """Note anew what an undamaged content is built on, so that no sweep takes it."""
    rows = [{"xorb": xorb, "content": content} for xorb in xorbs]
    upserts.insert_new(session, ContentXorbRow, rows)


def references(session: Session, content: str) -> set[str]:
    """Return the xorbs that a content is noted to be built on."""
    return set(session.exec(select(ContentXorbRow.xorb).where(ContentXorbRow.content == content)))
