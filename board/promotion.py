"""The one way a record enters the central bucket, from a scratch bucket or from the wire.

A record's stamp is later than that of every record on the board, whatever the clock says, so that
sorting names sorts time and a reader who holds a cursor never misses a later post.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlmodel import Session, func, select

from agents import limits, quotas
from agents.ownership import agent_of_bucket, owned_bucket
from agents.sources import MAX_BYTES, RecordTooLarge, read_record
from agents.tokens import Caller
from board import events
from board.changes import take_turn
from board.records import (
    BROADCASTS,
    INBOX,
    MESSAGES,
    PROMOTED_DIGEST,
    PROMOTED_FROM,
    RESULTS,
    index_file,
    parse_name,
)
from board.rows import PostRow, PromotionRow
from storage.buckets import Put
from storage.clock import to_stamp
from storage.errors import Conflict, Invalid, InvalidFrontmatter
from storage.frontmatter import Document, Value, serialise
from storage.paths import Source, parse_source
from storage.site import Site

CONTENT_TYPE = "text/markdown; charset=utf-8"
_EVENTS = {MESSAGES: events.Kind.MESSAGE, RESULTS: events.Kind.RESULT}
VERIFICATION = "verification"
"""The type of the verifier's posts; nobody else may use it."""

SERVER_KEYS = frozenset(
    {"agent", "timestamp", "via", "verification", "proof", "rank", "broadcast", "channel"}
    | {PROMOTED_FROM, PROMOTED_DIGEST, "retracted", "hidden", "imported_from", "imported_verification"}
)
"""Frontmatter that only the server writes; what a client put there is dropped."""


class AlreadyPromoted(Conflict):
    """These bytes of this source are on the board already; the hint is the file's name."""

    code = "ALREADY_PROMOTED"


class UnstorableText(Invalid):
    """A body holds a character that can't be stored."""

    code = "INVALID_REQUEST"


@dataclass(frozen=True)
class SourceFile:
    """A record in its author's scratch bucket."""

    source: Source
    agent_id: str
    document: Document
    digest: str

    @property
    def dedup(self) -> tuple[str, str]:
        """What makes a second promotion of the same bytes recognisable."""
        return str(self.source), self.digest


@dataclass(frozen=True)
class Published:
    """A record that is now on the board."""

    filename: str
    path: str
    row: PostRow


def load_source(site: Site, session: Session, caller: Caller | None, source: str) -> SourceFile:
    """Read the record that `source` names in the caller's own scratch bucket.

    Raises:
        InvalidPath, Unauthorized, BucketNotOwned, NotRegistered, BucketMissing: in this order.
        SourceNotFound, RecordTooLarge, InvalidFrontmatter: of the file itself.
    """
    where, agent_id = own_source(site, session, caller, source)
    record = read_record(site, session, where)
    return SourceFile(where, agent_id, record.document, record.digest)


def own_source(site: Site, session: Session, caller: Caller | None, source: str) -> tuple[Source, str]:
    """Return the place that `source` names in the caller's own scratch bucket, and the agent whose bucket it is.

    Raises:
        InvalidPath, Unauthorized, BucketNotOwned, NotRegistered, BucketMissing: in this order.
    """
    where = parse_source(source, dot_led=True)
    agent_id = agent_of_bucket(site, where.bucket)
    owned_bucket(site, session, caller, agent_id)
    return where, agent_id


def publish(
    site: Site,
    session: Session,
    *,
    folder: str,
    handle: str,
    frontmatter: Mapping[str, Value],
    body: str,
    via: str,
    dedup: tuple[str, str] | None = None,
    inbox: Sequence[str] = (),
    broadcast: bool = False,
    proof: str | None = None,
) -> Published:
    """Put a record on the board: its file, its inbox copies and its rows, all or none.

    `frontmatter` is the client's; the server's keys are put before it. `dedup` is the source and its digest.
    `proof` is what the post says about who wrote it where nobody proved it.

    Raises:
        AlreadyPromoted: the same bytes of the same source are in this folder.
        RateLimited: the source's bucket has promoted as many records as a minute allows.
        InvalidFrontmatter, UnstorableText, RecordTooLarge: the record can't be stored as it is.
    """
    if dedup:
        _check_new(session, folder, dedup)
        spend_promotion(site, session, dedup[0])
    at = next_stamp_at(session, site.clock())
    if dedup:
        _check_new(session, folder, dedup)  # again: the same call may have been under way before our turn
    more: dict[str, Value] = {**({"broadcast": True} if broadcast else {}), **({"proof": proof} if proof else {})}
    data = stored_form(_server_keys(at, handle, via, dedup) | more, frontmatter, body)
    filename = f"{to_stamp(at)}_{handle}.md"
    copies = [*([BROADCASTS] if broadcast else []), *(f"{INBOX}/{name}" for name in inbox)]
    row = _write(site, session, [f"{name}/{filename}" for name in (folder, *copies)], data)
    _announce(session, row, now=site.clock())
    return Published(filename, f"{folder}/{filename}", row)


def _write(site: Site, session: Session, paths: Sequence[str], data: bytes) -> PostRow:
    """Store a record at its own path, the first, and as copies, with their rows; return its own."""
    site.buckets(session).apply(site.central, [Put(path, data, CONTENT_TYPE) for path in paths])
    row, *_ = [index_file(session, path, data) for path in paths]
    assert row is not None, f"{paths[0]} is not a record's place"
    return row


def _announce(session: Session, row: PostRow, *, now: datetime) -> None:
    told = {
        "filename": row.filename,
        "folder": row.folder,
        "agent": row.agent,
        "via": row.via,
        "thread": row.thread,
    }
    events.record(session, _EVENTS.get(row.folder, events.Kind.NOTE), told, now=now)


def type_of(kind: object, *, default: str) -> str:
    """Return the type that a client's post gets: its own word, or the default.

    Raises:
        InvalidFrontmatter: the word is the verifier's.
    """
    if kind == VERIFICATION:
        raise InvalidFrontmatter(f"The type {VERIFICATION!r} is the verifier's own.", hint="Leave type out.")
    return kind if isinstance(kind, str) and kind else default


def next_stamp_at(session: Session, now: datetime) -> datetime:
    """The moment of the next record: now, or just after the newest record if the clock is not past it."""
    take_turn(session)
    newest = session.exec(select(func.max(PostRow.filename))).one()
    name = parse_name(newest) if newest else None
    return max(now, name.latest_at + timedelta(milliseconds=1)) if name else now


def _check_new(session: Session, folder: str, dedup: tuple[str, str]) -> None:
    row = session.get(PromotionRow, (folder, *dedup))
    if row is not None:
        raise AlreadyPromoted(f"This file is on the board already, as {row.filename}.", hint=row.filename)


def spend_promotion(site: Site, session: Session, source: str) -> None:
    """Take one promotion from the budgets of the source's bucket.

    Raises:
        RateLimited: it has none left for now.
    """
    agent_id = agent_of_bucket(site, parse_source(source, dot_led=True).bucket)
    kinds = quotas.promotions(site.challenge.limits, agent_id)
    limits.take(session, quotas.windows(session, kinds), site.clock(), ref=source)


def _server_keys(at: datetime, handle: str, via: str, dedup: tuple[str, str] | None) -> dict[str, Value]:
    keys: dict[str, Value] = {"agent": handle, "timestamp": at.strftime("%Y-%m-%d %H:%M UTC"), "via": via}
    if dedup:
        keys |= {PROMOTED_FROM: dedup[0], PROMOTED_DIGEST: dedup[1]}
    return keys


def stored_form(server: Mapping[str, Value], client: Mapping[str, Value], body: str) -> bytes:
    """Write a record as it is stored: the server's keys, then the client's that are none of them.

    Raises:
        InvalidFrontmatter, UnstorableText, RecordTooLarge: it can't be stored.
    """
    if "\0" in body:
        raise UnstorableText("The body holds a NUL character.")
    rest = {key: value for key, value in client.items() if key not in SERVER_KEYS | server.keys()}
    data = serialise({**server, **rest}, body).encode("utf-8")
    if not (len(data) <= MAX_BYTES):
        raise RecordTooLarge(f"The record has {len(data)} bytes; at most {MAX_BYTES} are accepted.")
    return data
