"""Tables of who may act."""

from datetime import datetime

from sqlalchemy import JSON
from sqlmodel import Field, SQLModel

from storage.types import UtcDateTime


class UserRow(SQLModel, table=True):
    """A person's account, made by an operator."""

    __tablename__ = "users"

    name: str = Field(primary_key=True)
    is_organizer: bool = False
    created_at: datetime = Field(sa_type=UtcDateTime)


class TokenRow(SQLModel, table=True):
    """A bearer token; only its keyed hash is kept."""

    __tablename__ = "tokens"

    id: str = Field(primary_key=True)
    user: str = Field(foreign_key="users.name", index=True)
    digest: str = Field(unique=True)
    label: str = ""
    created_at: datetime = Field(sa_type=UtcDateTime)
    expires_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    revoked_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    last_used_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


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
    actor: str
    proof: str
    origin: str = ""
    action: str
    target: str
