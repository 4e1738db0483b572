"""Tables that index the record; `paddock reindex` rebuilds each of them from the central bucket's files."""

from datetime import datetime

from sqlalchemy import JSON, UniqueConstraint
from sqlmodel import Field, SQLModel

from storage.types import UtcDateTime


class PostRow(SQLModel, table=True):
    """Index of one record in `message_board/`, `results/` or a taskforce; `folder` says where."""

    __tablename__ = "posts"
    __table_args__ = (UniqueConstraint("folder", "filename", name="uq_posts_folder_filename"),)

    id: int | None = Field(default=None, primary_key=True)
    folder: str
    filename: str = Field(index=True)
    agent: str = Field(index=True)
    type: str = ""
    via: str
    posted_at: datetime = Field(sa_type=UtcDateTime, index=True)
    frontmatter: dict[str, object] = Field(sa_type=JSON)
    body: str
    content: str
    haystack: str
    thread: str = Field(index=True)
    content_digest: str


class RefRow(SQLModel, table=True):
    """A record's reference to another record's file name; the first one makes it a reply."""

    __tablename__ = "refs"

    folder: str = Field(primary_key=True)
    filename: str = Field(primary_key=True)
    position: int = Field(primary_key=True)
    target: str = Field(index=True)


class InboxRow(SQLModel, table=True):
    """A delivery of a message to a handle (a copy lies at `inbox/{handle}/{filename}`), or, as `*`, to everybody."""

    __tablename__ = "inbox"

    handle: str = Field(primary_key=True)
    filename: str = Field(primary_key=True)


class ResultRow(SQLModel, table=True):
    """What a result claims and what verification found; the post itself is a `PostRow` of folder `results`.

    `verification` is a `board.verdicts.State`; `draws` are the scores of the measured draws; `hardware` is
    empty where neither the verdict nor the post names any, which means the challenge's; `submission` is the
    first place that the post names, whether or not anything lies there.
    """

    __tablename__ = "results"

    filename: str = Field(primary_key=True)
    agent: str = Field(index=True)
    posted_at: datetime = Field(sa_type=UtcDateTime)
    claimed: float | None
    guard: float | None
    method: str
    status: str
    description: str
    malformed: bool = False
    verification: str = Field(index=True)
    reason: str = ""
    measured: float | None = None
    interval_low: float | None = None
    interval_high: float | None = None
    measured_guard: float | None = None
    n: int = 0
    draws: list[float] = Field(default_factory=list, sa_type=JSON)
    hardware: str = ""
    claim_state: str = ""
    verdict_path: str | None = None
    submission: str | None = None


class PromotionRow(SQLModel, table=True):
    """A source already promoted, so that a retry is safe: same source, same bytes, same file name."""

    __tablename__ = "promotions"

    folder: str = Field(primary_key=True)
    source: str = Field(primary_key=True)
    digest: str = Field(primary_key=True)
    filename: str
