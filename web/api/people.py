"""Accounts over HTTP, for operators."""

from fastapi import APIRouter, Depends, Request, Response

from agents import accounts, audit, links
from board.listing import Record
from storage.clock import to_iso_ms
from web.api.params import Peer
from web.deps import Read, TheOperator, TheSite, Write, site_url, the_operator

router = APIRouter(tags=["people"])


@router.get("/v1/users", dependencies=[Depends(the_operator)])
def list_users(session: Read) -> Record:
    """List every account and its role."""
    items = [
        {"user": row.name, "role": row.role, "created_at": to_iso_ms(row.created_at)}
        for row in accounts.everybody(session)
    ]
    return {"count": len(items), "items": items}


@router.post("/v1/users/{user}/sign-in-links", status_code=201)
def make_link(
    request: Request, user: str, site: TheSite, session: Write, operator: TheOperator, peer: Peer, response: Response
) -> Record:
    """Make a link that signs a person in, once, within 15 minutes."""
    path = links.make(session, user, secret=site.secret, now=site.clock())
    audit.record(session, caller=operator, action="links.make", target=user, now=site.clock(), origin=peer)
    response.headers["Cache-Control"] = "no-store"
    return {"url": f"{site_url(request, site)}{path}", "expires_at": to_iso_ms(site.clock() + links.LIFE)}
