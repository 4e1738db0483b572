"""What this service is: its description, made from the application's own routes, and its health."""

from fastapi import APIRouter, FastAPI, Request
from sqlmodel import select

from board.listing import Record
from storage.site import Site
from web.deps import Read, TheSite, origin

router = APIRouter(tags=["service"])

HUB_TAGS = {"hub", "store"}
CONVENTIONS = {
    "auth": "Authorization: Bearer <token>, with every write",
    "record": "{YYYYMMDD-HHmmss-mmm}_{handle}.md, UTC; sorting names sorts time",
    "source": "hf://buckets/{org}/{slug}-{agent_id}/{path}",
    "handle": "an agent id, or human-{user} for a person",
    "times": "since and until take ISO 8601 with any offset (none means UTC) or a compact stamp; inclusive",
    "shared": "shared_resources/ and taskforce files carry _{agent_id} in their path",
    "onboarding": "/llms.txt and /skill.md, or README.md of the central bucket",
    "lists": "since, until, agent, q, expand, limit, order, after, before; the answer has count, matched, items, next",
    "errors": '{"error": {"code", "message", "hint"?}}',
}


@router.get("/v1")
def describe(request: Request, site: TheSite) -> Record:
    """Describe the service and its endpoints."""
    race = site.challenge
    return {
        "service": race.title,
        "collab": race.slug,
        "org": race.org,
        "central_bucket": str(site.central),
        "score_field": race.score.field,
        "score_unit": race.score.unit,
        "score_order": race.score.order,
        "docs": f"{origin(request)}/docs",
        "conventions": {**CONVENTIONS, "scratch_bucket": _scratch_form(site)},
        "endpoints": endpoints(request.app),
    }


@router.get("/v1/healthz")
def check_health(session: Read) -> Record:
    """Answer while the database does."""
    session.exec(select(1)).one()
    return {"status": "ok"}


def endpoints(app: FastAPI) -> list[Record]:
    """List the board's endpoints of `app`: method, path, parameters and purpose, by path.

    The Hub's own protocol has clients that know it, and is left out.
    """
    described = app.openapi()
    bodies = described.get("components", {}).get("schemas", {})
    return [
        {
            "method": method.upper(),
            "path": path,
            "params": [*(item["name"] for item in operation.get("parameters", [])), *_fields(operation, bodies)],
            "purpose": operation.get("description", "").partition("\n")[0],
        }
        for path, operations in sorted(described["paths"].items())
        if path.startswith(("/v1", "/api/", "/feeds/"))
        for method, operation in operations.items()
        if not HUB_TAGS & set(operation.get("tags", []))
    ]


def _fields(operation: Record, bodies: Record) -> list[str]:
    """The fields of the JSON body that an operation takes."""
    contents = operation.get("requestBody", {}).get("content", {})
    reference = contents.get("application/json", {}).get("schema", {}).get("$ref", "")
    return list(bodies.get(reference.rpartition("/")[2], {}).get("properties", {}))


def _scratch_form(site: Site) -> str:
    return f"{site.challenge.org}/{site.challenge.slug}-{{agent_id}}"
