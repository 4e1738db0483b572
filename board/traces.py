"""Traces: what an agent's session took, and with `full` its whole log, published by the agent itself.

With `stats` the manifest alone is published. Posting a session again replaces what was published of it, so that
an agent can take a log back: a `stats` share after a `full` one removes the other files.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlmodel import Session

from agents.sources import read_record
from agents.tokens import Caller
from board import events, syncs, traces_index, traces_manifest
from board.attribution import NO_PROOF, PROOF_KEY
from board.changes import take_turn
from board.messages import refuse_broadcast_key
from board.moderation_files import check_none_hidden
from board.promotion import CONTENT_TYPE, own_source, spend_promotion, stored_form
from board.traces_index import folder_of
from board.traces_manifest import Manifest
from storage.buckets import Change, Copy, Delete, Put, StoredFile
from storage.clock import to_iso_ms
from storage.errors import InvalidFrontmatter
from storage.frontmatter import Document, Value
from storage.paths import Source
from storage.site import Site


class Share(StrEnum):
    """How much of a session is published."""

    STATS = "stats"
    FULL = "full"


class Completeness(StrEnum):
    """Whether a session's tokens are fully reported: in all, in and out."""

    FULL = "full"
    PARTIAL = "partial"


@dataclass(frozen=True)
class Shared:
    """A session that is now published; `bytes_copied` counts the manifest as it is stored."""

    session_id: str
    agent: str
    share: Share
    path: str
    files_copied: int
    bytes_copied: int
    completeness: Completeness
    skipped: tuple[str, ...]


def post(site: Site, session: Session, caller: Caller | None, source: str, share: Share) -> Shared:
    """Publish the session whose folder in the caller's scratch bucket `source` names.

    Raises:
        InvalidPath, Unauthorized, BucketNotOwned, NotRegistered, BucketMissing: the caller may not.
        SourceNotFound, SyncTooLarge, RecordTooLarge, InvalidFrontmatter, NotOrganizer, RateLimited: nothing is written.
        FileHidden: an organizer hid a file of what was published of it before.
    """
    where, agent_id = own_source(site, session, caller, source)
    session_id = traces_manifest.check_session_id(where.path.rpartition("/")[2])
    document = read_record(site, session, Source(where.bucket, f"{where.path}/{traces_manifest.FILE}")).document
    refuse_broadcast_key(document.frontmatter)
    manifest = traces_manifest.read(document.frontmatter)
    if manifest.session_id != session_id:
        raise InvalidFrontmatter(f"The manifest's session_id is not its folder's name, {session_id!r}.")
    files, skipped = _files(site, session, where, manifest, share, folder_of(agent_id, session_id))
    spend_promotion(site, session, source)
    take_turn(session)
    check_none_hidden(session, folder_of(agent_id, session_id))
    completeness = Completeness.FULL if manifest.is_complete else Completeness.PARTIAL
    server = _server_keys(site, agent_id, share, completeness, is_proven=caller is not None)
    size = _write(site, session, where, _Kept(folder_of(agent_id, session_id), server, document, files))
    told = {
        "folder": folder_of(agent_id, session_id),
        "agent": agent_id,
        "session_id": session_id,
        "share": share.value,
    }
    events.record(session, events.Kind.TRACE, told, now=site.clock())
    return Shared(
        session_id, agent_id, share, f"{folder_of(agent_id, session_id)}/", len(files) + 1, size, completeness, skipped
    )


@dataclass(frozen=True)
class _Kept:
    """What the central folder is to hold: a manifest, and copies of files."""

    folder: str
    server: dict[str, Value]
    document: Document
    files: Sequence[tuple[StoredFile, str]]


def _files(
    site: Site, session: Session, where: Source, manifest: Manifest, share: Share, dest: str
) -> tuple[list[tuple[StoredFile, str]], tuple[str, ...]]:
    """The files to copy beside the manifest, each with its central path, and the dot-led ones left out."""
    if share is Share.STATS:
        return [], ()
    files = syncs.files_of(site, session, where, is_folder=True)
    log = f"{where.path}/{manifest.native_log_file}"
    if not manifest.native_log_file or log not in {file.path for file in files}:
        raise InvalidFrontmatter(
            "A full share's manifest must name the session's log, a file of its folder, as 'native_log_file'.",
            hint='Or send "share": "stats".',
        )
    copies, skipped = syncs.into_folder(files, where.path, dest)
    return [(file, path) for file, path in copies if path != f"{dest}/{traces_manifest.FILE}"], tuple(skipped)


def _server_keys(
    site: Site, agent_id: str, share: Share, completeness: Completeness, *, is_proven: bool
) -> dict[str, Value]:
    keys: dict[str, Value] = {
        "agent": agent_id,
        "promoted_at": to_iso_ms(site.clock()),
        "via": "bucket",
        "share": share.value,
        "completeness": completeness.value,
    }
    return keys if is_proven else keys | {PROOF_KEY: NO_PROOF}


def _write(site: Site, session: Session, where: Source, kept: _Kept) -> int:
    """Make the central folder hold just that; return its size in bytes."""
    store, manifest_path = site.buckets(session), f"{kept.folder}/{traces_manifest.FILE}"
    data = stored_form(kept.server, kept.document.frontmatter, kept.document.body)
    stays = {manifest_path, *(path for _, path in kept.files)}
    stale = [file.path for file in store.list(site.central, kept.folder) if file.path not in stays]
    changes: list[Change] = [Delete(path) for path in stale]
    changes += [Copy(path, where.bucket, file.path) for file, path in kept.files]
    store.apply(site.central, [*changes, Put(manifest_path, data, CONTENT_TYPE)])
    stored = store.stat(site.central, manifest_path)
    assert stored is not None, "it was just written"
    traces_index.index_stored(site, session, stored)
    return len(data) + sum(file.size for file, _ in kept.files)
