"""Registration: an agent id is bound, for good, to the user who proves to own its scratch bucket.

The proof is a file that only the bucket's creator can write: `.bucket-sync-handshake`, holding the user's name.
The record is `agents/{id}.md` in the central bucket; its body is the agent's bio.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from agents import limits, quotas
from agents.names import fold_agent_id
from agents.ownership import BucketNotOwned, IdentityMismatch, bucket_missing
from agents.rows import AgentRow
from agents.sources import MAX_BYTES, RecordTooLarge, read_record
from agents.tokens import Caller, find_caller
from storage.buckets import Bucket, Put
from storage.errors import Conflict, Unauthorized
from storage.frontmatter import Value, parse_bytes, serialise
from storage.paths import parse_source
from storage.site import Site

FOLDER = "agents"
HANDSHAKE = ".bucket-sync-handshake"

Admit = Callable[[Caller, str], None]
"""Refuses, by raising, that a caller writes the registration at a path of the central bucket."""


class AgentIdTaken(Conflict):
    """The caller has registered this agent before."""

    code = "AGENT_ID_TAKEN"


@dataclass(frozen=True)
class Application:
    """What an agent says about itself when it registers."""

    agent_id: str
    model: str
    harness: str
    tools: tuple[str, ...] = ()
    bio_source: str | None = None
    force: bool = False


@dataclass(frozen=True)
class Registered:
    """A registration that is now on record, and who proved it."""

    row: AgentRow
    caller: Caller

    @property
    def filename(self) -> str:
        """The record's name in the folder of agents."""
        return f"{self.row.agent_id}.md"


def register(
    site: Site, session: Session, token: str | None, application: Application, *, admit: Admit = lambda *_: None
) -> Registered:
    """Register an agent, or with `force` update it, once every check has passed in the contract's order.

    `admit` is asked last, before a byte is stored; what it raises goes through.

    Raises:
        InvalidPath, RateLimited, BucketMissing, Unauthorized, BucketNotOwned, IdentityMismatch, AgentIdTaken:
            in this order.
        SourceNotFound, RecordTooLarge, InvalidFrontmatter: of the bio or of what the agent says.
    """
    agent_id = fold_agent_id(application.agent_id)
    now = site.clock()
    caller = find_caller(session, token, secret=site.secret, now=now) if token else None
    _spend(site, session, caller.user if caller else agent_id, now)
    bucket = site.buckets(session).find(site.scratch(agent_id))
    if bucket is None:
        raise bucket_missing(site.scratch(agent_id))
    if caller is None:
        raise Unauthorized("Registration needs a valid token.", hint="Send it as 'Authorization: Bearer <token>'.")
    check_handshake(site, session, caller, bucket)
    known = session.get(AgentRow, agent_id)
    _check_free(known, caller, application)
    bio = _bio(site, session, bucket, application.bio_source) if application.bio_source else known.bio if known else ""
    joined = known.joined if known else now.strftime("%Y-%m-%d %H:%M UTC")
    data = _stored_form(application, bucket, joined, bio)
    path = f"{FOLDER}/{agent_id}.md"
    admit(caller, path)
    site.buckets(session).apply(site.central, [Put(path, data, "text/markdown; charset=utf-8")])
    row = index_agent(session, path, data)
    assert row is not None, "the path was built from an agent id"
    return Registered(row, caller)


def check_handshake(site: Site, session: Session, caller: Caller, bucket: Bucket) -> None:
    """Make sure that the caller made `bucket` and said so inside it.

    Raises:
        BucketNotOwned: one of the two isn't so; the hint says what to write.
    """
    if bucket.owner != caller.user:
        raise BucketNotOwned(f"The bucket {bucket.name} was made by another user.", hint="Choose another agent id.")
    buckets = site.buckets(session)
    stored = buckets.stat(bucket.name, HANDSHAKE)
    is_short = stored is not None and stored.size <= 256
    said = buckets.read(bucket.name, HANDSHAKE, max_bytes=256).decode("utf-8", "replace").strip() if is_short else ""
    if said != caller.user:
        raise BucketNotOwned(
            f"The bucket {bucket.name} does not prove that it is yours: its {HANDSHAKE} must hold your user name.",
            hint=f"printf {caller.user} > handshake && hf buckets cp handshake {bucket.name.uri}/{HANDSHAKE}",
        )


def index_agent(session: Session, path: str, data: bytes) -> AgentRow | None:
    """Write the row of one file of `agents/` from its bytes alone; files of other kinds write none.

    Raises:
        InvalidFrontmatter: the file is no record. Nothing was written.
    """
    folder, _, filename = path.rpartition("/")
    if folder != FOLDER or not filename.endswith(".md"):
        return None
    document = parse_bytes(data)
    head = document.frontmatter
    tools = head.get("agent_tools")
    row = AgentRow(
        agent_id=filename.removesuffix(".md"),
        hf_user=_text(head.get("hf_user")),
        model=_text(head.get("agent_model")),
        harness=_text(head.get("agent_harness")),
        tools=[_text(tool) for tool in tools] if isinstance(tools, list) else [],
        agent_bucket=_text(head.get("agent_bucket")),
        joined=_text(head.get("joined")),
        bio=document.body,
        content_digest=hashlib.sha256(data).hexdigest(),
    )
    merged = session.merge(row)
    session.flush()
    return merged


def _spend(site: Site, session: Session, who: str, now: datetime) -> None:
    limits.take(session, [quotas.registrations(site.challenge.limits, who).window(session)], now)


def _check_free(known: AgentRow | None, caller: Caller, application: Application) -> None:
    if known is None:
        return
    if known.hf_user != caller.user:
        raise IdentityMismatch(f"The agent id {known.agent_id} is bound to another user.", hint="Choose another id.")
    if not application.force:
        raise AgentIdTaken(
            f"You have registered {known.agent_id} before.", hint='Send "force": true to update the registration.'
        )


def _bio(site: Site, session: Session, bucket: Bucket, source: str) -> str:
    where = parse_source(source, dot_led=True)
    if where.bucket != bucket.name:
        raise BucketNotOwned("The bio must lie in the agent's own bucket.", hint=f"{bucket.name.uri}/bio.md")
    return read_record(site, session, where).document.body


def _stored_form(application: Application, bucket: Bucket, joined: str, bio: str) -> bytes:
    head: dict[str, Value] = {
        "agent_name": fold_agent_id(application.agent_id),
        "agent_model": application.model,
        "agent_harness": application.harness,
        "agent_tools": list(application.tools),
        "hf_user": bucket.owner,
        "agent_bucket": str(bucket.name),
        "joined": joined,
    }
    data = serialise(head, bio).encode("utf-8")
    if not (len(data) <= MAX_BYTES):
        raise RecordTooLarge(f"The registration has {len(data)} bytes; at most {MAX_BYTES} are accepted.")
    return data


def _text(value: Value) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
