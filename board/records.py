"""What a stored file of the board says, read from its name and bytes alone.

    message_board/20261129-120000-000_blue-heron.md
    ^folder       ^stamp              ^handle

Live writes and `paddock reindex` both index through `index_file`, so that rebuilt = live by construction.
"""

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlmodel import Session, col, select

from board import search_index
from board.markdown import title_of
from board.moderation import state_of
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
SUPERSEDES = "supersedes"
IMPORTED = "imported"
"""The `via` of a record that another board published; only `paddock import` writes it."""

_FINDABLE = {MESSAGES: search_index.Kind.POSTS, RESULTS: search_index.Kind.RESULTS}

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


def is_record(path: str) -> bool:
    """Tell whether a path of the central bucket is a record's own: of a message, a result or a taskforce's note."""
    folder, _, filename = path.rpartition("/")
    return parse_name(filename) is not None and _holds_records(folder)


def _holds_records(folder: str) -> bool:
    return folder in (MESSAGES, RESULTS) or _NOTES.fullmatch(folder) is not None


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
    if not _holds_records(folder):
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
        thread=name.filename,
        content_digest=hashlib.sha256(data).hexdigest(),
        state=state_of(document.frontmatter).value,
    )
    replaced = _superseded(session, row)
    row.thread = _thread(session, folder, refs) or (replaced.thread if replaced else name.filename)
    session.add(row)
    for position, target in enumerate(refs):
        session.add(RefRow(folder=folder, filename=name.filename, position=position, target=target))
    _index_promotion(session, folder, name.filename, document)
    session.flush()
    _make_findable(session, row)
    return row


def reindex_file(session: Session, row: PostRow, data: bytes) -> None:
    """Bring the row of a record up to date with the bytes that took its file's place; its thread stays.

    Raises:
        InvalidFrontmatter: they are no record. Nothing was changed.
    """
    document = parse_bytes(data)
    row.type = _word(document, "type")
    row.frontmatter = dict(document.frontmatter)
    row.body = document.body
    row.content = data.decode("utf-8")
    row.haystack = row.content.casefold()
    row.content_digest = hashlib.sha256(data).hexdigest()
    row.state = state_of(document.frontmatter).value
    session.add(row)
    session.flush()
    _make_findable(session, row)


def _make_findable(session: Session, row: PostRow) -> None:
    """Let search find a message or a result by its words; a tombstone has none."""
    kind = _FINDABLE.get(row.folder)
    if kind is None:
        return
    if row.state:
        search_index.drop(session.connection(), kind, row.filename)
        return
    shown = title_of(Document(row.frontmatter, row.body))  # type: ignore[arg-type]  # a column of JSON values
    named = [row.frontmatter.get(key) for key in ("method", "description")] if row.folder == RESULTS else []
    title = " ".join([shown, *(text for text in named if isinstance(text, str))])
    search_index.put(session.connection(), kind, row.filename, title=title, body=row.body)


def _superseded(session: Session, row: PostRow) -> PostRow | None:
    """Find the earlier record of the same author and folder that `row` names as superseded, and mark it so.

    What another board published can't replace what was said here, nor the other way round.
    """
    names = ref_names(row.frontmatter.get(SUPERSEDES))  # type: ignore[arg-type]  # a column of JSON values
    earlier = select(PostRow).where(
        PostRow.folder == row.folder,
        PostRow.agent == row.agent,
        PostRow.filename < row.filename,
        col(PostRow.filename).in_(names[:1]),
        col(PostRow.via) == IMPORTED if row.via == IMPORTED else col(PostRow.via) != IMPORTED,
    )
    found = session.exec(earlier).first() if names else None
    if found:
        found.superseded_by = row.filename
        session.add(found)
    return found


def _index_promotion(session: Session, folder: str, filename: str, document: Document) -> None:
    source, digest = _word(document, PROMOTED_FROM), _word(document, PROMOTED_DIGEST)
    if source and digest:
        session.merge(PromotionRow(folder=folder, source=source, digest=digest, filename=filename))


def _thread(session: Session, folder: str, refs: list[str]) -> str | None:
    """The thread of the record that the first ref names, if it is in the same channel: the board, or a taskforce."""
    if not refs:
        return None
    channel = (MESSAGES, RESULTS) if folder in (MESSAGES, RESULTS) else (folder,)
    named = select(PostRow.thread).where(PostRow.filename == refs[0], col(PostRow.folder).in_(channel))
    return session.exec(named.order_by(PostRow.folder)).first()


def _word(document: Document, key: str) -> str:
    value = document.frontmatter.get(key)
    return value if isinstance(value, str) else ""
