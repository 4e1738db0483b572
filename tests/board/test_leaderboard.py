import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from board import leaderboard
from board.leaderboard import Leaderboard
from board.leaderboard_query import Query
from board.ranking import Range
from board.rows import ResultRow
from board.verdicts import State
from storage.challenge import Challenge, PromptSets, Score
from storage.clock import from_stamp

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
CHALLENGE = Challenge(
    org="race",
    slug="tiny",
    title="A tiny race",
    description="For tests.",
    model="tiny",
    hardware="a10g",
    prompts=PromptSets(tokenizer="tokenizer", public=Path("public.jsonl")),
)
CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "results.jsonl"


def result(agent: str, claimed: float | None, *, minute: int = 0, state: str = "pending", **more: Any) -> ResultRow:
    at = NOW + timedelta(minutes=minute)
    fields: dict[str, Any] = {"guard": 2.3, "method": "m", "status": "agent-run", "description": "d", **more}
    name = f"{at:%Y%m%d-%H%M%S}-000_{agent}.md"
    return ResultRow(filename=name, agent=agent, posted_at=at, claimed=claimed, verification=state, **fields)


def board(*rows: ResultRow, challenge: Challenge = CHALLENGE, **query: Any) -> Leaderboard:
    return leaderboard.build(rows, {"a": "ann", "b": "bob"}, challenge, Query(**query), now=NOW)


def scores(found: Leaderboard) -> list[tuple[int, str, float]]:
    return [(row.rank, row.agent, row.score) for row in found.rows]


def test_the_wire_form_has_the_fixed_names() -> None:
    row = result("a", 500.0, measured=480.0, interval_low=478.0, interval_high=482.0, n=2, draws=[479.0, 481.0])
    assert board(row).to_json() == {
        "score_field": "tps",
        "order": "desc",
        "rows": [
            {
                "rank": 1,
                "agent": "a",
                "hf_user": "ann",
                "score": 480.0,
                "tps": 480.0,
                "method": "m",
                "verification": "pending",
                "filename": "20261129-120000-000_a.md",
                "timestamp": "2026-11-29 12:00 UTC",
                "description": "d",
                "claimed": 500.0,
                "measured": 480.0,
                "n": 2,
                "interval": [478.0, 482.0],
            }
        ],
        "meta": {
            "generated_at": "2026-11-29T12:00:00.000Z",
            "results_considered": 1,
            "excluded": {"status_negative": 0, "malformed": 0, "verification_invalid": 0, "other_hardware": 0},
        },
    }


def test_a_claim_stands_only_until_there_is_a_measurement() -> None:
    found = board(result("a", 500.0, measured=400.0, state="valid"), result("b", 450.0))
    assert scores(found) == [(1, "b", 450.0), (2, "a", 400.0)]
    assert found.rows[0].interval is None


def test_a_valid_row_is_never_hidden_by_its_agents_higher_pending_one() -> None:
    rows = (result("a", 400.0, state="valid", measured=400.0), result("a", 900.0, minute=1))
    assert scores(board(*rows, states=frozenset({State.VALID}))) == [(1, "a", 400.0)]
    assert scores(board(*rows)) == [(1, "a", 900.0)]


def test_every_result_is_on_the_board_or_counted_once() -> None:
    found = board(
        result("a", 1.0),
        result("b", None, minute=1, malformed=True),
        result("b", 2.0, minute=2, status="negative"),
        result("b", 3.0, minute=3, state="invalid"),
        result("b", 4.0, minute=4, hardware="cpu"),
        result("b", 5.0, minute=5, state="inconclusive"),
        best_per_agent=False,
    )
    assert scores(found) == [(1, "b", 5.0), (2, "a", 1.0)]
    assert found.rows[0].verification == "pending"
    assert found.excluded == {"status_negative": 1, "malformed": 1, "verification_invalid": 1, "other_hardware": 1}
    assert len(found.rows) + sum(found.excluded.values()) == found.results_considered == 6


def test_inconclusive_follows_pending_in_and_out() -> None:
    found = board(result("a", 1.0, state="inconclusive"), states=frozenset({State.VALID}))
    assert found.excluded["verification_pending"] == 1


def test_other_hardware_has_a_board_of_its_own() -> None:
    rows = (result("a", 1.0), result("b", 9.0, hardware="cpu"), result("a", 2.0, minute=1, hardware="a10g"))
    assert scores(board(*rows)) == [(1, "a", 2.0)]
    there = board(*rows, hardware="cpu")
    assert scores(there) == [(1, "b", 9.0)]
    assert there.excluded["other_hardware"] == 2


def test_an_agents_rows_keep_their_global_rank_and_limit_cuts_after_it() -> None:
    rows = (result("a", 3.0), result("b", 2.0), result("a", 1.0, minute=1))
    assert scores(board(*rows, agent="b")) == [(2, "b", 2.0)]
    assert scores(board(*rows, best_per_agent=False, agent="a", limit=1)) == [(1, "a", 3.0)]
    assert len(board(*rows, limit=0).rows) == len(board(*rows, limit=-1).rows) == 2


def test_where_lower_is_better_the_lowest_leads() -> None:
    race = CHALLENGE.model_copy(update={"score": Score(field="seconds", unit="s", order="asc")})
    found = board(result("a", 3.0), result("b", 2.0), challenge=race)
    assert scores(found) == [(1, "b", 2.0), (2, "a", 3.0)]
    assert found.to_json()["order"] == "asc"
    assert found.rows[0].to_json("seconds")["seconds"] == 2.0


def test_draws_give_rank_ranges() -> None:
    found = board(
        result("a", 1.0, measured=500.5, draws=[500.0, 501.0], state="valid"),
        result("b", 1.0, measured=500.2, draws=[500.0, 500.4], state="valid"),
    )
    assert [row.rank_range for row in found.rows] == [Range(1, 2), Range(1, 2)]


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.exists(), reason=f"NO CORPUS: {CORPUS} is absent, real standings stay untested")
def test_real_results_rank_as_the_public_board_had_them() -> None:
    records = [json.loads(line) for line in CORPUS.read_text("utf-8").splitlines()]
    rows = [
        ResultRow(
            filename=record["filename"],
            agent=record["agent"],
            posted_at=from_stamp(record["filename"].split("_")[0]),
            claimed=record["tps"],
            guard=None,
            method=record["method"],
            status="agent-run",
            description=record["description"],
            verification=record["verification"],
        )
        for record in records
    ]
    every = board(*rows, best_per_agent=False)
    assert len(every.rows) == 106
    assert [row.score for row in every.rows] == sorted((record["tps"] for record in records), reverse=True)
    top = [(row.agent, row.score) for row in every.rows[:3]]
    assert top == [
        ("sparkgemma-grm-32", 536.15),
        ("rusho-evolve", 535.91),
        ("sparkgemma-minimax-m3", 529.1275749084836),
    ]
    best = board(*rows)
    assert len(best.rows) == len({record["agent"] for record in records}) == 81
    verified = board(*rows, states=frozenset({State.VALID}))
    assert verified.excluded["verification_pending"] == 90
    assert {row.filename for row in verified.rows} <= {r["filename"] for r in records if r["verification"] == "valid"}
