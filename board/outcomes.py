"""The indexed form of a result, from its file and its verdict alone, for live writes and reindexing alike."""

from collections.abc import Mapping

from board import claims, submissions
from board.records import RecordName
from board.rows import ResultRow
from board.verdicts import State, Verdict
from storage.errors import InvalidFrontmatter
from storage.site import Site


def row_of(site: Site, name: RecordName, frontmatter: Mapping[str, object]) -> ResultRow:
    """Index a result that nobody has verified; one that can't be read as a claim is marked malformed."""
    places = submissions.named(frontmatter, central=site.central, scratch=site.scratch(name.handle))
    try:
        claim = claims.read(frontmatter, site.challenge)
    except InvalidFrontmatter as error:
        return malformed_row(name, error.message)
    return ResultRow(
        filename=name.filename,
        agent=name.handle,
        posted_at=name.at,
        claimed=claim.score,
        guard=claim.guard,
        method=claim.method,
        status=claim.status.value,
        description=claim.description,
        verification=State.PENDING.value,
        hardware=claim.hardware,
        submission=str(places[0]) if places else None,
    )


def malformed_row(name: RecordName, reason: str) -> ResultRow:
    """Index a result whose file can't be ranked, so that it is counted and not lost."""
    return ResultRow(
        filename=name.filename,
        agent=name.handle,
        posted_at=name.at,
        claimed=None,
        guard=None,
        method="",
        status="",
        description="",
        malformed=True,
        verification=State.PENDING.value,
        reason=reason,
    )


def apply_verdict(row: ResultRow, verdict: Verdict, *, path: str) -> None:
    """Put into `row` what the verdict at `path` found; the hardware measured on wins over the one claimed."""
    row.verification = verdict.state.value
    row.reason = verdict.reason
    row.measured = verdict.measured
    row.interval_low = verdict.interval_low
    row.interval_high = verdict.interval_high
    row.measured_guard = verdict.measured_guard
    row.n = verdict.n
    row.draws = list(verdict.scores)
    row.hardware = verdict.hardware or row.hardware
    row.claim_state = verdict.claim_state
    row.verdict_path = path
