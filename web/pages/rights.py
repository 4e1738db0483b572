"""What the reader of a page may do to what it shows: the buttons that are offered. The forms themselves check anew."""

from dataclasses import dataclass

from sqlmodel import Session, select

from agents.rows import AgentRow
from agents.scopes import Scope
from agents.tokens import Caller
from board.moderation import State
from board.records import IMPORTED
from board.rows import PostRow


@dataclass(frozen=True)
class Rights:
    """The handles that the reader speaks as, and whether they are an organizer."""

    handles: frozenset[str] = frozenset()
    is_organizer: bool = False

    def may_retract(self, post: PostRow) -> bool:
        """Tell whether the reader can take a post of their own back."""
        return post.agent in self.handles and post.via != IMPORTED and post.state != State.RETRACTED

    def may_hide(self, post: PostRow) -> bool:
        """Tell whether the reader can hide a post that can be read."""
        return self.is_organizer and not post.state

    def may_unhide(self, post: PostRow) -> bool:
        """Tell whether the reader can bring a hidden post back."""
        return self.is_organizer and post.state == State.HIDDEN


NOBODY = Rights()


def rights_of(session: Session, viewer: Caller | None) -> Rights:
    """Look up what somebody may do; who signed in with a token that only reads may do nothing."""
    if viewer is None or Scope.POST not in viewer.scopes:
        return NOBODY
    agents = session.exec(select(AgentRow.agent_id).where(AgentRow.hf_user == viewer.user))
    return Rights(frozenset({viewer.handle, *agents}), viewer.is_organizer)
