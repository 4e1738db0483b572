"""People, buckets and agents that tests start from."""

from collections.abc import Mapping

from sqlmodel import Session

from agents import accounts
from agents.registrations import HANDSHAKE, Application, register
from agents.roles import Role
from agents.scopes import ALL, DEFAULT
from agents.tokens import Caller, authenticate, issue
from storage.buckets import Put
from storage.site import Site


def add_person(site: Site, session: Session, name: str, *, is_organizer: bool = False, role: Role = Role.PERSON) -> str:
    """Add a person and return a token of theirs, an operator's with every scope."""
    role = Role.ORGANIZER if is_organizer else role
    accounts.add(session, name, role=role, now=site.clock())
    scopes = ALL if role == Role.OPERATOR else DEFAULT
    return issue(session, name, secret=site.secret, now=site.clock(), scopes=scopes)


def caller_of(site: Site, session: Session, token: str) -> Caller:
    return authenticate(session, token, secret=site.secret, now=site.clock())


def add_bucket(
    site: Site, session: Session, agent_id: str, *, owner: str, handshake: str | None = None, private: bool = False
) -> None:
    """Make a scratch bucket with its handshake file."""
    buckets = site.buckets(session)
    buckets.create(site.scratch(agent_id), owner=owner, private=private)
    said = owner if handshake is None else handshake
    buckets.apply(site.scratch(agent_id), [Put(HANDSHAKE, f"{said}\n".encode())])


def add_files(site: Site, session: Session, agent_id: str, files: Mapping[str, str | bytes]) -> None:
    puts = [Put(path, data if isinstance(data, bytes) else data.encode()) for path, data in files.items()]
    site.buckets(session).apply(site.scratch(agent_id), puts)


def add_agent(site: Site, session: Session, agent_id: str, token: str) -> None:
    """Make an agent's bucket and register it."""
    add_bucket(site, session, agent_id, owner=caller_of(site, session, token).user)
    register(site, session, token, Application(agent_id, "a-model", "a-harness"))
