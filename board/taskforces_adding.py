"""Adding to a taskforce: everybody's notes, and named files from their buckets."""

from dataclasses import dataclass

from sqlmodel import Session

from agents.directory import agent_ids
from agents.tokens import Caller
from board import events, syncs, taskforces_index
from board.attribution import NO_PROOF
from board.changes import take_turn
from board.destinations import check_signed
from board.messages import check_speaker, refuse_broadcast_key, spend_raw
from board.promotion import load_source, own_source, publish, spend_promotion
from board.taskforces import Said, get_taskforce, index_written, via_of
from board.taskforces_index import README, folder_of
from storage.errors import InvalidPath
from storage.paths import check_path
from storage.site import Site


@dataclass(frozen=True)
class Added:
    """A note or a named file that a taskforce now holds."""

    kind: str
    filename: str
    via: str
    path: str


def add_note_from_source(site: Site, session: Session, caller: Caller | None, name: str, source: str) -> Added:
    """Add a note from the caller's scratch bucket to a taskforce.

    Raises:
        InvalidPath, TaskforceNotFound; as `board.promotion.load_source` and `publish`; NotOrganizer.
    """
    get_taskforce(session, name)
    file = load_source(site, session, caller, source)
    head = file.document.frontmatter
    refuse_broadcast_key(head)
    said = Said(file.agent_id, "bucket", head, file.document.body, caller is not None)
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
    return _publish_note(site, session, name, Said(handle, via_of(handle), {"type": kind}, body, caller is not None))


def add_file(site: Site, session: Session, caller: Caller | None, name: str, source: str, dest_path: str) -> Added:
    """Copy one file of the caller's scratch bucket to `dest_path` in a taskforce's folder; the same path replaces it.

    Raises:
        InvalidPath: the path isn't clean, lacks `_{agent}`, or is a README's or a note's.
        TaskforceNotFound, Unauthorized, BucketNotOwned, SourceNotFound, SyncTooLarge: nothing is copied.
        FileHidden, RateLimited: likewise.
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
    index_written(site, session, central_path)
    told = {"path": path, "folder": folder_of(name), "agent": agent_id, "via": "bucket"}
    events.record(session, events.Kind.FILE, told, now=site.clock())
    return Added("file", path, "bucket", central_path)


def _publish_note(
    site: Site, session: Session, name: str, said: Said, *, dedup: tuple[str, str] | None = None
) -> Added:
    rest = {key: value for key, value in said.frontmatter.items() if key not in ("taskforce", "type")}
    published = publish(
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
