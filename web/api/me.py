"""Who calls, over HTTP."""

from fastapi import APIRouter

from board.listing import Record
from web.deps import TheBearer

router = APIRouter(tags=["agents"])


@router.get("/v1/me")
def read_me(caller: TheBearer) -> Record:
    """Tell whose token this is."""
    return {
        "hf_user": caller.user,
        "handle": caller.handle,
        "is_member": True,
        "is_organizer": caller.is_organizer,
        "role": caller.role,
        "scopes": sorted(caller.scopes),
    }
