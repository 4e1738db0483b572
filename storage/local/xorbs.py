"""Take verified xorbs in and find their tables again."""

from collections.abc import Collection
from datetime import datetime
from typing import BinaryIO

from sqlmodel import Session, col, select

from storage import quota_meter
from storage.errors import Corrupt
from storage.local import mentions, upserts
from storage.local.blobs import Blobs
from storage.local.rows import ContentXorbRow, XorbRow
from storage.xet.hashes import Digest, from_text, to_text
from storage.xet.tables import ChunkTable, parse_table

_ROWS_AT_ONCE = 16  # a table may have 320 KB


def keep(session: Session, files: Blobs, file: BinaryIO, table: ChunkTable, digest: Digest, *, now: datetime) -> None:
    """Store a verified xorb that lies in a temporary file; one that is here already stays as it is.

    The row goes in first: whoever holds it is alone in replacing the file, so that file and table always
    belong together even when two clients send the same chunks packed differently. A crash before the
    commit leaves a file without a row, which the next upload replaces. One that was set aside comes back under files
    that are built on it: whoever metered them meanwhile took its chunks for lost.
    """
    name = to_text(digest)
    if mention(session, [name], now=now):
        return
    built_on_it = session.exec(select(ContentXorbRow.content).where(ContentXorbRow.xorb == name)).all()
    quota_meter.recast(session, built_on_it)
    row = {"digest": name, "size": table.stored_bytes, "unpacked": table.size_bytes, "chunks": table.to_bytes()}
    if upserts.insert_new(session, XorbRow, [row | {"stored_at": now, "mentioned_at": now}]):
        file.truncate(table.stored_bytes)
        files.keep(file, name)


def mention(session: Session, digests: Collection[str], *, now: datetime) -> int:
    """Note that xorbs were named just now: clients may rely on them for three more weeks. Count those that are here.

    Until the transaction ends none of them can be swept.
    """
    return mentions.mention(session, XorbRow, digests, now=now)


def find_tables(session: Session, digests: Collection[Digest]) -> dict[Digest, ChunkTable]:
    """Load the tables of those xorbs that are stored."""
    found: dict[Digest, ChunkTable] = {}
    for some in upserts.slices(sorted(to_text(digest) for digest in digests)):
        query = select(XorbRow.digest, XorbRow.chunks).where(col(XorbRow.digest).in_(some))
        rows = session.exec(query.execution_options(yield_per=_ROWS_AT_ONCE))
        found.update((from_text(name), parse_table(chunks)) for name, chunks in rows)
    return found


def tables(session: Session, digests: Collection[Digest]) -> dict[Digest, ChunkTable]:
    """Load the tables of stored xorbs.

    Raises:
        Corrupt: one isn't recorded.
    """
    found = find_tables(session, digests)
    if len(found) != len(set(digests)):
        raise Corrupt("A stored file is built on a xorb that is not recorded.", hint="Upload the file again.")
    return found
