"""Tables of who may act."""

from datetime import datetime

from sqlalchemy import JSON, String
from sqlmodel import Field, SQLModel

from agents.roles import Role
from storage.types import UtcDateTime


class UserRow(SQLModel, table=True):
    """A person's account, made by an operator."""

    __tablename__ = "users"

    name: str = Field(primary_key=True)
    role: Role = Field(default=Role.PERSON, sa_type=String)
    created_at: datetime = Field(sa_type=UtcDateTime)


class TokenRow(SQLModel, table=True):
    """A bearer token; only its keyed hash is kept."""

    __tablename__ = "tokens"

    id: str = Field(primary_key=True)
    user: str = Field(foreign_key="users.name", index=True)
    digest: str = Field(unique=True)
    label: str = ""
    scopes: list[str] = Field(sa_type=JSON)
    created_at: datetime = Field(sa_type=UtcDateTime)
    expires_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    revoked_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    last_used_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    last_origin: str = ""


class BrowserSessionRow(SQLModel, table=True):
    """A browser that is signed in; only the keyed hash of its cookie is kept.

    `token_id` is the token it signed in with, if that was the way: when the token dies, so does the session.
    """

    __tablename__ = "browser_sessions"

    id: str = Field(primary_key=True)
    user: str = Field(foreign_key="users.name", index=True)
    digest: str = Field(unique=True)
    token_id: str | None = Field(default=None, foreign_key="tokens.id")
    scopes: list[str] = Field(sa_type=JSON)
    browser: str = ""
    last_origin: str = ""
    created_at: datetime = Field(sa_type=UtcDateTime)
    last_used_at: datetime = Field(sa_type=UtcDateTime)
    expires_at: datetime = Field(sa_type=UtcDateTime)
    ended_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class SignInLinkRow(SQLModel, table=True):
    """A link that signs somebody in, once; only the keyed hash of its secret is kept."""

    __tablename__ = "sign_in_links"

    id: str = Field(primary_key=True)
    user: str = Field(foreign_key="users.name", index=True)
    digest: str = Field(unique=True)
    created_at: datetime = Field(sa_type=UtcDateTime)
    expires_at: datetime = Field(sa_type=UtcDateTime)
    used_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class AgentRow(SQLModel, table=True):
    """Index of `agents/{id}.md` in the central bucket."""

    __tablename__ = "agents"

    agent_id: str = Field(primary_key=True)
    hf_user: str = Field(index=True)
    model: str
    harness: str
    tools: list[str] = Field(sa_type=JSON)
    agent_bucket: str
    joined: str
    bio: str = ""
    content_digest: str


class SpentRow(SQLModel, table=True):
    """One use of a sliding-window budget, so that limits survive restarts and hold across processes."""

    __tablename__ = "spent"

    id: int | None = Field(default=None, primary_key=True)
    budget: str = Field(index=True)
    at: datetime = Field(sa_type=UtcDateTime, index=True)
    ref: str = ""


class AuditRow(SQLModel, table=True):
    """One write, by whom, with what proof, from where."""

    __tablename__ = "audit"

    id: int | None = Field(default=None, primary_key=True)
    at: datetime = Field(sa_type=UtcDateTime, index=True)
    actor: str = Field(index=True)
    proof: str
    origin: str = ""
    action: str = Field(index=True)
    target: str
    flushed_at: datetime | None = Field(default=None, sa_type=UtcDateTime, index=True)
