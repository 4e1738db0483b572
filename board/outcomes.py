"""The indexed form of a result, from its file and its verdict alone, for live writes and reindexing alike."""

from collections.abc import Mapping

from board import claims, submissions
from board.moderation import state_of
from board.records import IMPORTED, RecordName
from board.rows import ResultRow
from board.verdicts import State, Verdict
from storage.errors import InvalidFrontmatter
from storage.site import Site


def row_of(site: Site, name: RecordName, frontmatter: Mapping[str, object]) -> ResultRow:
    """Index a result that nobody has verified; one that can't be read as a claim is marked malformed."""
    withdrawn = state_of(frontmatter)
    row = _without_claim(name, kept_off=withdrawn.value) if withdrawn else _claimed(site, name, frontmatter)
    return _as_history(row, frontmatter) if frontmatter.get("via") == IMPORTED else row


def _as_history(row: ResultRow, frontmatter: Mapping[str, object]) -> ResultRow:
    """Mark a result that another board published: nothing of ours measured it, so it never stands among ours."""
    told = frontmatter.get("imported_verification")
    row.verification = State.IMPORTED.value
    row.kept_off = row.kept_off or IMPORTED
    row.reason = row.reason or f"Imported; the board it comes from listed it as {told or 'nothing'}."
    return row


def _claimed(site: Site, name: RecordName, frontmatter: Mapping[str, object]) -> ResultRow:
    places = submissions.named(frontmatter, central=site.central, scratch=site.scratch(name.handle))
    try:
        claim = claims.read(frontmatter, site.challenge, is_history=frontmatter.get("via") == IMPORTED)
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
    return _without_claim(name, malformed=True, reason=reason)


def _without_claim(name: RecordName, *, malformed: bool = False, reason: str = "", kept_off: str = "") -> ResultRow:
    return ResultRow(
        filename=name.filename,
        agent=name.handle,
        posted_at=name.at,
        claimed=None,
        guard=None,
        method="",
        status="",
        description="",
        malformed=malformed,
        verification=State.PENDING.value,
        reason=reason,
        kept_off=kept_off,
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
