"""One's own tokens over HTTP."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from agents import audit, minting, tokens
from agents.rows import TokenRow
from agents.scopes import Scope, read_scopes
from agents.tokens import Issued
from board.listing import Record
from storage.clock import to_iso_ms
from web.api.params import Peer
from web.deps import Read, TheCaller, TheSite, Write
from web.text import Text

MAX_REQUEST_BYTES = 20_000

router = APIRouter(tags=["people"], max_body_size=MAX_REQUEST_BYTES)

Label = Annotated[Text, StringConstraints(max_length=100)]


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("that moment is out of range") from error


Moment = Annotated[AwareDatetime, AfterValidator(_in_utc)]


class NewToken(BaseModel):
    """What a new token is called, what it may do, and when it ends; left out, the usual scopes and no end."""

    model_config = ConfigDict(extra="forbid")

    label: Label = ""
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=len(Scope))] | None = None
    expires_at: Moment | None = None

    @property
    def wish(self) -> minting.Wish:
        """The request in the terms of the agents' package."""
        return minting.Wish(self.label, None if self.scopes is None else frozenset(self.scopes), self.expires_at)


@router.get("/v1/me/tokens")
def list_tokens(site: TheSite, session: Read, caller: TheCaller) -> Record:
    """List your valid tokens: what they may do, and where and when they were last used."""
    rows = tokens.tokens_of(session, caller.user, now=site.clock())
    return {"count": len(rows), "items": [_shown(row) for row in rows]}


@router.post("/v1/me/tokens", status_code=201)
def make_token(
    new: NewToken, site: TheSite, session: Write, caller: TheCaller, peer: Peer, response: Response
) -> Record:
    """Make a token; its text is in this answer alone."""
    made = minting.mint(session, caller, new.wish, secret=site.secret, now=site.clock())
    audit.record(session, caller=caller, action="tokens.make", target=made.row.id, now=site.clock(), origin=peer)
    return _handed_out(response, made)


@router.post("/v1/me/tokens/{token_id}:rotate", status_code=201)
def rotate_token(
    token_id: str, site: TheSite, session: Write, caller: TheCaller, peer: Peer, response: Response
) -> Record:
    """Replace one of your tokens; the old one is refused from now on."""
    made = minting.rotate(session, caller, token_id, secret=site.secret, now=site.clock())
    audit.record(session, caller=caller, action="tokens.rotate", target=token_id, now=site.clock(), origin=peer)
    return _handed_out(response, made)


@router.delete("/v1/me/tokens/{token_id}", status_code=204)
def revoke_token(token_id: str, site: TheSite, session: Write, caller: TheCaller, peer: Peer) -> None:
    """Revoke one of your tokens at once, with what was handed out under it."""
    tokens.end(session, tokens.get_own(session, caller.user, token_id), now=site.clock())
    audit.record(session, caller=caller, action="tokens.revoke", target=token_id, now=site.clock(), origin=peer)


def _handed_out(response: Response, made: Issued) -> Record:
    response.headers["Cache-Control"] = "no-store"
    return {"token": made.text, **_shown(made.row)}


def _shown(row: TokenRow) -> Record:
    return {
        "id": row.id,
        "label": row.label,
        "scopes": sorted(read_scopes(row.scopes)),
        "created_at": to_iso_ms(row.created_at),
        "expires_at": _moment(row.expires_at),
        "last_used_at": _moment(row.last_used_at),
        "last_origin": row.last_origin,
    }


def _moment(at: datetime | None) -> str | None:
    return to_iso_ms(at) if at else None
