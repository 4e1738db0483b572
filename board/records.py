"""What a stored file of the board says, read from its name and bytes alone.

    message_board/20261129-120000-000_blue-heron.md
    ^folder       ^stamp              ^handle

Live writes and `paddock reindex` both index through `index_file`, so that rebuilt = live by construction.
"""

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlmodel import Session, select

from board.rows import InboxRow, PostRow, PromotionRow, RefRow
from storage.clock import from_stamp
from storage.frontmatter import Document, Value, parse_bytes

MESSAGES = "message_board"
RESULTS = "results"
INBOX = "inbox"
BROADCASTS = "broadcasts"
EVERYBODY = "*"
"""The inbox handle under which broadcasts are delivered."""
PROMOTED_FROM, PROMOTED_DIGEST = "promoted_from", "promoted_digest"

_NAME = re.compile(
    r"(?P<stamp>[0-9]{8}-[0-9]{6}(?P<millis>-[0-9]{3})?)_(?P<handle>[a-z0-9-]{1,40})(?(millis)|(?:_[0-9a-f]{8})?)\.md",
    re.ASCII,
)
_NOTES = re.compile(r"taskforces/[^/]+")
_REF_SEPARATORS = re.compile(r"[\s,]+")


@dataclass(frozen=True)
class RecordName:
    """A record's file name; `at` is the last millisecond that its stamp can mean."""

    filename: str
    handle: str
    at: datetime
    latest_at: datetime


def parse_name(filename: str) -> RecordName | None:
    """Read a record's file name; old imports have stamps to the second. None if it is none."""
    match = _NAME.fullmatch(filename)
    if match is None:
        return None
    try:
        at = from_stamp(match["stamp"])
    except ValueError:
        return None
    spread = timedelta(0) if match["millis"] else timedelta(milliseconds=999)
    return RecordName(filename, match["handle"], at, at + spread)


def ref_names(value: Value) -> list[str]:
    """List the file names in a `refs` value: one name, comma or space separated, or a list; no duplicates."""
    items = value if isinstance(value, list) else [value]
    words = [word for item in items if isinstance(item, str) for word in _REF_SEPARATORS.split(item)]
    names = [word.strip("`<>[]()\"'").rpartition("/")[2] for word in words]
    full = [name if name.endswith(".md") else f"{name}.md" for name in names]
    return [name for name in dict.fromkeys(full) if parse_name(name)]


def index_file(session: Session, path: str, data: bytes) -> PostRow | None:
    """Add the rows of one file of the central bucket; files of other kinds add none.

    A thread is found through records that are indexed already, so hand files over in the order of their names.

    Raises:
        InvalidFrontmatter: the file is no record. Nothing was added.
    """
    folder, _, filename = path.rpartition("/")
    name = parse_name(filename)
    if name is None:
        return None
    if folder == BROADCASTS or folder.startswith(f"{INBOX}/"):
        handle = EVERYBODY if folder == BROADCASTS else folder.removeprefix(f"{INBOX}/")
        session.add(InboxRow(handle=handle, filename=filename))
        return None
    if folder not in (MESSAGES, RESULTS) and not _NOTES.fullmatch(folder):
        return None
    return _index_post(session, folder, name, data)


def _index_post(session: Session, folder: str, name: RecordName, data: bytes) -> PostRow:
    document = parse_bytes(data)
    refs = ref_names(document.frontmatter.get("refs"))
    row = PostRow(
        folder=folder,
        filename=name.filename,
        agent=name.handle,
        type=_word(document, "type"),
        via=_word(document, "via"),
        posted_at=name.at,
        frontmatter=dict(document.frontmatter),
        body=document.body,
        content=data.decode("utf-8"),
        haystack=data.decode("utf-8").casefold(),
        thread=_thread(session, refs) or name.filename,
        content_digest=hashlib.sha256(data).hexdigest(),
    )
    session.add(row)
    for position, target in enumerate(refs):
        session.add(RefRow(folder=folder, filename=name.filename, position=position, target=target))
    _index_promotion(session, folder, name.filename, document)
    session.flush()
    return row


def _index_promotion(session: Session, folder: str, filename: str, document: Document) -> None:
    source, digest = _word(document, PROMOTED_FROM), _word(document, PROMOTED_DIGEST)
    if source and digest:
        session.merge(PromotionRow(folder=folder, source=source, digest=digest, filename=filename))


def _thread(session: Session, refs: list[str]) -> str | None:
    """The thread of the record that the first ref names, if it is on the board."""
    if not refs:
        return None
    return session.exec(select(PostRow.thread).where(PostRow.filename == refs[0]).order_by(PostRow.folder)).first()


def _word(document: Document, key: str) -> str:
    value = document.frontmatter.get(key)
    return value if isinstance(value, str) else ""
