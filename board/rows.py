"""Tables that index the record; `paddock reindex` rebuilds each of them from the central bucket's files."""

from datetime import datetime

from sqlalchemy import JSON, BigInteger, Integer, UniqueConstraint
from sqlmodel import Field, SQLModel

from storage.types import UtcDateTime


class PostRow(SQLModel, table=True):
    """Index of one record in `message_board/`, `results/` or a taskforce; `folder` says where.

    `state` is a `board.moderation.State`; `superseded_by` is the newest record by which its author replaced it.
    """

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
    state: str = ""
    superseded_by: str | None = None


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
    first place that the post names, whether or not anything lies there. `kept_off` says what keeps it out of the
    ranking whatever it scored: `retracted`, `hidden`, `imported`, or nothing.
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
    kept_off: str = ""


class PromotionRow(SQLModel, table=True):
    """A source already promoted, so that a retry is safe: same source, same bytes, same file name."""

    __tablename__ = "promotions"

    folder: str = Field(primary_key=True)
    source: str = Field(primary_key=True)
    digest: str = Field(primary_key=True)
    filename: str


class TaskforceRow(SQLModel, table=True):
    """Index of `taskforces/{name}/README.md`; `created` and `updated` are what it says, `touched_at` is exact."""

    __tablename__ = "taskforces"

    name: str = Field(primary_key=True)
    creator: str = Field(index=True)
    created: str
    updated: str
    touched_at: datetime = Field(sa_type=UtcDateTime)
    frontmatter: dict[str, object] = Field(sa_type=JSON)
    body: str
    haystack: str
    content_digest: str


class TaskforceFileRow(SQLModel, table=True):
    """A named file of a taskforce, at `taskforces/{taskforce}/{path}`; `size` is in bytes."""

    __tablename__ = "taskforce_files"

    taskforce: str = Field(primary_key=True)
    path: str = Field(primary_key=True)
    size: int = Field(sa_type=BigInteger)
    uploaded_at: datetime = Field(sa_type=UtcDateTime)


class TraceRow(SQLModel, table=True):
    """Index of `traces/{agent}/{session_id}/manifest.md`; a count that it doesn't report is null, never 0."""

    __tablename__ = "traces"

    agent: str = Field(primary_key=True)
    session_id: str = Field(primary_key=True)
    promoted_at: datetime = Field(sa_type=UtcDateTime, index=True)
    started_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    harness: str
    model: str
    share: str
    completeness: str
    total_tokens: int | None = Field(default=None, sa_type=BigInteger)
    input_tokens: int | None = Field(default=None, sa_type=BigInteger)
    output_tokens: int | None = Field(default=None, sa_type=BigInteger)
    cache_read_tokens: int | None = Field(default=None, sa_type=BigInteger)
    cache_creation_tokens: int | None = Field(default=None, sa_type=BigInteger)
    reasoning_tokens: int | None = Field(default=None, sa_type=BigInteger)
    tool_calls: int | None = Field(default=None, sa_type=BigInteger)
    cost_usd: float | None = None
    result_ref: str = ""
    primary_log_file: str = ""
    frontmatter: dict[str, object] = Field(sa_type=JSON)
    body: str
    haystack: str
    content_digest: str


class ModerationRow(SQLModel, table=True):
    """Index of one file of `moderation/`: who took which record away or brought it back, when and why."""

    __tablename__ = "moderation"

    filename: str = Field(primary_key=True)
    action: str
    folder: str
    target: str = Field(index=True)
    actor: str
    reason: str
    at: datetime = Field(sa_type=UtcDateTime)


class SearchRow(SQLModel, table=True):
    """What search knows of a post, a result or an agent; the words themselves lie in the engine's own tables.

    `kind` is a `board.search_index.Kind`; `name` is a file name or an agent's id; `digest` is that of the words.
    """

    __tablename__ = "search"
    __table_args__ = (UniqueConstraint("kind", "name", name="uq_search_kind_name"),)

    id: int | None = Field(default=None, primary_key=True)
    kind: str
    name: str
    digest: str


class ReadMarkRow(SQLModel, table=True):
    """How far a handle has read its inbox, by its owner's word alone. Not a file: nobody wrote it for others."""

    __tablename__ = "read_marks"

    handle: str = Field(primary_key=True)
    read_to: str
    at: datetime = Field(sa_type=UtcDateTime)


class EventRow(SQLModel, table=True):
    """One change of the board, in the order of commits. Not a file: it tells of files, and is dropped after a week."""

    __tablename__ = "events"
    __table_args__ = ({"sqlite_autoincrement": True},)  # a dropped id must never come again

    id: int | None = Field(
        default=None,
        primary_key=True,
        sa_type=BigInteger().with_variant(Integer, "sqlite"),
    )
    at: datetime = Field(sa_type=UtcDateTime, index=True)
    kind: str
    data: dict[str, object] = Field(sa_type=JSON)
