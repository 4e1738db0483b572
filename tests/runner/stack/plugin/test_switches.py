"""Switches are 0, 1 or unset; a checkpoint's own demands are refused in a sentence where they cannot be met."""

from types import SimpleNamespace
from typing import Any

import pytest

from paddock_stack.keepset import KeepSet
from paddock_stack.models.head_rows import find_keep_ids
from paddock_stack.models.layer_skip import find_skipped, kv_sources
from paddock_stack.plugin.switches import FUSED_ARGMAX, NotASwitch, is_on
from paddock_stack.refusals import Refused

KINDS = ["sliding_attention"] * 5 + ["full_attention"]


def config(**told: Any) -> SimpleNamespace:
    base = {"vocab_size": 100, "tie_word_embeddings": False, "layer_types": KINDS * 2, "num_kv_shared_layers": 4}
    return SimpleNamespace(**(base | told))


def pruned(ids: tuple[int, ...], **told: Any) -> SimpleNamespace:
    kept = KeepSet(ids, 100)
    return config(lm_head_keep_ids=list(ids), lm_head_keepset={"sha256": kept.sha256, "full_vocab": 100}, **told)


@pytest.mark.parametrize(("told", "default", "meant"), [("1", False, True), ("0", True, False), ("", True, True)])
def test_switch(told: str, default: bool, meant: bool) -> None:
    assert is_on({FUSED_ARGMAX: told}, FUSED_ARGMAX, default=default) is meant
    assert is_on({}, FUSED_ARGMAX, default=default) is default


def test_switch_that_is_none_is_refused() -> None:
    with pytest.raises(NotASwitch, match="PADDOCK_FUSED_ARGMAX must be 0 or 1, not 'yes'"):
        is_on({FUSED_ARGMAX: "yes"}, FUSED_ARGMAX, default=True)


def test_head_is_whole_without_a_keep_set() -> None:
    assert find_keep_ids(config()) is None


def test_keep_set_is_found_and_checked() -> None:
    assert find_keep_ids(pruned((0, 5, 99))) == (0, 5, 99)
    with pytest.raises(Refused, match="not the one that its digest names"):
        find_keep_ids(config(**vars(pruned((0, 5))) | {"lm_head_keep_ids": [0, 6]}))


def test_tied_head_has_no_keep_set() -> None:
    with pytest.raises(Refused, match="needs a head of its own, but tie_word_embeddings is true"):
        find_keep_ids(pruned((0, 5), tie_word_embeddings=True))


def test_sources_of_shared_keys_and_values_are_the_last_of_their_kind() -> None:
    assert kv_sources(config(num_kv_shared_layers=4)) == {5, 7}
    assert kv_sources(config(num_kv_shared_layers=1)) == {5}
    assert kv_sources(config(num_kv_shared_layers=0)) == set()


@pytest.mark.parametrize(
    ("skipped", "sentence"),
    [([7], "layer 7 holds the keys"), ([11], "the last layer must stay"), ([12], "names layer 12 of a model of 12")],
)
def test_layer_that_others_need_is_not_skipped(skipped: list[int], sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        find_skipped(config(skip_layers=skipped))


def test_skipped_layers_are_ascending() -> None:
    assert find_skipped(config(skip_layers=[8, 2])) == (2, 8)
    assert find_skipped(config()) == ()
