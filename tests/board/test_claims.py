from pathlib import Path

import pytest

from board import claims
from board.claims import Status
from storage.challenge import Challenge, PromptSets
from storage.errors import InvalidFrontmatter

CHALLENGE = Challenge(
    org="race",
    slug="tiny",
    title="A tiny race",
    description="For tests.",
    model="tiny",
    hardware="cpu",
    prompts=PromptSets(tokenizer="tokenizer", public=Path("public.jsonl")),
)
GOOD: dict[str, object] = {
    "tps": 507.3,
    "ppl": 2.39,
    "method": "int4",
    "status": "agent-run",
    "description": "All in int4.",
}


def test_a_whole_claim_is_read() -> None:
    claim = claims.read({**GOOD, "hardware": "h200", "extra": [1]}, CHALLENGE)
    assert (claim.score, claim.guard, claim.method, claim.status) == (507.3, 2.39, "int4", Status.AGENT_RUN)
    assert (claim.description, claim.hardware) == ("All in int4.", "h200")


@pytest.mark.parametrize("value", [507, "507", "507.3", 10**30])
def test_a_plain_decimal_counts_whether_quoted_or_not(value: object) -> None:
    assert claims.read({**GOOD, "tps": value}, CHALLENGE).score == float(str(value))


@pytest.mark.parametrize("field", ["tps", "ppl", "method", "status", "description"])
@pytest.mark.parametrize("empty", [None, "", []])
def test_a_missing_required_field_is_named(field: str, empty: object) -> None:
    with pytest.raises(InvalidFrontmatter, match=f"lacks the field '{field}'") as caught:
        claims.read({**GOOD, field: empty}, CHALLENGE)
    assert caught.value.hint == "A result has tps, ppl, method, status, description."


@pytest.mark.parametrize("field", ["tps", "ppl"])
@pytest.mark.parametrize(
    "value",
    [0, -1, -0.5, float("nan"), float("inf"), 10**400, "9" * 401, "507.3 tok/s", "8:26", "1e3", "٣", True, [507.3], {}],
)
def test_a_number_that_cannot_rank_is_refused_with_its_field(field: str, value: object) -> None:
    with pytest.raises(InvalidFrontmatter, match=f"'{field}'"):
        claims.read({**GOOD, field: value}, CHALLENGE)


@pytest.mark.parametrize(("field", "value"), [("status", "great"), ("status", ["negative"]), ("method", {"a": 1})])
def test_a_field_of_the_wrong_kind_is_named(field: str, value: object) -> None:
    with pytest.raises(InvalidFrontmatter, match=f"'{field}'"):
        claims.read({**GOOD, field: value}, CHALLENGE)


def test_fields_that_the_race_does_not_ask_for_may_be_absent() -> None:
    race = CHALLENGE.model_copy(update={"required_fields": ("tps",)})
    claim = claims.read({"tps": 5.5}, race)
    assert (claim.score, claim.guard, claim.method, claim.status) == (5.5, None, "", Status.AGENT_RUN)
    with pytest.raises(InvalidFrontmatter, match="'tps'"):
        claims.read({}, race.model_copy(update={"required_fields": ()}))
