"""Forms of signed-in browsers, and how a form made by somebody else's site is told apart.

    @router.post("/jobs/{job_id}/cancel")                # each form has its own page-like address
    def cancel(job_id: str, caller: FormCaller, session: Write) -> Response: ...

    <form method="post" action="/jobs/{{ view.id }}/cancel">{% include "csrf.html" %} … </form>

`FormCaller`: somebody signed in who may post; `FormOrganizer`, `FormOperator`: of that role; `FormVisit`: the session,
whatever it is for. Pages to look at take `SignedIn`, `MaybeSignedIn` or `SignedInOperator` of `web.sessions`.
"""

import hmac
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request

from agents.roles import NotOperator, NotOrganizer
from agents.scopes import Scope
from agents.sessions import Visit
from agents.tokens import Caller
from storage.errors import Forbidden
from storage.site import Site
from web.deps import TheSite, origin, require
from web.sessions import MaybeVisit, SignInNeeded, form_token

FIELD = "csrf"


class ForgedForm(Forbidden):
    """The form wasn't sent from a page of ours in this session."""

    code = "FORGED_FORM"


def check_same_origin(request: Request, site: TheSite) -> None:
    """Make sure that a form stood on a page of this very site.

    Raises:
        ForgedForm: the browser names another site, or none.
    """
    came = urlsplit(request.headers.get("origin") or request.headers.get("referer") or "")
    if f"{came.scheme}://{came.netloc}" not in _own_origins(request, site):
        raise ForgedForm("This form came from another site.", hint="Open the page here and send it again.")


def _own_origins(request: Request, site: Site) -> set[str]:
    public = urlsplit(site.settings.public_url)
    return {origin(request)} | ({f"{public.scheme}://{public.netloc}"} if public.netloc else set())


async def sent_token(request: Request) -> str:
    """The word that the form sent back, or an empty string."""
    sent = (await request.form()).get(FIELD)
    return sent if isinstance(sent, str) else ""


SameOrigin = Depends(check_same_origin)


def maybe_form_visit(
    request: Request, site: TheSite, visit: MaybeVisit, sent: Annotated[str, Depends(sent_token)]
) -> Visit | None:
    """Whose browser sent the form, or None where nobody is signed in.

    Raises:
        ForgedForm: somebody is, and the form isn't theirs.
    """
    if visit is not None:
        check_same_origin(request, site)
        if not hmac.compare_digest(sent.encode("utf-8", "replace"), form_token(request, site).encode()):
            raise ForgedForm("This form is not of your session.", hint="Reload the page and send it again.")
    return visit


MaybeFormVisit = Annotated[Visit | None, Depends(maybe_form_visit)]


def form_visit(visit: MaybeFormVisit) -> Visit:
    """Whose browser sent the form.

    Raises:
        SignInNeeded, ForgedForm: nobody is signed in, or the form isn't theirs.
    """
    if visit is None:
        raise SignInNeeded("Sign in to do this.", hint="Sign in at /signin.")
    return visit


FormVisit = Annotated[Visit, Depends(form_visit)]


def form_caller(visit: FormVisit) -> Caller:
    """Who sent the form, if they may post.

    Raises:
        As `form_visit`.
        ScopeMissing: they signed in with a token that isn't meant for it.
    """
    return require(visit.caller, Scope.POST)


FormCaller = Annotated[Caller, Depends(form_caller)]


def form_organizer(caller: FormCaller) -> Caller:
    """Who sent the form, if they are an organizer.

    Raises:
        As `form_caller`.
        NotOrganizer: they are none.
    """
    if not caller.is_organizer:
        raise NotOrganizer("Only an organizer can do this.")
    return caller


def form_operator(visit: FormVisit) -> Caller:
    """Who sent the form, if they are an operator and signed in to act as one.

    Raises:
        As `form_visit`.
        NotOperator: they aren't.
    """
    if not visit.caller.is_operator:
        raise NotOperator("Only an operator can do this.")
    return visit.caller


FormOrganizer = Annotated[Caller, Depends(form_organizer)]
FormOperator = Annotated[Caller, Depends(form_operator)]
