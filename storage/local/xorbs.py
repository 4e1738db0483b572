"""Take verified xorbs in and find their tables again."""

from collections.abc import Collection
from datetime import datetime
from typing import BinaryIO

from sqlalchemy import update
from sqlmodel import Session, col, select

from storage.errors import Corrupt
from storage.local import upserts
from storage.local.blobs import Blobs
from storage.local.rows import XorbRow
from storage.xet.hashes import Digest, from_text, to_text
from storage.xet.tables import ChunkTable, parse_table


def keep(session: Session, files: Blobs, file: BinaryIO, table: ChunkTable, digest: Digest, *, now: datetime) -> None:
    """Store a verified xorb that lies in a temporary file; one that is here already stays as it is.

    The row goes in first: whoever holds it is alone in replacing the file, so that file and table always
    belong together even when two clients send the same chunks packed differently. A crash before the
    commit leaves a file without a row, which the next upload replaces.
    """
    name = to_text(digest)
    row = {"digest": name, "size": table.stored_bytes, "unpacked": table.size_bytes, "chunks": table.to_bytes()}
    if upserts.insert_new(session, XorbRow, [row | {"stored_at": now, "mentioned_at": now}]):
        file.truncate(table.stored_bytes)
        files.keep(file, name)
    else:
        mention(session, [name], now=now)


def is_here(session: Session, digest: Digest) -> bool:
    """Tell whether a xorb is stored."""
    return session.exec(select(XorbRow.digest).where(XorbRow.digest == to_text(digest))).first() is not None


def mention(session: Session, digests: Collection[str], *, now: datetime) -> None:
    """Note that xorbs were named just now: clients may rely on them for three more weeks."""
    for some in upserts.slices(sorted(digests)):
        session.execute(update(XorbRow).where(col(XorbRow.digest).in_(some)).values(mentioned_at=now))


def tables(session: Session, digests: Collection[Digest]) -> dict[Digest, ChunkTable]:
    """Load the tables of stored xorbs.

    Raises:
        Corrupt: one isn't recorded.
    """
    found: dict[Digest, ChunkTable] = {}
    for some in upserts.slices(sorted(to_text(digest) for digest in digests)):
        for name, chunks in session.exec(select(XorbRow.digest, XorbRow.chunks).where(col(XorbRow.digest).in_(some))):
            found[from_text(name)] = parse_table(chunks)
    if len(found) != len(set(digests)):
        raise Corrupt("A stored file is built on a xorb that is not recorded.")
    return found
