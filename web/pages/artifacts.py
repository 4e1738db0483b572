"""`/artifacts/{path}`: what the board's texts call `artifacts/…`, in the central bucket."""

from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

from storage.paths import check_path
from web.deps import TheSite
from web.pages import files

router = APIRouter(include_in_schema=False)


@router.get("/artifacts/{path:path}")
def artifact(path: str, site: TheSite, raw: str | None = None) -> Response:
    """Lead to the page of a file or folder of `artifacts/`, or, with `raw`, to the file's bytes."""
    place = check_path(f"artifacts/{path}".rstrip("/"))
    address = files.page_of if raw is None else files.link
    return RedirectResponse(address(site.central, place), 307)
