"""List what a bucket holds."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from storage.buckets import StoredFile
from storage.clock import to_iso_ms
from storage.local.listing import Folder, cursor_after
from web.deps import MaybeCaller, MaybeReader, Read, TheSite
from web.hub.access import bucket_name, local, readable, user_of
from web.hub.paging import next_link
from web.hub.receiving import MAX_BODY_BYTES
from web.hub.routing import HubRoute
from web.text import Text

router = APIRouter(route_class=HubRoute, tags=["hub"], max_body_size=MAX_BODY_BYTES)

PAGE = 1000


class Paths(BaseModel):
    """Paths to look up at once."""

    paths: Annotated[list[Text], Field(max_length=PAGE)]


@router.get("/api/buckets/{namespace}/{name}/tree")
@router.get("/api/buckets/{namespace}/{name}/tree/{prefix:path}")
def tree(
    request: Request,
    response: Response,
    site: TheSite,
    session: Read,
    caller: MaybeCaller,
    namespace: str,
    name: str,
    prefix: str = "",
    recursive: bool = False,
    cursor: str = "",
    limit: Annotated[int, Query(ge=1, le=PAGE)] = PAGE,
) -> list[dict[str, Any]]:
    """List a folder by path, a page at a time; recursively, files only."""
    store = local(site, session)
    bucket = readable(store, bucket_name(namespace, name, caller), user_of(caller)).name
    lister = store.list if recursive else store.entries
    entries = lister(bucket, prefix, after=cursor, limit=limit)
    if len(entries) == limit:
        response.headers["Link"] = next_link(request, cursor_after(entries[-1]))
    return [_entry(entry) for entry in entries]


@router.post("/api/buckets/{namespace}/{name}/paths-info")
def paths_info(
    site: TheSite, session: Read, caller: MaybeReader, namespace: str, name: str, wanted: Paths
) -> list[dict[str, Any]]:
    """Describe those of the paths that are files."""
    store = local(site, session)
    bucket = readable(store, bucket_name(namespace, name, caller), user_of(caller)).name
    return [_entry(file) for file in store.stat_all(bucket, wanted.paths)]


def _entry(entry: StoredFile | Folder) -> dict[str, Any]:
    if isinstance(entry, Folder):
        return {"type": "directory", "path": entry.path, "uploadedAt": to_iso_ms(entry.uploaded_at)}
    return {
        "type": "file",
        "path": entry.path,
        "size": entry.size,
        "xetHash": entry.digest,
        "mtime": to_iso_ms(entry.mtime),
        "uploadedAt": to_iso_ms(entry.uploaded_at),
        "contentType": entry.content_type,
    }
