"""`/buckets/{ns}/{name}` and `…/tree/{path}`: what a bucket holds, for whoever may read it.

A bucket that the reader may not see is answered word for word like one that isn't there.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response
from markupsafe import Markup

from agents.directory import agent_ids
from storage.buckets import Bucket, FileNotInBucket, StoredFile
from storage.local.buckets import LocalBuckets
from storage.local.listing import Folder, cursor_after
from storage.paths import BucketName, check_path
from storage.site import Site
from web.deps import Read, TheSite, site_url
from web.hub.access import bucket_name, local, readable, user_of
from web.pages import bucket_file, files, moments, rights
from web.pages.files import Crumb
from web.pages.frame import page
from web.pages.moments import Moment
from web.viewers import MaybeViewer

router = APIRouter(include_in_schema=False)
_METHODS = ["GET", "HEAD"]
_SHOWN = 200
_CURSOR_CHARS = 1100
_README = "README.md"


@dataclass(frozen=True)
class EntryLine:
    """One file or folder; `size` in bytes and `at` are a file's alone, a folder's name ends in a slash."""

    name: str
    href: str
    size: int | None
    at: Moment | None


@dataclass(frozen=True)
class BucketView:
    """One page of a folder; `more` is the address of the next one, `readme` sanitised."""

    template: ClassVar[str] = "bucket.html"

    bucket: str
    owner: str
    is_private: bool
    size: int
    count: int
    folder: str
    crumbs: tuple[Crumb, ...]
    entries: tuple[EntryLine, ...]
    is_first: bool
    more: str
    readme: Markup | None
    fetch: str


@router.api_route("/buckets/{namespace}/{name}", methods=_METHODS)
@router.api_route("/buckets/{namespace}/{name}/tree", methods=_METHODS)
@router.api_route("/buckets/{namespace}/{name}/tree/{path:path}", methods=_METHODS)
def browse(
    request: Request,
    site: TheSite,
    session: Read,
    viewer: MaybeViewer,
    namespace: str,
    name: str,
    path: str = "",
    after: Annotated[str, Query(max_length=_CURSOR_CHARS)] = "",
) -> Response:
    """Show a folder of a bucket, or a file as text."""
    store = local(site, session)
    bucket = readable(store, bucket_name(namespace, name, viewer), user_of(viewer))
    place = path.strip("/")
    file = store.stat(bucket.name, check_path(place, dot_led=True)) if place else None
    if file is not None:
        may = rights.rights_of(session, viewer)
        return page(request, bucket_file.file_view(site, store, bucket.name, file, may=may))
    return page(request, bucket_view(site, store, bucket, place, url=site_url(request, site), after=after))


def bucket_view(
    site: Site, store: LocalBuckets, bucket: Bucket, folder: str, *, url: str, after: str = ""
) -> BucketView:
    """Read one page of a folder; `url` is this site's address.

    Raises:
        FileNotInBucket: there is no such folder.
    """
    found = store.entries(bucket.name, folder, after=after, limit=_SHOWN + 1)
    if folder and not found and not after:
        raise FileNotInBucket(f"There is no file or folder {folder!r:.200} in the bucket {bucket.name}.")
    shown, at = found[:_SHOWN], files.page_of(bucket.name, folder)
    size, count = store.usage([bucket.name])[bucket.name]
    return BucketView(
        bucket=str(bucket.name),
        owner=bucket.owner,
        is_private=bucket.private,
        size=size,
        count=count,
        folder=folder,
        crumbs=files.crumbs(bucket.name, folder),
        entries=tuple(_line(site, bucket.name, entry) for entry in shown),
        is_first=not after,
        more=f"{at}?after={quote(cursor_after(shown[-1]), safe='')}" if len(found) > _SHOWN else "",
        readme=None if after else _readme(store, bucket.name, folder),
        fetch=f"export HF_ENDPOINT={url}\nhf buckets sync {_uri(bucket.name, folder)} ./here",
    )


def _line(site: Site, bucket: BucketName, entry: StoredFile | Folder) -> EntryLine:
    name, href = entry.path.rpartition("/")[2], files.page_of(bucket, entry.path)
    if isinstance(entry, Folder):
        return EntryLine(f"{name}/", href, None, None)
    return EntryLine(name, href, entry.size, moments.moment(entry.uploaded_at, now=site.clock()))


def _readme(store: LocalBuckets, bucket: BucketName, folder: str) -> Markup | None:
    file = store.stat(bucket, f"{folder}/{_README}" if folder else _README)
    return bucket_file.readme(store, bucket, file, known=agent_ids(store.session)) if file else None


def _uri(bucket: BucketName, folder: str) -> str:
    return f"{bucket.uri}/{folder}" if folder else bucket.uri
