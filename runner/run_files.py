"""The files that every run's folder has, and where each run's folder lies.

The bucket around it is its owner's, who can put a file of nearly the same name in the way of any of these.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlmodel import Session

from runner.rows import JobRow
from runner.states import State, old_word
from storage.buckets import Change, NameTaken, Put
from storage.clock import to_iso_ms
from storage.paths import BucketName, parse_bucket
from storage.site import Site

_log = logging.getLogger(__name__)

STATUS = "job_status.json"
LOGS = "job_logs.txt"
HARNESS = (
    "benchmark.jsonl",
    "decode_outputs.jsonl",
    "decode_summary.json",
    "ppl_results.jsonl",
    "ppl_decoys.jsonl",
    "ppl_summary.json",
    "summary.json",
    "failure.json",
)
"""What the harness may leave, each if it got that far."""


def bucket_of(row: JobRow) -> BucketName:
    """The bucket that a job's run folder lies in."""
    return parse_bucket(row.run_bucket)


def put_json(row: JobRow, name: str, record: Mapping[str, object]) -> Put:
    """Make the change that writes one JSON file of the run folder."""
    text = json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
    return Put(f"{row.run_prefix}/{name}", text.encode("utf-8", "replace"), "application/json")


def put_text(row: JobRow, name: str, text: str) -> Put:
    """Make the change that writes one text file of the run folder."""
    return Put(f"{row.run_prefix}/{name}", text.encode("utf-8", "replace"), "text/plain; charset=utf-8")


def status_of(row: JobRow) -> dict[str, object]:
    """Say where a job is, in the words of old clients and in ours."""
    return {
        "job_id": row.id,
        "agent_id": row.agent_id,
        "submission_bucket": row.submission_bucket,
        "submission_prefix": row.submission_prefix,
        "run_prefix": row.run_prefix,
        "content_hash": row.content_hash,
        "status": old_word(State(row.state)),
        "state": row.state,
        "stage": row.stage or row.state,
        "code": row.code,
        "fault": row.fault,
        "message": row.message,
        "created_at": _iso(row.created_at),
        "started_at": _iso(row.started_at),
        "finished_at": _iso(row.finished_at),
    }


def write_status(site: Site, session: Session, row: JobRow) -> None:
    """Write the job's status file as it stands, where its bucket is still there and has room for that name."""
    try:
        with session.begin_nested():
            write_beside_status(site, session, row, [])
    except NameTaken as taken:
        _log.info("job %s: its status file is not written: %s", row.id, taken.message)


def write_beside_status(site: Site, session: Session, row: JobRow, files: Sequence[Change]) -> None:
    """Write files of the run together with its status as it stands, if its bucket is still there.

    Raises:
        NameTaken: the bucket's owner has other files in their place; the caller rolls back.
    """
    buckets = site.buckets(session)
    if buckets.find(bucket_of(row)) is not None:
        buckets.apply(bucket_of(row), [*files, put_json(row, STATUS, status_of(row))])


def _iso(at: datetime | None) -> str | None:
    return None if at is None else to_iso_ms(at)
