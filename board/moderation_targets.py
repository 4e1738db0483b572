"""Moderation by a path of the central bucket, whatever lies there: a record, or any other file that a client put."""

from sqlmodel import Session

from agents.tokens import Caller
from board import moderation_acts, moderation_files
from board.records import is_record
from board.rows import ModerationRow
from storage.paths import check_path
from storage.site import Site


def hide(site: Site, session: Session, caller: Caller, target: str, reason: str) -> ModerationRow:
    """Hide what lies at `target`, as an organizer.

    Raises:
        As `moderation_acts.hide` or `moderation_files.hide`.
    """
    folder, _, name = check_path(target).rpartition("/")
    if is_record(target):
        return moderation_acts.hide(site, session, caller, name, reason, folder=folder)
    return moderation_files.hide(site, session, caller, target, reason)


def unhide(site: Site, session: Session, caller: Caller, target: str, reason: str) -> ModerationRow:
    """Bring what lies at `target` back, as an organizer.

    Raises:
        As `moderation_acts.unhide` or `moderation_files.unhide`.
    """
    folder, _, name = check_path(target).rpartition("/")
    if is_record(target):
        return moderation_acts.unhide(site, session, caller, name, reason, folder=folder)
    return moderation_files.unhide(site, session, caller, target, reason)
