"""The audit log as files: `audit/{YYYYMM}.jsonl` in the audit bucket, each line once.

{"id":17,"at":"2026-11-29T12:00:00.000Z","actor":"ada","proof":"token:tok_…","origin":"::1","action":"…","target":"…"}

A line and the mark that it is written are one transaction: whoever is killed in between has written neither.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlmodel import Session, col, func, select

from agents.rows import AuditRow
from storage.buckets import Put
from storage.clock import to_iso_ms
from storage.site import Site

FOLDER = "audit"
_AT_ONCE = 10_000
_LONGEST_WAIT = timedelta(hours=1)
_LINE_BYTES = 200
_WORTH = 200
"""A file is put together anew for one part in so many of its lines, or after the longest wait."""


def flush(site: Site, session: Session) -> int:
    """Write up the rows that no file has yet, in the order of their ids; returns how many."""
    asked = select(AuditRow).where(col(AuditRow.flushed_at).is_(None)).order_by(col(AuditRow.id)).limit(_AT_ONCE)
    rows = session.exec(asked.with_for_update()).all()
    by_month: dict[str, list[AuditRow]] = defaultdict(list)
    for row in rows:
        by_month[f"{row.at:%Y%m}"].append(row)
        row.flushed_at = site.clock()
    for month, lines in by_month.items():
        _append(site, session, f"{FOLDER}/{month}.jsonl", [line_of(row) for row in lines])
    session.flush()
    return len(rows)


def is_due(site: Site, session: Session) -> bool:
    """Tell whether the rows that no file has yet are worth writing up.

    The month's file is read, hashed and its last xorb stored anew each time, so a long file waits for more lines.
    """
    waits = col(AuditRow.flushed_at).is_(None)
    count, oldest = session.exec(select(func.count(), func.min(col(AuditRow.at))).where(waits)).one()
    if not count:
        return False
    stored = site.buckets(session).stat(site.audit, f"{FOLDER}/{site.clock():%Y%m}.jsonl")
    is_worth_it = count * _LINE_BYTES * _WORTH >= (stored.size if stored else 0)
    return is_worth_it or oldest is None or oldest <= site.clock() - _LONGEST_WAIT


def line_of(row: AuditRow) -> bytes:
    """Write one row as a line."""
    said = {
        "id": row.id,
        "at": to_iso_ms(row.at),
        "actor": row.actor,
        "proof": row.proof,
        "origin": row.origin,
        "action": row.action,
        "target": row.target,
    }
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _append(site: Site, session: Session, path: str, lines: Sequence[bytes]) -> None:
    """Put a longer file in the place of the old one; the store keeps what both have in common once."""
    buckets = site.buckets(session)
    old: Iterable[bytes] = buckets.open(site.audit, path) if buckets.stat(site.audit, path) else ()
    with TemporaryDirectory() as folder:
        whole = Path(folder) / "audit.jsonl"
        with whole.open("wb") as file:
            file.writelines(old)
            file.writelines(lines)
        buckets.apply(site.audit, [Put(path, whole, "application/x-ndjson")])
