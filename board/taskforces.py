"""Taskforces: a folder of the central bucket where several agents work on one question.

Whoever opens one writes its README and alone may rewrite it; everybody may add notes and files.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlmodel import Session

from agents.directory import agent_ids
from agents.names import check_agent_id, user_of
from agents.tokens import Caller
from board import events, syncs, taskforces_index
from board.attribution import NO_PROOF, PROOF_KEY, Level, level_of
from board.changes import take_turn
from board.destinations import check_signed
from board.messages import check_speaker, refuse_broadcast_key, spend_raw
from board.promotion import (
    CONTENT_TYPE,
    Published,
    load_source,
    own_source,
    publish,
    spend_promotion,
    stored_form,
    type_of,
)
from board.rows import TaskforceRow
from board.taskforces_index import README, folder_of
from storage.buckets import Put
from storage.errors import Conflict, InvalidPath, NotFound, Unauthorized
from storage.frontmatter import Value
from storage.paths import check_path
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


@dataclass(frozen=True)
class Added:
    """A note or a named file that a taskforce now holds."""

    kind: str
    filename: str
    via: str
    path: str


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
        As `board.promotion.load_source`; NotOrganizer, RateLimited: nothing is written.
    """
    check_agent_id(name, what="taskforce name")
    file = load_source(site, session, caller, source)
    refuse_broadcast_key(file.document.frontmatter)
    spend_promotion(site, session, source)
    known = _own(session, caller, name, file.agent_id)
    said = _Said(file.agent_id, "bucket", file.document.frontmatter, file.document.body, is_proven=caller is not None)
    return _write_readme(site, session, name, known, said)


def open_raw(site: Site, session: Session, caller: Caller | None, name: str, handle: str, body: str) -> Opened:
    """Open a taskforce with a README of raw text, or rewrite one's own.

    Raises:
        InvalidPath, NotRegistered, Unauthorized, IdentityMismatch, TaskforceExists, RateLimited: nothing is written.
    """
    check_agent_id(name, what="taskforce name")
    check_speaker(site, session, caller, handle)
    spend_raw(site, session, handle)
    known = _own(session, caller, name, handle)
    return _write_readme(site, session, name, known, _Said(handle, _via(handle), {}, body, caller is not None))


def add_note_from_source(site: Site, session: Session, caller: Caller | None, name: str, source: str) -> Added:
    """Add a note from the caller's scratch bucket to a taskforce.

    Raises:
        InvalidPath, TaskforceNotFound; as `board.promotion.load_source` and `publish`; NotOrganizer.
    """
    get_taskforce(session, name)
    file = load_source(site, session, caller, source)
    head = file.document.frontmatter
    refuse_broadcast_key(head)
    said = _Said(file.agent_id, "bucket", head, file.document.body, caller is not None)
    return _publish_note(site, session, name, said, dedup=file.dedup)


def add_note_raw(
    site: Site, session: Session, caller: Caller | None, name: str, handle: str, body: str, *, kind: str | None = None
) -> Added:
    """Add a note of raw text to a taskforce; `kind` is its type.

    Raises:
        InvalidPath, TaskforceNotFound, NotRegistered, Unauthorized, IdentityMismatch, RateLimited: nothing is written.
    """
    get_taskforce(session, name)
    check_speaker(site, session, caller, handle)
    spend_raw(site, session, handle)
    return _publish_note(site, session, name, _Said(handle, _via(handle), {"type": kind}, body, caller is not None))


def add_file(site: Site, session: Session, caller: Caller | None, name: str, source: str, dest_path: str) -> Added:
    """Copy one file of the caller's scratch bucket to `dest_path` in a taskforce's folder; the same path replaces it.

    Raises:
        InvalidPath: the path isn't clean, lacks `_{agent}`, or is a README's or a note's.
        TaskforceNotFound, Unauthorized, BucketNotOwned, SourceNotFound, SyncTooLarge, RateLimited: nothing is copied.
    """
    get_taskforce(session, name)
    where, agent_id = own_source(site, session, caller, source)
    path = check_signed(_check_free_name(dest_path), agent_id, agent_ids(session))
    files = syncs.files_of(site, session, where, is_folder=False)
    if files[0].path != where.path:
        raise InvalidPath(f"{source!r:.120} is a folder.", hint="Send one file, or use /v1/artifacts:sync.")
    spend_promotion(site, session, source)
    take_turn(session)
    central_path = check_path(f"{folder_of(name)}/{path}")
    syncs.copy(site, session, where, [(files[0], central_path)])
    _index(site, session, central_path)
    told = {"path": path, "folder": folder_of(name), "agent": agent_id, "via": "bucket"}
    events.record(session, events.Kind.FILE, told, now=site.clock())
    return Added("file", path, "bucket", central_path)


@dataclass(frozen=True)
class _Said:
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
    return known


def _write_readme(site: Site, session: Session, name: str, known: TaskforceRow | None, said: _Said) -> Opened:
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
    _index(site, session, path)
    told = {"name": name, "folder": folder_of(name), "agent": said.handle, "via": said.via, "created": known is None}
    events.record(session, events.Kind.TASKFORCE, told, now=site.clock())
    return Opened(name, said.via, path, created=known is None)


def _publish_note(
    site: Site, session: Session, name: str, said: _Said, *, dedup: tuple[str, str] | None = None
) -> Added:
    rest = {key: value for key, value in said.frontmatter.items() if key not in ("taskforce", "type")}
    published: Published = publish(
        site,
        session,
        folder=folder_of(name),
        handle=said.handle,
        frontmatter={"taskforce": name, **rest, "type": said.typed()},
        body=said.body,
        via=said.via,
        dedup=dedup,
        proof=None if said.is_proven else NO_PROOF,
    )
    return Added("note", published.filename, said.via, published.path)


def _check_free_name(dest_path: str) -> str:
    path = check_path(dest_path)
    if path.casefold() == README.casefold():
        raise InvalidPath(f"{README} is the taskforce's own.", hint="Its creator rewrites it with POST /v1/taskforces.")
    if taskforces_index.is_note(path):
        raise InvalidPath(f"{path!r:.120} is a note's name.", hint="Send the source without dest_path to add a note.")
    return path


def _index(site: Site, session: Session, path: str) -> None:
    stored = site.buckets(session).stat(site.central, path)
    assert stored is not None, "it was just written"
    taskforces_index.index_stored(site, session, stored)


def _via(handle: str) -> str:
    return "dashboard" if user_of(handle) else "raw"
