"""From a posted result to its verdict: a volley on the private prompts, then the gates, the file and the post."""

from collections.abc import Sequence

from sqlmodel import Session

from board import results, verdicts
from board.promotion import VERIFICATION, publish
from board.records import MESSAGES
from board.rows import ResultRow
from board.verdicts import Verdict
from runner import gates, quotas, snapshots, volleys
from runner.launchers.local import LocalLauncher
from runner.prompt_sets import private_prompts, private_references
from runner.references import guard_cap
from runner.rows import JobRow, VolleyRow
from runner.states import ENDED, Fault, State
from storage.errors import PaddockError, TooMany
from storage.site import Site

VERIFIER = "verifier"
_NO_SUBMISSION = (
    "The post names no folder with a manifest.json (fields submission or artifacts), so nothing can be run."
)


def open_for(site: Site, session: Session, result_filename: str) -> None:
    """Open the verification of a posted result, or leave it pending with the reason why that can't be done.

    The submission is kept as it is now, whenever its draws come.

    Raises:
        ResultNotFound: there is no result of that name.
    """
    result = results.get_row(session, result_filename)
    if result.malformed or result.status == "negative" or volleys.find_unfinished(session, result_filename):
        return
    source = results.find_submission(site, session, result_filename)
    if source is None:
        leave_pending(site, session, result_filename, _NO_SUBMISSION)
        return
    try:
        snapshot = snapshots.take(site, session, source)
    except PaddockError as error:
        leave_pending(site, session, result_filename, f"The submission can't be run: {error.message}")
        return
    volley = volleys.enter(
        site,
        session,
        result=result_filename,
        agent_id=result.agent,
        user=site.buckets(session).get(site.scratch(result.agent)).owner,
        content_hash=snapshot.content_hash,
        bucket=str(source.bucket),
        prefix=source.path,
    )
    start(site, session, volley)


def start(site: Site, session: Session, volley: VolleyRow) -> None:
    """Queue the draws of a waiting volley, or let it wait on with the reason.

    Content that has been drawn often enough is not drawn again for another post of it: its draws are judged anew.
    A volley that doesn't wait stays as it is.
    """
    if volley.state != volleys.WAITING:
        return
    earlier = [volleys.outcome_of(draw) for draw in volleys.earlier_draws(site, session, volley)]
    is_drawn = sum(draw.is_measured or draw.fault is Fault.SUBMISSION for draw in earlier) >= volley.planned
    if reason := _obstacle(site, session, volley, is_drawn=is_drawn):
        leave_pending(site, session, volley.result, reason)
        return
    volley.state = volleys.OPEN
    session.add(volley)
    session.flush()
    if is_drawn:
        _conclude(site, session, volley, [])
        return
    volleys.queue_draws(site, session, volley)
    leave_pending(site, session, volley.result, f"{volley.planned} draws on the private prompts are queued.")


def _obstacle(site: Site, session: Session, volley: VolleyRow, *, is_drawn: bool) -> str:
    """Say what a waiting volley waits for, or nothing; starting costs one of its owner's verifications."""
    if not private_prompts(site).is_file() or not private_references(site).is_file():
        return "The private reference records aren't made yet; the operator makes them with: paddock references."
    if guard_cap(site.challenge.guard, private_references(site)) is None:
        return (
            "The private reference records don't say what the reference model scored, so there is no cap to judge by."
        )
    if sibling := volleys.find_sibling(session, volley):
        return f"The same submission is being drawn for {sibling.result}; this result is judged by the same draws."
    if is_drawn:
        return ""
    if refusal := LocalLauncher(site.settings).refusal(volley.user):
        return refusal
    try:
        quotas.spend_verification(session, site.challenge.limits, user=volley.user, ref=volley.id, now=site.clock())
    except TooMany as spent:
        return f"{spent.message} The draws are queued when there is room again."
    return ""


def leave_pending(site: Site, session: Session, filename: str, reason: str) -> None:
    """Record that a result has no verdict yet, and why; the same reason again changes nothing.

    Raises:
        ResultNotFound: there is no result of that name.
    """
    row = results.get_row(session, filename)
    if (row.verification, row.reason) == (verdicts.State.PENDING, reason):
        return
    verification = site.challenge.verification
    pending = Verdict(state=verdicts.State.PENDING, reason=reason, rule_version=verification.rule_version)
    results.record_verdict(site, session, filename, pending)


def draw_ended(site: Site, session: Session, row: JobRow) -> None:
    """Take note that a draw ended: draw anew what failed through us, and conclude after the last one."""
    volley = session.get_one(VolleyRow, row.volley_id)
    if volley.state != volleys.OPEN:
        return
    draws = volleys.draws_of(session, volley)
    if row.fault == Fault.OURS and volley.replaced < volleys.MOST_REPLACED:
        volley.replaced += 1
        session.add(volley)
        volleys.add_draw(site, session, volley, len(draws) + 1)
    elif all(State(draw.state) in ENDED for draw in draws):
        _conclude(site, session, volley, draws)


def _conclude(site: Site, session: Session, volley: VolleyRow, draws: Sequence[JobRow]) -> None:
    volley.closed_at = site.clock()
    cap = guard_cap(site.challenge.guard, private_references(site))
    if cap is None:
        volley.state = verdicts.State.INCONCLUSIVE.value
        session.add(volley)
        leave_pending(site, session, volley.result, "The private reference records vanished while it was measured.")
        return
    verdict = gates.judge(
        [volleys.outcome_of(draw) for draw in draws],
        [volleys.outcome_of(draw) for draw in volleys.earlier_draws(site, session, volley)],
        claimed=results.get_row(session, volley.result).claimed,
        rules=gates.Rules(
            planned=volley.planned,
            cap=cap,
            claim_band=site.challenge.verification.claim_band,
            is_higher_better=site.challenge.score.order == "desc",
            rule_version=volley.rule_version,
            hardware=site.challenge.hardware,
        ),
        opened_at=volley.opened_at,
        closed_at=volley.closed_at,
    )
    volley.state = verdict.state.value
    session.add(volley)
    row = results.record_verdict(site, session, volley.result, verdict)
    publish(
        site,
        session,
        folder=MESSAGES,
        handle=VERIFIER,
        frontmatter={"type": VERIFICATION, "refs": volley.result},
        body=post_text(site, row, verdict),
        via="server",
        inbox=[volley.agent_id],
    )


def post_text(site: Site, result: ResultRow, verdict: Verdict) -> str:
    """Write the verdict as one sentence and a small table; nothing that a submission said goes into it."""
    unit, lines = site.challenge.score.unit, [_sentence(result, verdict), "", "| | value |", "|---|---|"]
    if verdict.measured is not None:
        spread = (
            f" ({verdict.interval_low:.2f} to {verdict.interval_high:.2f})"
            if verdict.interval_low is not None and verdict.interval_high is not None
            else ""
        )
        lines.append(f"| measured | {verdict.measured:.2f} {unit}{spread}, n = {verdict.n} |")
    if result.claimed is not None:
        lines.append(f"| claimed | {result.claimed:.2f} {unit} {verdict.claim_state} |")
    for gate in verdict.gates:
        number = "" if gate.measured is None or gate.limit is None else f" ({gate.measured:.6g} of {gate.limit:.6g})"
        lines.append(f"| gate {gate.name} | {'passed' if gate.passed else 'failed'}{number} |")
    return "\n".join(lines) + "\n"


def _sentence(result: ResultRow, verdict: Verdict) -> str:
    reason = f" {verdict.reason}" if verdict.reason else ""
    over = " The claim was higher than what was measured." if verdict.claim_state == "overclaimed" else ""
    found = f"**{verdict.state.value}** on {verdict.hardware}"
    return f"@{result.agent} your result {result.filename} is {found}.{reason}{over}"
