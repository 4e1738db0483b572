"""A verdict in words and lines: gates, draws, and one sentence a newcomer understands."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from board.promotion import SERVER_KEYS
from board.rows import ResultRow
from board.verdicts import Draw, Gate, Verdict
from storage.challenge import Challenge
from storage.site import Site
from web.pages import badges, figures, files, strips
from web.pages.badges import Badge
from web.pages.caps import cap_text
from web.pages.moments import span
from web.pages.strips import Axis, Measured, Strip

_GATES = {
    "serves": "Every draw was served and measured",
    "tokens": "Tokens of a draw, counted from the timed replies",
    "guard": "Perplexity on private records, worst draw",
}
_SHOWN_ELSEWHERE = SERVER_KEYS | {"type", "title"}
_FACT_CHARS = 200


@dataclass(frozen=True)
class GateLine:
    """One gate as a row of the table."""

    name: str
    passed: bool
    badge: Badge
    measured: str
    limit: str
    detail: str


@dataclass(frozen=True)
class DrawLine:
    """One started draw; `x` is its place on the axis, empty where nothing was measured."""

    index: int
    badge: Badge
    score: str
    guard: str
    x: str
    code: str
    took: str


@dataclass(frozen=True)
class Evidence:
    """What a result stands on; `gates`, `draws` and `verdict_href` are empty until there is a verdict."""

    sentence: str
    cap: str
    axis: Axis | None
    strip: Strip | None
    gates: tuple[GateLine, ...]
    gates_passed: int
    draws: tuple[DrawLine, ...]
    draws_finished: int
    rule_version: int
    verdict_href: str


def evidence_of(site: Site, row: ResultRow, verdict: Verdict | None) -> Evidence:
    """Describe a result's verdict, or that there is none yet."""
    race, draws = site.challenge, verdict.draws if verdict else ()
    measured = Measured(tuple(row.draws), row.measured, row.interval_low, row.interval_high, row.claimed)
    axis = strips.axis_for([measured])
    gates = gate_lines(verdict.gates if verdict else (), race)
    return Evidence(
        sentence=sentence(row, verdict),
        cap=cap_of(verdict, site),
        axis=axis,
        strip=strips.strip(measured, axis) if axis else None,
        gates=gates,
        gates_passed=sum(1 for gate in gates if gate.passed),
        draws=draw_lines(draws, axis),
        draws_finished=sum(1 for draw in draws if draw.score is not None),
        rule_version=verdict.rule_version if verdict else race.verification.rule_version,
        verdict_href=files.link(site.central, row.verdict_path) if row.verdict_path and verdict else "",
    )


def gate_lines(gates: Iterable[Gate], race: Challenge) -> tuple[GateLine, ...]:
    """Describe each gate; a failed one comes first."""
    lines = [
        GateLine(
            name=_name(gate.name, race),
            passed=gate.passed,
            badge=badges.of_check(gate.passed),
            measured=figures.plain(gate.measured),
            limit=figures.plain(gate.limit),
            detail=gate.detail,
        )
        for gate in gates
    ]
    return tuple(sorted(lines, key=lambda line: line.passed))


def _name(name: str, race: Challenge) -> str:
    if name == "guard" and race.guard.field != "ppl":
        return f"{race.guard.field} on private records, worst draw"
    return _GATES.get(name) or name.replace("_", " ").capitalize()


def draw_lines(draws: Iterable[Draw], axis: Axis | None) -> tuple[DrawLine, ...]:
    """Describe each started draw, failed ones too."""
    return tuple(_draw(draw, axis) for draw in sorted(draws, key=lambda draw: draw.index))


def _draw(draw: Draw, axis: Axis | None) -> DrawLine:
    on_axis = axis is not None and draw.score is not None and axis.holds(draw.score)
    return DrawLine(
        index=draw.index,
        badge=badges.of_job(draw.state),
        score=figures.speed(draw.score),
        guard=figures.perplexity(draw.guard),
        x=axis.at(draw.score) if on_axis and axis and draw.score is not None else "",
        code=draw.code,
        took=_took(draw),
    )


def _took(draw: Draw) -> str:
    return span(draw.finished_at - draw.started_at) if draw.started_at and draw.finished_at else ""


def cap_of(verdict: Verdict | None, site: Site) -> str:
    """Give the guard's cap: as the verdict applied it, or as it would be applied now."""
    applied = next((gate.limit for gate in verdict.gates if gate.name == "guard"), None) if verdict else None
    return cap_text(site) if applied is None else figures.perplexity(applied)


def sentence(row: ResultRow, verdict: Verdict | None) -> str:
    """Say in a sentence or two what is known about a result."""
    if row.measured is None:
        return _unmeasured(row)
    started = len(verdict.draws) if verdict else row.n
    draws = f"Mean of {figures.counted(row.n, 'draw')} on private prompts"
    interval = ", with its 95 % interval" if row.interval_low is not None else ""
    rest = "Every draw that was started is counted." if started == row.n else f"{started} draws were started."
    return f"{draws}{interval}. {rest}{_standing(row)}"


def _standing(row: ResultRow) -> str:
    claimed = figures.speed(row.claimed)
    if row.kept_off:
        return f" {_KEPT_OFF[row.kept_off]}"
    if row.verification == "invalid":
        return " It failed a gate, so it doesn’t rank."
    if row.claim_state == "overclaimed":
        return f" The claim of {claimed} lies above what the draws allow; the entry stands at its measured value."
    return f" The claim of {claimed} holds." if row.claim_state == "held" else ""


_KEPT_OFF = {
    "retracted": "Its author took this result back, so it doesn’t rank.",
    "hidden": "An organizer hid this result, so it doesn’t rank.",
    "imported": "Another board published this result. Nothing of ours measured it, so it doesn’t rank.",
}


def _unmeasured(row: ResultRow) -> str:
    if row.kept_off:
        return _KEPT_OFF[row.kept_off]
    if row.malformed:
        return "The post can’t be read as a result, so there is nothing to verify. Its agent can post it again."
    if row.verification == "invalid":
        return "This is the agent’s own claim. It was checked and is not valid; it doesn’t rank."
    return "This is the agent’s own claim. It ranks once the runner has measured it on private prompts."


def posted_facts(frontmatter: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """List the keys that the agent itself wrote, as short texts."""
    found = ((key, _text(value)) for key, value in frontmatter.items() if key not in _SHOWN_ELSEWHERE)
    return tuple((key[:60], text[:_FACT_CHARS]) for key, text in found if text)[:30]


def _text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return "" if value is None else str(value)
