"""Store what the server itself writes, through the same xorbs as everyone else's bytes."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from sqlmodel import Session

from storage.local import contents, xorbs
from storage.local.blobs import Blobs
from storage.local.contents import Content
from storage.xet.cuts import CUT_BYTES, batch, cut
from storage.xet.hashes import Digest, chunk_hash, file_hash, merkle_root, to_text
from storage.xet.shards import Term
from storage.xet.xorbs import serialise_xorb

Nodes = list[tuple[bytes, int]]


def write(session: Session, files: Blobs, content: bytes | Path, *, now: datetime) -> Content:
    """Store bytes, or the file at a path, and return the content, not yet registered; holds one xorb in memory."""
    nodes: Nodes = []
    terms: list[Term] = []
    for pieces in batch(cut(_pieces(content))):
        added: Nodes = [(chunk_hash(piece), len(piece)) for piece in pieces]
        nodes += added
        terms.append(_write_xorb(session, files, pieces, added, now=now))
    size = sum(length for _, length in nodes)
    return contents.verified(file_hash(nodes), size, terms, (digest for digest, _ in nodes))


def _write_xorb(session: Session, files: Blobs, pieces: list[bytes], nodes: Nodes, *, now: datetime) -> Term:
    digest: Digest = merkle_root(nodes)
    if not xorbs.mention(session, [to_text(digest)], now=now):
        packed, table = serialise_xorb(pieces)
        with files.incoming() as file:
            file.write(packed)
            xorbs.keep(session, files, file, table, digest, now=now)
    return Term(digest, 0, len(pieces), sum(length for _, length in nodes))


def _pieces(content: bytes | Path) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
        return
    with content.open("rb") as file:
        while piece := file.read(CUT_BYTES):
            yield piece
