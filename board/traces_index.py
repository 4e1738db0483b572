"""What a file of `traces/{agent}/{session}/` says, for live writes and `paddock reindex` alike."""

import hashlib
from datetime import datetime

from sqlmodel import Session

from board import traces_manifest
from board.listing import read_moment
from board.rows import TraceRow
from storage.buckets import StoredFile
from storage.errors import InvalidFrontmatter
from storage.frontmatter import Value, parse_bytes
from storage.site import Site

FOLDER = "traces"
MAX_MANIFEST_BYTES = 262_144


def folder_of(agent_id: str, session_id: str) -> str:
    """Name the central bucket's folder of one session."""
    return f"{FOLDER}/{agent_id}/{session_id}"


def is_manifest(path: str) -> bool:
    """Tell whether a path of the central bucket is a session's manifest."""
    parts = path.split("/")
    return len(parts) == 4 and parts[0] == FOLDER and parts[3] == traces_manifest.FILE


def index_stored(site: Site, session: Session, stored: StoredFile) -> bool:
    """Write the row of a session whose manifest this is; tell whether it is one.

    Raises:
        InvalidFrontmatter, TooLarge: it can't be read. Nothing was written.
    """
    if not is_manifest(stored.path):
        return False
    _, agent_id, session_id, _ = stored.path.split("/")
    data = site.buckets(session).read(site.central, stored.path, max_bytes=MAX_MANIFEST_BYTES)
    session.merge(_row(agent_id, session_id, data))
    session.flush()
    return True


def _row(agent_id: str, session_id: str, data: bytes) -> TraceRow:
    document = parse_bytes(data)
    head = document.frontmatter
    manifest = traces_manifest.read(head)
    return TraceRow(
        agent=agent_id,
        session_id=session_id,
        promoted_at=_promoted_at(head.get("promoted_at")),
        started_at=manifest.started_at,
        harness=manifest.harness,
        model=manifest.model,
        share=str(head.get("share") or "stats"),
        completeness=str(head.get("completeness") or "partial"),
        **{f"{name}_tokens": count for name, count in manifest.tokens.items()},
        tool_calls=manifest.tool_calls,
        cost_usd=manifest.cost_usd,
        result_ref=manifest.result_ref,
        primary_log_file=manifest.native_log_file,
        frontmatter=dict(head),
        body=document.body,
        haystack=f"{agent_id}/{session_id}\n{data.decode('utf-8')}".casefold(),
        content_digest=hashlib.sha256(data).hexdigest(),
    )


def _promoted_at(value: Value) -> datetime:
    try:
        return read_moment(str(value))
    except (ValueError, OverflowError) as error:
        raise InvalidFrontmatter(f"The stored manifest's promoted_at is {value!r:.60}, which is no moment.") from error
