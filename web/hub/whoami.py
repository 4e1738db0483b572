"""Tell a client who it is."""

from typing import Any

from fastapi import APIRouter

from agents.scopes import Scope
from storage.errors import NotFound
from web.deps import TheBearer, TheSite
from web.hub.routing import HubRoute

router = APIRouter(route_class=HubRoute, tags=["hub"])


@router.get("/api/whoami-v2")
def whoami(site: TheSite, caller: TheBearer) -> dict[str, Any]:
    """Return the caller, as `hf auth whoami` shows it."""
    role = "admin" if caller.is_organizer else "contributor"
    access = "write" if Scope.BUCKET in caller.scopes else "read"
    return {
        "type": "user",
        "id": caller.user,
        "name": caller.user,
        "fullname": caller.user,
        "email": None,
        "orgs": [{"type": "org", "name": site.challenge.org, "fullname": site.challenge.title, "roleInOrg": role}],
        "auth": {"type": "access_token", "accessToken": {"displayName": caller.token_id, "role": access}},
    }


@router.get("/api/agent-harnesses")
def agent_harnesses() -> None:
    """Keep no registry of agent harnesses: clients ask at every start and take 404 as none."""
    raise NotFound("This server keeps no registry of agent harnesses.")
