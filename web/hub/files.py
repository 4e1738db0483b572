"""Hand out whole files and parts of them: what browsers, curl and `HfFileSystem` read."""

from urllib.parse import quote

from fastapi import APIRouter, Request, Response

from storage.buckets import FileNotInBucket, StoredFile
from storage.local import contents
from storage.paths import BucketName
from web.deps import MaybeCaller, Read, TheSite, origin
from web.hub.access import bucket_name, local, readable, user_of
from web.hub.ranges import parse_range
from web.hub.routing import HubRoute
from web.hub.sending import send

router = APIRouter(route_class=HubRoute, tags=["hub"])


@router.head("/buckets/{namespace}/{name}/resolve/{path:path}")
def describe(
    request: Request, site: TheSite, session: Read, caller: MaybeCaller, namespace: str, name: str, path: str
) -> Response:
    """Say how large a file is, what its hash is and where to get a token for the store."""
    store = local(site, session)
    bucket = readable(store, bucket_name(namespace, name, caller), user_of(caller)).name
    file = _existing(store.stat(bucket, path), bucket, path)
    return Response(headers=_headers(request, bucket, file) | {"Content-Length": str(file.size)})


@router.get("/buckets/{namespace}/{name}/resolve/{path:path}")
def resolve(
    request: Request, site: TheSite, session: Read, caller: MaybeCaller, namespace: str, name: str, path: str
) -> Response:
    """Send a file, or the one range of it that was asked for."""
    store = local(site, session)
    bucket = readable(store, bucket_name(namespace, name, caller), user_of(caller)).name
    file = _existing(store.stat(bucket, path), bucket, path)
    span = parse_range(request.headers.get("range"), file.size)
    pieces = contents.stream(site.blobs, contents.load(session, file.digest), span.start, span.end)
    return send(pieces, span, file.size, _headers(request, bucket, file))


def _existing(file: StoredFile | None, bucket: BucketName, path: str) -> StoredFile:
    if file is None:
        raise FileNotInBucket(f"There is no file {path!r:.200} in the bucket {bucket}.")
    return file


def _headers(request: Request, bucket: BucketName, file: StoredFile) -> dict[str, str]:
    route = f"{origin(request)}/api/buckets/{bucket}/xet-read-token"
    name = quote(file.path.rpartition("/")[2], safe="")
    return {
        "X-Xet-Hash": file.digest,
        "X-Xet-Refresh-Route": route,
        "X-Linked-Size": str(file.size),
        "X-Linked-Etag": f'"{file.digest}"',
        "ETag": f'"{file.digest}"',
        "Link": f'<{route}>; rel="xet-auth"',
        "Accept-Ranges": "bytes",
        # What users upload lies on the site's own origin: it is saved, never run.
        "Content-Type": "application/octet-stream",
        "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, no-cache",
    }
