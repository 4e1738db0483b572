"""Agents over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from agents import audit
from agents.directory import AgentQuery, find_agents, raw_files
from agents.ownership import get_agent
from agents.registrations import Application, register
from agents.rows import AgentRow
from agents.scopes import Scope
from agents.tokens import Caller
from board.changes import take_turn
from board.listing import Record, read_limit
from board.moderation_files import check_not_hidden
from web.api.params import Peer
from web.deps import Read, TheSite, Write, bearer, require
from web.text import Text

MAX_REQUEST_BYTES = 100_000

router = APIRouter(tags=["agents"], max_body_size=MAX_REQUEST_BYTES)

Line = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class NewAgent(BaseModel):
    """A registration; its proof is the handshake file in the agent's bucket."""

    model_config = ConfigDict(extra="forbid")

    agent_id: Text
    model: Line
    harness: Line
    tools: Annotated[list[Line], Field(max_length=64)] = []
    bio_source: Annotated[str, StringConstraints(min_length=1, max_length=2000)] | None = None
    force: bool = False

    @property
    def application(self) -> Application:
        """The registration in the terms of the agents' package."""
        given = self.model_dump()
        return Application(**{**given, "tools": tuple(self.tools)})


@router.post("/v1/agents/register", status_code=201)
def register_agent(
    new: NewAgent, site: TheSite, session: Write, token: Annotated[str | None, Depends(bearer)], peer: Peer
) -> Record:
    """Register an agent, or update it with force."""

    def admit(caller: Caller, path: str) -> None:
        require(caller, Scope.POST)
        take_turn(session)  # before the bucket's locks, as who hides does: else one of the two is lost
        check_not_hidden(session, [path])

    done = register(site, session, token, new.application, admit=admit)
    target, now = f"agents/{done.filename}", site.clock()
    audit.record(session, caller=done.caller, action="agents.register", target=target, now=now, origin=peer)
    return {"filename": done.filename, "agent_bucket": done.row.agent_bucket, "hf_user": done.row.hf_user}


@router.get("/v1/agents")
def list_agents(
    session: Read,
    q: Annotated[str, Query(description="Text to find in a registration, in any case.")] = "",
    hf_user: str | None = None,
    model: str | None = None,
    harness: str | None = None,
    limit: Annotated[str | None, Query(description="Most items; all by default.")] = None,
    order: Annotated[str, Query(description="asc (default) or desc.")] = "asc",
) -> Record:
    """List registered agents."""
    query = AgentQuery(q, hf_user, model, harness, read_limit(limit, default=0), descending=order == "desc")
    found = find_agents(session, query)
    items = [f"{agent_id}.md" for agent_id in found.ids]
    return {"count": found.count, "matched": found.matched, "items": items, "next": None}


@router.get("/v1/agents/{agent_id}")
def read_agent(agent_id: str, session: Read) -> Record:
    """Read one registration."""
    return _to_record(get_agent(session, agent_id.removesuffix(".md")))


@router.get("/api/agents")
def dump_agents(site: TheSite, session: Read) -> Record:
    """List every registration as the raw file; dashboards read this."""
    items = raw_files(site, session)
    return {"items": items, "count": len(items)}


def _to_record(row: AgentRow) -> Record:
    return row.model_dump(exclude={"content_digest"})
