"""The generator: decided by its seed, without repeats, varied, and not to be predicted from its output."""

from hypothesis import given, settings
from hypothesis import strategies as st

from runner.harness.generator import LONGEST_SHARED_BEGINNING, generate
from runner.harness.keyed_random import KeyedRandom

seeds = st.binary(max_size=40)


@given(seeds, st.integers(0, 60))
@settings(max_examples=25, deadline=None)
def test_same_seed_gives_the_same_prompts_and_a_longer_list_begins_with_the_shorter(seed: bytes, count: int) -> None:
    assert generate(seed, count + 5)[:count] == generate(seed, count)


@given(seeds)
@settings(max_examples=10, deadline=None)
def test_no_two_prompts_are_alike_or_share_a_long_beginning(seed: bytes) -> None:
    prompts = generate(seed, 200)
    assert len({prompt.id for prompt in prompts}) == 200
    assert len({(prompt.text or "")[: LONGEST_SHARED_BEGINNING + 1] for prompt in prompts}) == 200


@given(st.lists(seeds, min_size=2, max_size=2, unique=True))
@settings(max_examples=10, deadline=None)
def test_different_seeds_have_hardly_a_prompt_in_common(pair: list[bytes]) -> None:
    first, second = ({prompt.text for prompt in generate(seed, 100)} for seed in pair)
    assert len(first & second) <= 2


@given(seeds)
@settings(max_examples=5, deadline=None)
def test_prompts_vary_in_category_language_and_length(seed: bytes) -> None:
    prompts = generate(seed, 300)
    lengths = [len(prompt.text or "") for prompt in prompts]
    assert len({prompt.category for prompt in prompts}) >= 6
    assert len({prompt.language for prompt in prompts}) >= 9
    assert min(lengths) < 100
    assert max(lengths) > 3000


def test_every_slot_of_a_template_is_filled() -> None:
    assert not any("{" in (prompt.text or "") for prompt in generate(b"slots", 500))


def test_two_sources_with_one_key_agree_and_ignore_seeding() -> None:
    first, second = KeyedRandom(b"k"), KeyedRandom(b"k")
    second.seed(99)
    assert [first.randrange(1000) for _ in range(50)] == [second.randrange(1000) for _ in range(50)]
    assert KeyedRandom(b"k").random() != KeyedRandom(b"l").random()


def test_keys_that_differ_only_by_zero_bytes_give_different_streams() -> None:
    assert KeyedRandom(b"k").getrandbits(256) != KeyedRandom(b"k\0").getrandbits(256)


def test_bits_of_the_source_are_evenly_spread() -> None:
    draw = KeyedRandom(b"spread")
    ones = sum(draw.getrandbits(1) for _ in range(10_000))
    assert 4_800 < ones < 5_200
    assert 0.48 < sum(draw.random() for _ in range(10_000)) / 10_000 < 0.52
