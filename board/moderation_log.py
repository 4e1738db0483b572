"""Writing the public log, and keeping what an act takes away where only operators read."""

from datetime import timedelta

from sqlmodel import Session, col, func, select

from agents.sources import MAX_BYTES
from board import events
from board.moderation import FOLDER, Action, Entry, index_entry, state_of, to_bytes
from board.promotion import CONTENT_TYPE
from board.records import parse_name
from board.rows import ModerationRow
from storage.buckets import BucketStore, Copy, Put
from storage.clock import to_stamp
from storage.errors import InvalidFrontmatter, TooLarge
from storage.frontmatter import parse_bytes
from storage.paths import BucketName
from storage.site import Site


def withheld(path: str) -> str:
    """Name the place in the audit bucket where the original of a central path is kept."""
    return f"withheld/{path}"


def withhold(site: Site, session: Session, path: str) -> None:
    """Keep the file at a central path, whole, in the audit bucket.

    At a Hub every file changes at once, so an act that broke off can have left its tombstone here. Then the original is
    kept already, and the tombstone must not take its place.
    """
    store = site.buckets(session)
    if not (_is_tombstone(store, site.central, path) and store.stat(site.audit, withheld(path))):
        store.apply(site.audit, [Copy(withheld(path), site.central, path)])


def _is_tombstone(store: BucketStore, bucket: BucketName, path: str) -> bool:
    try:
        document = parse_bytes(store.read(bucket, path, max_bytes=MAX_BYTES))
    except (InvalidFrontmatter, TooLarge):
        return False
    return bool(state_of(document.frontmatter)) and not document.body.strip()


def enter(
    site: Site, session: Session, target: str, action: Action, *, by: str, reason: str, thread: str = ""
) -> ModerationRow:
    """Write down what was done to the central path `target`: a file of the log, its row, and an event.

    The caller holds the board's turn; entries' names rise.
    """
    newest = session.exec(select(func.max(col(ModerationRow.filename)))).one()
    last, now = parse_name(newest) if newest else None, site.clock()
    at = max(now, last.latest_at + timedelta(milliseconds=1)) if last else now
    path, data = f"{FOLDER}/{to_stamp(at)}_{by}.md", to_bytes(Entry(action, target, by, at, reason))
    site.buckets(session).apply(site.central, [Put(path, data, CONTENT_TYPE)])
    folder, _, name = target.rpartition("/")
    told = {"action": action.value, "filename": name, "folder": folder, "thread": thread, "by": by}
    events.record(session, events.Kind.MODERATION, told, now=now)
    return index_entry(session, path, data)
