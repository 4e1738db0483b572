"""What the files of `taskforces/{name}/` say, for live writes and `paddock reindex` alike.

    taskforces/int4/README.md                              the taskforce
    taskforces/int4/20261129-120000-000_blue-heron.md      a note
    taskforces/int4/eval_blue-heron/scores.csv             a named file

A note is a record like any other, so its row is `board.records`' to write.
"""

import hashlib

from sqlmodel import Session

from board.records import parse_name
from board.rows import TaskforceFileRow, TaskforceRow
from storage.buckets import StoredFile
from storage.frontmatter import Value, parse_bytes
from storage.site import Site

FOLDER = "taskforces"
README = "README.md"
MAX_README_BYTES = 262_144


def folder_of(name: str) -> str:
    """Name the central bucket's folder of a taskforce."""
    return f"{FOLDER}/{name}"


def is_note(path: str) -> bool:
    """Tell whether a path inside a taskforce's folder is a note's."""
    return parse_name(path) is not None


def is_readme(path: str) -> bool:
    """Tell whether a path of the central bucket is a taskforce's README."""
    parts = path.split("/")
    return len(parts) == 3 and parts[0] == FOLDER and parts[2] == README


def index_stored(site: Site, session: Session, stored: StoredFile) -> bool:
    """Write the row of one file under `taskforces/`; tell whether it has one (a note's is written elsewhere).

    Raises:
        InvalidFrontmatter, TooLarge: a README is no record. Nothing was written.
    """
    _, _, rest = stored.path.partition("/")
    name, _, path = rest.partition("/")
    if not path or is_note(path):
        return False
    if path == README:
        data = site.buckets(session).read(site.central, stored.path, max_bytes=MAX_README_BYTES)
        session.merge(_row(name, stored, data))
    else:
        session.merge(TaskforceFileRow(taskforce=name, path=path, size=stored.size, uploaded_at=stored.uploaded_at))
    session.flush()
    return True


def _row(name: str, stored: StoredFile, data: bytes) -> TaskforceRow:
    document = parse_bytes(data)
    head = document.frontmatter
    return TaskforceRow(
        name=name,
        creator=_text(head.get("creator")),
        created=_text(head.get("created")),
        updated=_text(head.get("updated")),
        touched_at=stored.uploaded_at,
        frontmatter=dict(head),
        body=document.body,
        haystack=f"{name}\n{data.decode('utf-8')}".casefold(),
        content_digest=hashlib.sha256(data).hexdigest(),
    )


def _text(value: Value) -> str:
    return value if isinstance(value, str) else ""
