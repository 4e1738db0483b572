"""`/post`: a signed-in person writes a message or a reply, sees it as others will, then posts it."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar
from urllib.parse import quote

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import RedirectResponse
from markupsafe import Markup
from sqlmodel import Session

from agents import audit
from agents.directory import agent_ids
from agents.tokens import Caller
from board import messages
from board.messages import Posted, Wish
from board.rows import PostRow
from storage.errors import Invalid, NotFound, PaddockError
from storage.site import Site
from web.deps import Read, TheSite, Write
from web.forms import FormCaller
from web.last_use import peer
from web.pages import excerpts, posts, threads
from web.pages.frame import page
from web.pages.posts import anchor_of
from web.sessions import SignedIn
from web.statuses import status_of

MAX_FORM_BYTES = 2_000_000

router = APIRouter(include_in_schema=False, max_body_size=MAX_FORM_BYTES)
NameParam = Annotated[str, Query(max_length=200)]


class NothingToPost(Invalid):
    """The form came without a text."""


@dataclass(frozen=True)
class ComposeView:
    """The form as it was sent; `html` is the preview, `problem` says why the last try was refused."""

    template: ClassVar[str] = "compose.html"

    handle: str
    refs: str
    answers: str
    body: str
    html: Markup | None
    can_broadcast: bool
    is_broadcast: bool
    problem: str


@dataclass(frozen=True)
class Draft:
    """What the person wrote; `refs` is the file name of the post it answers, or empty."""

    body: str
    refs: str
    is_broadcast: bool

    @property
    def wish(self) -> Wish:
        """What is asked beside the text."""
        return Wish(refs=self.refs or None, broadcast=self.is_broadcast)


@router.get("/post")
def write(request: Request, session: Read, caller: SignedIn, refs: NameParam = "") -> Response:
    """Show the empty form; `refs` names the post to answer."""
    return page(request, compose_view(session, caller, Draft("", refs, is_broadcast=False)))


def sent_draft(
    body: Annotated[str, Form()] = "",
    refs: Annotated[str, Form(max_length=200)] = "",
    broadcast: Annotated[bool, Form()] = False,
) -> Draft:
    """Read the form; browsers end its lines in their own way."""
    return Draft(body.replace("\r\n", "\n"), refs, broadcast)


SentDraft = Annotated[Draft, Depends(sent_draft)]


@router.post("/post/preview")
def preview(request: Request, session: Read, caller: FormCaller, draft: SentDraft) -> Response:
    """Show the text as it will look, and the form with it."""
    return page(request, compose_view(session, caller, draft))


@router.post("/post")
def send(request: Request, site: TheSite, session: Write, caller: FormCaller, draft: SentDraft) -> Response:
    """Post the text; one that is refused stays in the form."""
    try:
        with session.begin_nested():  # a refusal undoes this much, and the page still answers
            posted = post(site, session, caller, draft, origin=peer(request))
    except PaddockError as error:
        view = compose_view(session, caller, draft)
        return page(request, replace(view, problem=f"{error.message} {error.hint or ''}"), status=status_of(error))
    name = posted.published.filename
    return RedirectResponse(f"/t/{quote(name)}#{anchor_of(name)}", 303)


def post(site: Site, session: Session, caller: Caller, draft: Draft, *, origin: str) -> Posted:
    """Post a draft as the person who is signed in, and note it.

    Raises:
        NothingToPost, NotFound: there is no text, or nothing of what it answers.
        As `board.messages.post_raw`.
    """
    if not draft.body.strip():
        raise NothingToPost("There is nothing to post yet.")
    if draft.refs:
        _answered(session, draft.refs)
    posted = messages.post_raw(site, session, caller, caller.handle, draft.body, draft.wish)
    path = posted.published.path
    audit.record(session, caller=caller, action="messages.post", target=path, now=site.clock(), origin=origin)
    return posted


def compose_view(session: Session, caller: Caller, draft: Draft) -> ComposeView:
    """Describe the form with its preview.

    Raises:
        NotFound: the post that is to be answered isn't there.
    """
    answered = _answered(session, draft.refs) if draft.refs else None
    return ComposeView(
        handle=caller.handle,
        refs=draft.refs,
        answers=excerpts.title(answered) if answered else "",
        body=draft.body,
        html=posts.rendered(draft.body, known=agent_ids(session)) if draft.body.strip() else None,
        can_broadcast=caller.is_organizer,
        is_broadcast=draft.is_broadcast and caller.is_organizer,
        problem="",
    )


def _answered(session: Session, filename: str) -> PostRow:
    row = threads.find(session, filename)
    if row is None:
        raise NotFound("The post to answer isn’t there.", hint="The board lists every thread.")
    return row
