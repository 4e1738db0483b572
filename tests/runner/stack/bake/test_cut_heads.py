"""A head that was cut elsewhere: a file says which tokens its rows score, and pruning goes on from there."""

import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from paddock_stack import cli, keepset
from paddock_stack.bake.baking import Route, bake
from paddock_stack.bake.inspection import inspect
from paddock_stack.bake.steps.catalogue import read_step, read_steps
from paddock_stack.bake.steps.drop_layers import DropLayers
from paddock_stack.bake.steps.heads import PruneHead, UntieHead
from paddock_stack.bake.steps.quantize import Quantize
from paddock_stack.refusals import Refused
from tests.runner.stack.bake.checkpoints import VOCAB, Arrays, arrays, read_folder, text_config, write_checkpoint
from tests.runner.stack.bake.test_baking import Silent, baked
from tests.runner.stack.bake.test_refusals import refused

# What stands in the rows, in an order of its own; and what is to be left.
ROWS = Random(3).sample([*range(264), 300, *range(305, 315)], 275)
FEWER = [*range(264), 300, 306, 313]
HEAD_FORMS = ("weight", "weight_packed", "weight_scale")


def written(path: Path, ids: Any) -> Path:
    path.write_text(json.dumps(ids))
    return path


def cut_elsewhere(folder: Path, bits: str, tmp_path: Path) -> Path:
    """Write a checkpoint whose head has the rows of ROWS, and nothing but pck.json beside it to say so."""
    source = write_checkpoint(tmp_path / "whole", text_config(), arrays(text_config()))
    config = baked(source, tmp_path / "untied", UntieHead(bits=bits, group_size=32))
    weights: Arrays = {}
    for name, (dtype, values) in read_folder(tmp_path / "untied").items():
        is_cut = name in [f"lm_head.{form}" for form in HEAD_FORMS]
        weights[name] = dtype, values[ROWS] if is_cut else values
    if bits != "none":
        weights["lm_head.weight_shape"] = "I64", np.array([len(ROWS), 64])
    write_checkpoint(folder, config, weights)
    written(folder / "pck.json", {"keep_ids": ROWS})
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "alone").mkdir()
    return cut_elsewhere(tmp_path / "alone/in", "none", tmp_path)


def head_of(folder: Path) -> dict[str, np.ndarray]:
    return {form: values for form in HEAD_FORMS if (values := read_folder(folder).get(f"lm_head.{form}", (0, None))[1])
            is not None}  # fmt: skip


@pytest.mark.parametrize("bits", ["none", "4"])
@pytest.mark.parametrize("ids", [ROWS, FEWER], ids=["all", "fewer"])
def test_rows_are_found_by_the_file_that_names_them(tmp_path: Path, bits: str, ids: list[int]) -> None:
    source = cut_elsewhere(tmp_path / "in", bits, tmp_path)
    step = PruneHead(written(tmp_path / "keep.json", ids), of=source / "pck.json")
    config = baked(source, tmp_path / "out", step)
    kept = keepset.from_config(config)
    assert kept is not None
    assert kept.ids == tuple(sorted(ids))
    assert config["vocab_size"] == VOCAB
    whole, made = head_of(tmp_path / "untied"), head_of(tmp_path / "out")
    assert made.keys() == whole.keys()
    for form, values in made.items():
        assert (values == whole[form][sorted(ids)]).all()
    if bits == "4":
        assert read_folder(tmp_path / "out")["lm_head.weight_shape"][1].tolist() == [len(ids), 64]


def test_what_was_declared_goes_through_the_other_steps_and_is_pruned_further(source: Path, tmp_path: Path) -> None:
    declared = PruneHead(source / "pck.json", of=source / "pck.json")
    baked(source, tmp_path / "declared", declared)
    assert inspect(tmp_path / "declared")["head"] == "275 rows"
    fewer = PruneHead(written(tmp_path / "keep.json", FEWER))
    steps = DropLayers((0, 7, 8)), Quantize(modules=("mlp", "head")), fewer
    config = baked(tmp_path / "declared", tmp_path / "out", *steps)
    assert config["lm_head_keep_ids"] == FEWER
    baked(source, tmp_path / "at-once", declared, *steps)
    for path in (tmp_path / "at-once").glob("*.safetensors"):
        assert path.read_bytes() == (tmp_path / "out" / path.name).read_bytes()


def test_inspect_tells_of_rows_that_nothing_names(source: Path) -> None:
    assert inspect(source)["head"] == "275 rows, of which nothing says whose; prune-head --of does"


def test_provenance_holds_the_rows_in_their_order(source: Path, tmp_path: Path) -> None:
    step = PruneHead(source / "pck.json", of=source / "pck.json")
    baked(source, tmp_path / "out", step)
    (told,) = json.loads((tmp_path / "out/paddock-bake.json").read_text())["steps"]
    assert told["of"] == "pck.json"
    assert told["of_sha256"] == keepset.digest(ROWS) != told["keep_sha256"]
    # Rows in another order are another bake, though nothing else about it differs.
    other = PruneHead(source / "pck.json", of=written(tmp_path / "pck.json", ROWS[::-1]))
    with pytest.raises(Refused, match="holds something else than this bake would make"):
        bake([other], Route(source, tmp_path / "out"), make_progress=Silent)


@pytest.mark.parametrize(
    ("rows", "saying"),
    [
        (ROWS[:-1], "pck.json names 274 tokens, but the head has 275 rows"),
        ([*ROWS, 319], "pck.json names 276 tokens, but the head has 275 rows"),
        ([*ROWS[:-1], ROWS[0]], rf"pck.json holds token {ROWS[0]} more than once"),
        ([*ROWS[:-1], VOCAB], rf"pck.json holds {VOCAB}, which is no token id below {VOCAB}"),
        ([*ROWS[:-1], -1], "pck.json holds -1"),
        ([], "pck.json is empty"),
        ({"ids": ROWS}, "pck.json is neither a list"),
    ],
)
def test_a_file_that_does_not_fit_the_head_is_refused(source: Path, tmp_path: Path, rows: Any, saying: str) -> None:
    keep = written(tmp_path / "keep.json", FEWER)
    refused(source, {"step": "prune-head", "keep": keep, "of": written(tmp_path / "pck.json", rows)}, saying=saying)


def test_a_token_without_a_row_can_t_be_kept(source: Path, tmp_path: Path) -> None:
    keep = written(tmp_path / "keep.json", [*FEWER, 304])
    refused(source, {"step": "prune-head", "keep": keep, "of": source / "pck.json"}, saying="no row for token 304")


def test_nothing_is_baked_before_the_rows_are_named(source: Path, tmp_path: Path) -> None:
    keep = written(tmp_path / "keep.json", FEWER)
    saying = "the head has 275 rows for 320 tokens, and nothing says whose; let prune-head --of come first"
    naming = {"step": "prune-head", "keep": keep, "of": source / "pck.json"}
    refused(source, {"step": "prune-head", "keep": keep}, saying=saying)
    refused(source, {"step": "set-window", "window": 32, "without_drafter": True}, saying=saying)
    refused(source, {"step": "drop-layers", "layers": [1]}, naming, saying=saying)
    assert cli.main(["bake", "verify", str(source)]) == 1


def test_rows_are_named_once(source: Path, tmp_path: Path) -> None:
    keep = written(tmp_path / "keep.json", FEWER)
    naming = {"step": "prune-head", "keep": keep, "of": source / "pck.json"}
    refused(source, naming, naming, saying="config.json says already whose rows the head has")
    refused(tmp_path / "untied", naming, saying="names 275 tokens, but the head has 320 rows")


@pytest.mark.parametrize(("form", "rows"), [("weight_scale", 274), ("weight_packed", 274), ("weight_scale", 320)])
def test_a_head_of_uneven_parts_is_refused(tmp_path: Path, form: str, rows: int) -> None:
    (tmp_path / "alone").mkdir()
    source = cut_elsewhere(tmp_path / "alone/in", "4", tmp_path)
    weights = read_folder(source)
    dtype, values = weights[f"lm_head.{form}"]
    weights[f"lm_head.{form}"] = dtype, np.resize(values, (rows, values.shape[1]))
    uneven = write_checkpoint(tmp_path / "alone/uneven", json.loads((source / "config.json").read_text()), weights)
    step = {"step": "prune-head", "keep": source / "pck.json", "of": source / "pck.json"}
    refused(uneven, step, saying=r"lm_head\.weight_\w+ has the shape")


def test_both_files_of_a_step_lie_beside_the_steps_file(source: Path, tmp_path: Path) -> None:
    written(tmp_path / "keep.json", FEWER)
    written(tmp_path / "rows.json", ROWS)
    path = written(tmp_path / "steps.json", [{"step": "prune-head", "keep": "keep.json", "of": "rows.json"}])
    assert read_steps(path) == [PruneHead(tmp_path / "keep.json", of=tmp_path / "rows.json")]
    assert cli.main(["bake", "run", str(source), str(tmp_path / "out"), "--steps", str(path)]) == 0
    words = ["--keep", tmp_path / "keep.json", "--of", tmp_path / "rows.json"]
    assert cli.main(["bake", "prune-head", str(source), str(tmp_path / "line"), *map(str, words)]) == 0
    assert head_of(tmp_path / "line")["weight"].tobytes() == head_of(tmp_path / "out")["weight"].tobytes()


def test_a_step_without_the_file_is_recorded_as_before(tmp_path: Path) -> None:
    step = read_step({"step": "prune-head", "keep": written(tmp_path / "keep.json", FEWER)})
    assert set(step.record()) == {"step", "keep", "keep_sha256", "keep_ids", "allow"}
