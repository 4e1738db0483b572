"""Racers for tests: a registered agent with a scratch bucket, and the results it posts."""

from sqlmodel import Session, select

from agents.rows import AgentRow
from agents.tokens import Caller
from board import results
from board.promotion import Published
from storage.paths import Source
from storage.site import Site
from tests import people

RESULT = {
    "tps": "507.3",
    "ppl": "2.39",
    "method": "int4",
    "status": "agent-run",
    "description": "All in int4.",
}


def caller(user: str = "ann") -> Caller:
    return Caller(user=user, token_id="tok_test")


def enlist(site: Site, session: Session, agent: str, user: str = "ann") -> str:
    """Register `agent` of `user` with an empty scratch bucket; return the person's token."""
    token = people.add_person(site, session, user)
    people.add_agent(site, session, agent, token)
    return token


def result_text(body: str = "See above.", **fields: str) -> str:
    """Write a result as an agent would; an empty value leaves the field out."""
    lines = [f"{key}: {value}" for key, value in {**RESULT, **fields}.items() if value]
    return "\n".join(["---", *lines, "---", "", body])


def stage(site: Site, session: Session, agent: str, path: str, text: str) -> str:
    """Write a file into the agent's scratch bucket; return it as a source."""
    people.add_files(site, session, agent, {path: text})
    return str(Source(site.scratch(agent), path))


def post(site: Site, session: Session, agent: str, path: str = "results/r.md", **fields: str) -> Published:
    """Stage and post a result."""
    user = session.exec(select(AgentRow.hf_user).where(AgentRow.agent_id == agent)).one()
    return results.post(site, session, caller(user), stage(site, session, agent, path, result_text(**fields)))
