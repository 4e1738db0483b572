"""The audit log over HTTP, for operators."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from agents import audit
from agents.audit import AuditQuery
from agents.rows import AuditRow
from board.listing import Record, read_limit, read_query
from storage.clock import to_iso_ms
from storage.errors import InvalidQuery
from web.deps import Read, the_operator

router = APIRouter(tags=["people"])

_DEFAULT_LIMIT = 50
_LARGEST_ID = 2**63 - 1


def audit_query(
    since: Annotated[str | None, Query(description="As in every list; inclusive.")] = None,
    until: Annotated[str | None, Query(description="As in every list; inclusive.")] = None,
    actor: Annotated[str | None, Query(description="Only writes of this user.")] = None,
    action: Annotated[str | None, Query(description="Only writes of this kind, such as messages.post.")] = None,
    limit: Annotated[str | None, Query(description="Lines in a page; 50 by default, 0 or less for all.")] = None,
    order: Annotated[str | None, Query(description="desc (default) or asc.")] = None,
    after: Annotated[str | None, Query(description="Only lines after this id.")] = None,
    before: Annotated[str | None, Query(description="Only lines before this id.")] = None,
) -> AuditQuery:
    """Read the list grammar in so far as the log has it; empty parameters (of a form) are absent."""
    common = read_query({"since": since, "until": until, "order": order})
    return AuditQuery(
        since=common.since,
        until=common.until,
        actor=actor or None,
        action=action or None,
        limit=read_limit(limit or None, default=_DEFAULT_LIMIT),
        descending=common.descending,
        after=_read_id("after", after),
        before=_read_id("before", before),
    )


AuditListing = Annotated[AuditQuery, Depends(audit_query)]


@router.get("/v1/audit", dependencies=[Depends(the_operator)])
def list_audit(query: AuditListing, session: Read) -> Record:
    """List writes: who, by what proof, from where, what, to what."""
    found = audit.find(session, query)
    items = [_shown(row) for row in found.rows]
    return {"count": found.count, "matched": found.matched, "items": items, "next": found.next}


def _shown(row: AuditRow) -> Record:
    return {
        "id": row.id,
        "at": to_iso_ms(row.at),
        "actor": row.actor,
        "proof": row.proof,
        "origin": row.origin,
        "action": row.action,
        "target": row.target,
    }


def _read_id(name: str, text: str | None) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= _LARGEST_ID):
        raise InvalidQuery(f"{name} must be the id of a line, not {text!r:.40}.")
    return int(text)
