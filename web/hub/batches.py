"""Take a batch of additions, copies and deletions, one JSON object a line."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, BinaryIO, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from sqlmodel import Session
from starlette.concurrency import run_in_threadpool

from agents import audit
from agents.tokens import Caller
from storage.database import writing
from storage.errors import Malformed
from storage.local.adoption import Add, Borrow, Operation, Refusal, Remove, apply_each
from storage.paths import BucketName, parse_bucket
from storage.quota_limits import byte_limits
from storage.site import Site
from web.api.params import Peer
from web.deps import TheSite
from web.hub.access import TheWriter, bucket_name, is_readable, local, writable
from web.hub.receiving import received
from web.hub.routing import HubRoute
from web.text import Text

router = APIRouter(route_class=HubRoute, tags=["hub"])

MAX_BATCH_BYTES = 16 * 1024 * 1024
MAX_OPERATIONS = 5000
_LATEST_MS = int(datetime(9999, 1, 1, tzinfo=UTC).timestamp() * 1000)

Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
ContentType = Annotated[str, Field(max_length=200, pattern=r"^[\x20-\x7e]*$")]


class AddFile(BaseModel):
    """A line that puts an uploaded content at a path."""

    type: Literal["addFile"]
    path: Text
    xetHash: Hash  # noqa: N815 - the Hub's name
    mtime: Annotated[int, Field(ge=0, le=_LATEST_MS)] = 0
    contentType: ContentType | None = None  # noqa: N815 - the Hub's name


class CopyFile(BaseModel):
    """A line that puts a content of another bucket at a path."""

    type: Literal["copyFile"]
    path: Text
    xetHash: Hash  # noqa: N815 - the Hub's name
    sourceRepoType: Literal["bucket"]  # noqa: N815 - the Hub's name
    sourceRepoId: Text  # noqa: N815 - the Hub's name
    contentType: ContentType | None = None  # noqa: N815 - the Hub's name


class DeleteFile(BaseModel):
    """A line that deletes a path."""

    type: Literal["deleteFile"]
    path: Text


Line = Annotated[AddFile | CopyFile | DeleteFile, Field(discriminator="type")]
_LINE: TypeAdapter[AddFile | CopyFile | DeleteFile] = TypeAdapter(Line)


_NONE_DONE: dict[int | str, dict[str, Any]] = {
    422: {"description": "No line could be done, or one isn't an operation.", "content": {"application/json": {}}}
}
_LINES = {"requestBody": {"required": True, "content": {"application/x-ndjson": {"schema": {"type": "string"}}}}}
"""How the call is described: FastAPI doesn't see a body that is read as it comes."""


class MalformedBatch(Malformed):
    """A line isn't an operation; nothing of the batch was done."""

    code = "MALFORMED_BATCH"


@router.post("/api/buckets/{namespace}/{name}/batch", responses=_NONE_DONE, openapi_extra=_LINES)
async def batch(
    request: Request, site: TheSite, caller: TheWriter, peer: Peer, namespace: str, name: str
) -> JSONResponse:
    """Do every line that can be done and say of each other why not; 422 when none could."""
    full = bucket_name(namespace, name, caller)
    async with received(request, site.blobs, max_bytes=MAX_BATCH_BYTES) as file:
        done, refusals = await run_in_threadpool(_apply, site, full, caller, peer, file)
    body = {
        "success": not refusals,
        "processed": done + len(refusals),
        "succeeded": done,
        "failed": [{"path": refusal.path, "error": refusal.reason} for refusal in refusals],
    }
    return JSONResponse(body, 422 if refusals and not done else 200)


def _apply(site: Site, name: BucketName, caller: Caller, peer: str, file: BinaryIO) -> tuple[int, list[Refusal]]:
    operations = list(parse_lines(file))
    with writing(site.engine) as session:
        store = local(site, session)
        bucket = writable(store, name, caller.user)
        refusals = apply_each(
            store,
            bucket.name,
            operations,
            may_read=lambda source: _may_read(site, session, source, caller.user),
            limits_of=partial(byte_limits, session, site.challenge.limits),
        )
        done = len(operations) - len(refusals)
        target = f"{bucket.name}: {done} of {len(operations)} operations"
        audit.record(session, caller=caller, action="buckets.batch", target=target, now=site.clock(), origin=peer)
    return done, refusals


def _may_read(site: Site, session: Session, name: BucketName, user: str) -> bool:
    bucket = local(site, session).find(name)
    return bucket is not None and is_readable(bucket, user)


def parse_lines(file: BinaryIO) -> Iterator[Operation]:
    """Read operations from NDJSON.

    Raises:
        MalformedBatch: with the number of the first line that isn't one.
    """
    for number, line in enumerate(file, start=1):
        if not (number <= MAX_OPERATIONS):
            raise MalformedBatch(f"A batch has at most {MAX_OPERATIONS} lines.")
        if line.strip():
            yield _operation(_parse(line, number))


def _parse(line: bytes, number: int) -> AddFile | CopyFile | DeleteFile:
    try:
        value: Any = json.loads(line)
        return _LINE.validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise MalformedBatch(f"Line {number} of the batch, {where}: {first['msg']}.") from error
    except (ValueError, RecursionError) as error:
        raise MalformedBatch(f"Line {number} of the batch is not JSON.") from error


def _operation(line: AddFile | CopyFile | DeleteFile) -> Operation:
    if isinstance(line, AddFile):
        return Add(line.path, line.xetHash, line.mtime, line.contentType)
    if isinstance(line, CopyFile):
        return Borrow(line.path, line.xetHash, parse_bucket(line.sourceRepoId), line.contentType)
    return Remove(line.path)
