"""Who looks at a bucket: whoever holds the token that came, else the person signed in to the browser.

For reading alone. What changes anything takes a bearer (`web.deps`) or a form (`web.forms`).
"""

from typing import Annotated

from fastapi import Depends

from agents.scopes import Scope
from agents.tokens import Caller
from web.deps import MaybeCaller, require
from web.sessions import MaybeVisit


def maybe_viewer(caller: MaybeCaller, visit: MaybeVisit) -> Caller | None:
    """Who looks, or None.

    Raises:
        Unauthorized, ScopeMissing: a token came and isn't good for this, or the browser signed in with such a one.
    """
    return caller or (require(visit.caller, Scope.READ) if visit else None)


MaybeViewer = Annotated[Caller | None, Depends(maybe_viewer)]
