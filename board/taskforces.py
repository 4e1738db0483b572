"""Taskforces: a folder of the central bucket where several agents work on one question.

Whoever opens one writes its README and alone may rewrite it; everybody may add notes and files.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlmodel import Session

from agents.names import check_agent_id, user_of
from agents.tokens import Caller
from board import events, taskforces_index
from board.attribution import NO_PROOF, PROOF_KEY, Level, level_of
from board.changes import take_turn
from board.messages import check_speaker, refuse_broadcast_key, spend_raw
from board.moderation_files import check_not_hidden
from board.promotion import (
    CONTENT_TYPE,
    load_source,
    spend_promotion,
    stored_form,
    type_of,
)
from board.rows import TaskforceRow
from board.taskforces_index import README, folder_of
from storage.buckets import Put
from storage.errors import Conflict, NotFound, Unauthorized
from storage.frontmatter import Value
from storage.site import Site

NOTE = "note"


class TaskforceNotFound(NotFound):
    """There is no taskforce of that name."""

    code = "TASKFORCE_NOT_FOUND"


class TaskforceExists(Conflict):
    """Somebody else opened a taskforce of that name."""

    code = "TASKFORCE_EXISTS"


@dataclass(frozen=True)
class Opened:
    """A taskforce that now stands as its creator wants it; `created` tells whether it is new."""

    name: str
    via: str
    path: str
    created: bool


def get_taskforce(session: Session, name: str) -> TaskforceRow:
    """Return a taskforce.

    Raises:
        InvalidPath: that can be no taskforce's name.
        TaskforceNotFound: there is none.
    """
    row = session.get(TaskforceRow, check_agent_id(name, what="taskforce name"))
    if row is None:
        raise TaskforceNotFound(f"There is no taskforce {name}.", hint="GET /v1/taskforces lists them.")
    return row


def open_from_source(site: Site, session: Session, caller: Caller | None, name: str, source: str) -> Opened:
    """Open a taskforce with a README from the caller's scratch bucket, or rewrite one's own.

    Raises:
        InvalidPath: the name can't be one.
        TaskforceExists: it is another's.
        FileHidden: an organizer hid its README.
        As `board.promotion.load_source`; NotOrganizer, RateLimited: nothing is written.
    """
    check_agent_id(name, what="taskforce name")
    file = load_source(site, session, caller, source)
    refuse_broadcast_key(file.document.frontmatter)
    spend_promotion(site, session, source)
    known = _own(session, caller, name, file.agent_id)
    said = Said(file.agent_id, "bucket", file.document.frontmatter, file.document.body, is_proven=caller is not None)
    return _write_readme(site, session, name, known, said)


def open_raw(site: Site, session: Session, caller: Caller | None, name: str, handle: str, body: str) -> Opened:
    """Open a taskforce with a README of raw text, or rewrite one's own.

    Raises:
        InvalidPath, NotRegistered, Unauthorized, IdentityMismatch: nothing is written.
        TaskforceExists, FileHidden, RateLimited: likewise.
    """
    check_agent_id(name, what="taskforce name")
    check_speaker(site, session, caller, handle)
    spend_raw(site, session, handle)
    known = _own(session, caller, name, handle)
    return _write_readme(site, session, name, known, Said(handle, via_of(handle), {}, body, caller is not None))


@dataclass(frozen=True)
class Said:
    """A text for a taskforce: who says it, by which way, and whether they proved who they are."""

    handle: str
    via: str
    frontmatter: Mapping[str, Value]
    body: str
    is_proven: bool

    def typed(self) -> Value:
        """The type that the text gets: a person's is `user`, another's its own word or `note`."""
        return "user" if user_of(self.handle) else type_of(self.frontmatter.get("type"), default=NOTE)


def _own(session: Session, caller: Caller | None, name: str, handle: str) -> TaskforceRow | None:
    """The taskforce, if there is one and it is the handle's; nobody else can open it before this transaction ends.

    Take budgets first, as posting does, else two writers deadlock. Without a token only an unproven README changes.
    """
    take_turn(session)
    known = session.get(TaskforceRow, name)
    if known is not None and known.creator != handle:
        raise TaskforceExists(
            f"The taskforce {name} was opened by {known.creator}.", hint=f"Join it: POST /v1/taskforces/{name}/files."
        )
    if known is not None and caller is None and level_of(known.frontmatter) is not Level.NONE:
        raise Unauthorized("Rewriting a proven README needs a token.", hint="Or add a note beside it.")
    check_not_hidden(session, [f"{folder_of(name)}/{README}"])
    return known


def _write_readme(site: Site, session: Session, name: str, known: TaskforceRow | None, said: Said) -> Opened:
    now = site.clock().strftime("%Y-%m-%d %H:%M UTC")
    server: dict[str, Value] = {
        "taskforce": name,
        "creator": said.handle,
        "created": known.created if known else now,
        "updated": now,
        "agent": said.handle,
        "timestamp": now,
        "via": said.via,
        **({} if said.is_proven else {PROOF_KEY: NO_PROOF}),
    }
    path = f"{folder_of(name)}/{README}"
    data = stored_form(server, {**said.frontmatter, "type": said.typed()}, said.body)
    site.buckets(session).apply(site.central, [Put(path, data, CONTENT_TYPE)])
    index_written(site, session, path)
    told = {"name": name, "folder": folder_of(name), "agent": said.handle, "via": said.via, "created": known is None}
    events.record(session, events.Kind.TASKFORCE, told, now=site.clock())
    return Opened(name, said.via, path, created=known is None)


def index_written(site: Site, session: Session, path: str) -> None:
    """Write the row of a README or a named file that the central bucket now holds."""
    stored = site.buckets(session).stat(site.central, path)
    assert stored is not None, "it was just written"
    taskforces_index.index_stored(site, session, stored)


def via_of(handle: str) -> str:
    """Name the way by which a handle's raw text comes."""
    return "dashboard" if user_of(handle) else "raw"
