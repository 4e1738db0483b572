"""Which prompts are measured: as many as asked, none twice, none too long, in an order that the seed decides."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner.harness.faults import BadInput
from runner.harness.prompts import Prompt
from runner.harness.rendering import ChallengeTokenizer
from runner.harness.selection import select

PROMPTS = [Prompt(id=str(n), text=" ".join(["w7"] * n)) for n in range(1, 21)]


@pytest.fixture(scope="session")
def tokenizer(tokenizer_folder: Path) -> ChallengeTokenizer:
    return ChallengeTokenizer(tokenizer_folder)


def test_text_is_rendered_with_the_challenge_template_and_ids_are_left_alone(tokenizer: ChallengeTokenizer) -> None:
    assert tokenizer.prompt_ids(Prompt(id="a", text="w5 w6")) == [2, 5, 6, 1]
    assert tokenizer.prompt_ids(Prompt(id="a", token_ids=(9, 9))) == [9, 9]


@given(count=st.integers(1, 12), seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_selection_is_without_repeats_and_within_the_limit(
    tokenizer: ChallengeTokenizer, count: int, seed: int
) -> None:
    chosen = select(PROMPTS, tokenizer, count=count, seed=seed, max_prompt_tokens=14)
    assert len({one.prompt.id for one in chosen}) == count
    assert all(len(one.token_ids) <= 14 for one in chosen)
    assert all(PROMPTS[one.dataset_index] is one.prompt for one in chosen)
    assert chosen == select(PROMPTS, tokenizer, count=count, seed=seed, max_prompt_tokens=14)


def test_seed_changes_the_order(tokenizer: ChallengeTokenizer) -> None:
    orders = {
        tuple(one.prompt.id for one in select(PROMPTS, tokenizer, count=20, seed=seed, max_prompt_tokens=99))
        for seed in range(20)
    }
    assert len(orders) == 20


def test_fewer_prompts_than_asked_for_is_one_sentence(tokenizer: ChallengeTokenizer) -> None:
    with pytest.raises(BadInput, match="13 prompts were asked for, but only 12 of 20 have at most 14 tokens"):
        select(PROMPTS, tokenizer, count=13, seed=1, max_prompt_tokens=14)
