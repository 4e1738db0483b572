"""Tables of the runner: jobs under a lease, and the volleys they are draws of."""

from datetime import datetime

from sqlalchemy import JSON, UniqueConstraint
from sqlmodel import Field, SQLModel

from storage.types import UtcDateTime


class JobRow(SQLModel, table=True):
    """One run of one snapshot. `kind` is `benchmark` (run folder in the scratch bucket) or `draw` (audit bucket).

    `state` is `queued → preparing → serving → measuring → completed | failed | timed_out | cancelled` and only
    moves forward; `stage` is the last one before its end. A worker holds `fence` while `lease_until` lies ahead; a
    write with an older fence is refused.
    """

    __tablename__ = "jobs"
    __table_args__ = (
        UniqueConstraint("run_bucket", "run_prefix", name="uq_jobs_run_bucket_run_prefix"),
        UniqueConstraint("user", "idempotency_key", name="uq_jobs_user_idempotency_key"),
    )

    id: str = Field(primary_key=True)
    kind: str
    state: str = Field(index=True)
    stage: str = ""
    agent_id: str = Field(index=True)
    user: str
    submission_bucket: str
    submission_prefix: str
    content_hash: str = Field(index=True)
    run_bucket: str
    run_prefix: str
    hardware: str
    volley_id: str | None = Field(default=None, foreign_key="volleys.id", index=True)
    draw: int | None = None
    idempotency_key: str | None = None
    posts_result: bool = False
    cancel_requested: bool = False
    created_at: datetime = Field(sa_type=UtcDateTime, index=True)
    started_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    finished_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    worker: str | None = None
    fence: int = 0
    lease_until: datetime | None = Field(default=None, sa_type=UtcDateTime)
    progress_done: int = 0
    progress_total: int = 0
    fault: str = ""
    code: str = ""
    message: str = ""
    summary: dict[str, object] | None = Field(default=None, sa_type=JSON)
    times: dict[str, float] = Field(default_factory=dict, sa_type=JSON)


class VolleyRow(SQLModel, table=True):
    """A verification: a fixed, disclosed number of draws of one snapshot for one result."""

    __tablename__ = "volleys"

    id: str = Field(primary_key=True)
    result: str = Field(index=True)
    agent_id: str
    user: str
    content_hash: str = Field(index=True)
    submission_bucket: str
    submission_prefix: str
    planned: int
    replaced: int = 0
    state: str = Field(index=True)
    rule_version: int
    opened_at: datetime = Field(sa_type=UtcDateTime)
    closed_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
