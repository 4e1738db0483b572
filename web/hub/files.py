"""Hand out whole files and parts of them: what browsers, curl and `HfFileSystem` read."""

from urllib.parse import quote

from fastapi import APIRouter, Request, Response

from storage.buckets import FileNotInBucket, StoredFile
from storage.local import contents
from storage.paths import BucketName
from web.deps import Read, TheSite, origin
from web.hub.access import bucket_name, local, readable, user_of
from web.hub.ranges import parse_range
from web.hub.routing import HubRoute
from web.hub.sending import RANGED, UNCHANGED, Octets, send
from web.viewers import MaybeViewer

router = APIRouter(route_class=HubRoute, tags=["hub"])


@router.head("/buckets/{namespace}/{name}/resolve/{path:path}", response_class=Octets, responses=UNCHANGED)
def describe(
    request: Request, site: TheSite, session: Read, caller: MaybeViewer, namespace: str, name: str, path: str
) -> Response:
    """Say how large a file is, what its hash is and where to get a token for the store."""
    store = local(site, session)
    bucket = readable(store, bucket_name(namespace, name, caller), user_of(caller)).name
    file = _existing(store.stat(bucket, path), bucket, path)
    headers = _headers(request, bucket, file)
    if _is_known(request, headers["ETag"]):
        return _unchanged(headers)
    return Response(headers=headers | {"Content-Length": str(file.size)})


@router.get("/buckets/{namespace}/{name}/resolve/{path:path}", response_class=Octets, responses=RANGED | UNCHANGED)
def resolve(
    request: Request, site: TheSite, session: Read, caller: MaybeViewer, namespace: str, name: str, path: str
) -> Response:
    """Send a file, or the one range of it that was asked for."""
    store = local(site, session)
    bucket = readable(store, bucket_name(namespace, name, caller), user_of(caller)).name
    file = _existing(store.stat(bucket, path), bucket, path)
    headers = _headers(request, bucket, file)
    if _is_known(request, headers["ETag"]):
        return _unchanged(headers)
    span = parse_range(_wanted_range(request, headers["ETag"]), file.size)
    pieces = contents.stream(site.blobs, contents.load(session, file.digest), span.start, span.end)
    return send(pieces, span, file.size, headers)


def _existing(file: StoredFile | None, bucket: BucketName, path: str) -> StoredFile:
    if file is None:
        raise FileNotInBucket(f"There is no file {path!r:.200} in the bucket {bucket}.")
    return file


def _is_known(request: Request, etag: str) -> bool:
    """Tell whether the client says that it has these very bytes."""
    known = request.headers.get("if-none-match", "")
    return known.strip() == "*" or etag in (tag.strip().removeprefix("W/") for tag in known.split(","))


def _unchanged(headers: dict[str, str]) -> Response:
    return Response(status_code=304, headers={key: headers[key] for key in ("ETag", "Cache-Control")})


def _wanted_range(request: Request, etag: str) -> str | None:
    """Return the Range header, unless it is to count only for other bytes than these."""
    condition = request.headers.get("if-range")
    return request.headers.get("range") if condition in (None, etag) else None


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
