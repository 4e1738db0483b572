"""Tell clients how a file is put together, and hand them the xorb bytes it takes."""

import re
from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import JSONResponse
from sqlmodel import Session

from storage.buckets import FileNotInBucket
from storage.database import reading
from storage.errors import Corrupt
from storage.local import contents, listing, xorbs
from storage.local.blobs import Blobs
from storage.local.contents import Readable
from storage.site import Site
from storage.xet.errors import InvalidXet
from storage.xet.hashes import Digest, from_text, to_text
from storage.xet.reconstruction import ChunkRange, Fetch, Plan, SignUrl, fetches, plan, to_v1, to_v2
from storage.xet.tables import ChunkTable
from storage.xet.xorbs import read_verified
from web.deps import TheSite, origin
from web.hub.access import local
from web.hub.granting import TheGrant, TheSigner, granted_bucket
from web.hub.ranges import Span, parse_range
from web.hub.routing import HubRoute
from web.hub.sending import RANGED, Octets, send
from web.hub.signing import URL_LIFE, BadSignature, Grant, Mode

router = APIRouter(prefix="/cas/{generation}/{bucket_id}", route_class=HubRoute, tags=["store"])

_PAIR = re.compile(r"(\d{1,10})-(\d{1,10})", re.ASCII)


class Recipe:
    """A plan for the requested range of a file in the token's bucket, and how to sign its URLs."""

    def __init__(self, request: Request, site: TheSite, signer: TheSigner, grant: TheGrant, digest: str) -> None:
        """Plan.

        Raises:
            InvalidXet: that has not the form of a hash.
            FileNotInBucket: no file of the bucket has that hash, wherever else it may be.
            RangeNotSatisfiable: the range begins at or behind the file's end.
        """
        with reading(site.engine) as session:
            content = _content(site, session, grant, from_text(digest))
        span = parse_range(request.headers.get("range"), content.size)
        expires_s = int((site.clock() + URL_LIFE).timestamp())
        base = f"{origin(request)}/cas/{site.blobs.generation}/{grant.bucket_id}/xorbs"
        self.plan: Plan = plan(content.terms, content.tables, span.start, span.end)
        self.fetches = fetches(self.plan, content.tables)
        self.sign: SignUrl = lambda fetch: (
            f"{base}/{to_text(fetch.xorb)}?{signer.query(fetch, grant, expires_s=expires_s)}"
        )


@router.get("/v2/reconstructions/{digest}", responses={416: RANGED[416]})
async def reconstruction(recipe: Annotated[Recipe, Depends()]) -> JSONResponse:
    """Tell which chunks of which xorbs make the range, with one signed URL for each."""
    return JSONResponse(to_v2(recipe.plan, recipe.fetches, recipe.sign))


@router.get("/v1/reconstructions/{digest}", responses={416: RANGED[416]})
async def reconstruction_v1(recipe: Annotated[Recipe, Depends()]) -> JSONResponse:
    """Tell the same in the older form."""
    return JSONResponse(to_v1(recipe.plan, recipe.fetches, recipe.sign))


@router.get("/xorbs/{digest}", response_class=Octets, responses=RANGED)
def xorb_bytes(
    request: Request,
    site: TheSite,
    signer: TheSigner,
    bucket_id: int,
    digest: str,
    chunks: str,
    bytes_: Annotated[str, Query(alias="bytes")],
    expires: int,
    signature: str,
    by: str = "",
) -> Response:
    """Send bytes of a xorb to whoever holds a signed URL, no further than what was signed."""
    grant = Grant(bucket_id, Mode.READ, by, expires)
    first, last = _pair(bytes_)
    fetch = Fetch(from_text(digest), ChunkRange(*_pair(chunks)), first, last)
    signer.check_url(fetch, grant, signature=signature, now=site.clock())
    with reading(site.engine) as session:
        granted_bucket(local(site, session), grant)
        table = xorbs.tables(session, {fetch.xorb})[fetch.xorb]
    span = _span_within(request.headers.get("range"), fetch, table)
    pieces = _verified_bytes(site.blobs, fetch, table, span)
    return send(pieces, span, table.stored_bytes, {"Content-Type": "application/octet-stream"})


def _content(site: Site, session: Session, grant: Grant, digest: Digest) -> Readable:
    granted_bucket(local(site, session), grant)
    if not listing.holds(session, grant.bucket_id, to_text(digest)):
        raise FileNotInBucket("No file of this bucket has that hash.")
    return contents.load(session, to_text(digest))


def _pair(text: str) -> tuple[int, int]:
    match = _PAIR.fullmatch(text)
    if match is None:
        raise BadSignature("The URL's ranges are malformed.")
    return int(match[1]), int(match[2])


def _span_within(header: str | None, fetch: Fetch, table: ChunkTable) -> Span:
    span = parse_range(header, table.stored_bytes)
    if not span.is_partial:
        return Span(fetch.first_byte, fetch.last_byte + 1, is_partial=True)
    if not (fetch.first_byte <= span.start and span.end <= fetch.last_byte + 1):
        raise BadSignature("The URL does not open that range.")
    return span


def _verified_bytes(blobs: Blobs, fetch: Fetch, table: ChunkTable, span: Span) -> Iterator[bytes]:
    """Yield the span's stored bytes; a client checks nothing itself, so each chunk is unpacked and checked here."""
    name, position = to_text(fetch.xorb), fetch.first_byte
    with blobs.open(name) as file:
        try:
            for chunk in read_verified(file, table, fetch.chunks.start, fetch.chunks.end):
                yield chunk.raw[max(0, span.start - position) : max(0, span.end - position)]
                position += len(chunk.raw)
        except InvalidXet as error:
            raise Corrupt(f"The stored xorb {name} is damaged.") from error
