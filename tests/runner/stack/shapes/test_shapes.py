"""The stack's list of needs fits the releases of vLLM and torch it names; one that differs is refused in a sentence."""

import copy
from pathlib import Path

import pytest

from paddock_stack.shapes.guard import fault
from paddock_stack.shapes.needs import LEVERS, PRUNED_HEAD, Lever, Need
from paddock_stack.shapes.record import main, recorded
from paddock_stack.shapes.source import Recording, SourceTree
from tests.runner.stack.conftest import SERVER_ENV

HERE = Path(__file__).parent
# vLLM 0.23 runs on torch 2.11, 0.33 on 2.14.
RECORDINGS = [HERE / f"{name}.json" for name in ("vllm-0.23.0", "vllm-0.33.0", "torch-2.11.0", "torch-2.14.0")]
EACH = [(path, lever) for path in RECORDINGS for lever in LEVERS if path.stem.startswith(lever.package)]

LIBRARY = """
class Head:
    def __init__(self, rows, width=1, *, prefix=""):
        self.weight = rows * width

    def logits(self, states):
        return states @ self.weight
"""


@pytest.fixture
def library(tmp_path: Path) -> SourceTree:
    (tmp_path / "made").mkdir()
    (tmp_path / "made/up.py").write_text(LIBRARY)
    return SourceTree(tmp_path, "vLLM 9.9")


@pytest.mark.parametrize(("path", "lever"), EACH, ids=lambda each: each.stem if isinstance(each, Path) else each.name)
def test_recorded_releases_have_what_every_lever_needs(path: Path, lever: Lever) -> None:
    assert fault(lever, Recording(path)) is None


@pytest.mark.vllm
@pytest.mark.parametrize("lever", LEVERS, ids=lambda lever: lever.name)
def test_installed_release_has_what_every_lever_needs(lever: Lever) -> None:
    packages = next(SERVER_ENV.glob("lib/python3*/site-packages"), None)
    if packages is None:
        pytest.skip(f"THE SERVER ENVIRONMENT IS ABSENT: {SERVER_ENV} (make server-env)")
    assert fault(lever, SourceTree(packages, "the installed one")) is None


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_every_recorded_fact_is_looked_at(path: Path) -> None:
    """Take away one recorded fact at a time: each must make its lever refuse, or it need not be recorded."""
    whole = Recording(path)
    for lever in (lever for lever in LEVERS if (path, lever) in EACH):
        for place in {place for need in lever.needs for place in need.places} & set(whole.places):
            without = copy.deepcopy(whole)
            del without.places[place]
            assert place in (fault(lever, without) or "")
            for kind, fact in facts(lever, place, whole):
                less = copy.deepcopy(whole)
                less.places[place][kind].remove(fact)
                assert f"{place} no longer" in (fault(lever, less) or "")


def facts(lever: Lever, place: str, source: Recording) -> list[tuple[str, str]]:
    need = next(need for need in lever.needs if place in need.places)
    either = next((each for each in need.either if set(each) <= set(source.places[place]["words"])), ())
    return [("sets", each) for each in need.sets] + [("words", each) for each in (*need.words, *either)]


@pytest.mark.parametrize(
    ("need", "sentence"),
    [
        (Need(("made.up:Head.__init__",), ("rows", "prefix"), sets=("weight",)), None),
        (Need(("made.up:Gone.x", "made.up:Head.logits"), ("self", "states"), exact=True), None),
        (Need(("made.up:Head.gone",)), "there is no made.up:Head.gone"),
        (Need(("made.gone:Head", "made.up:Tail")), "there is no made.gone:Head or made.up:Tail"),
        (Need(("made.up:Head.__init__",), ("prefix", "rows")), "where (prefix, rows) were expected"),
        (Need(("made.up:Head.logits",), ("self",), exact=True), "takes (self, states) and not (self)"),
        (Need(("made.up:Head.__init__",), sets=("bias", "weight")), "made.up:Head.__init__ no longer sets bias"),
        (Need(("made.up:Head",), words=("weight", "softcap")), "made.up:Head no longer mentions softcap"),
        (Need(("made.up:Head",), either=(("softcap",), ("weight", "rows"))), None),
        (Need(("made.up:Head",), either=(("softcap",), ("weight", "bias"))), "mentions softcap or weight, bias"),
    ],
)
def test_guard_says_what_differs(library: SourceTree, need: Need, sentence: str | None) -> None:
    told = fault(Lever("the head", (need,)), library)
    if sentence is None:
        assert told is None
    else:
        assert told is not None
        assert told.startswith("the head does not fit vLLM 9.9: ")
        assert told.endswith(sentence)


def test_recording_of_a_tree_is_that_tree(tmp_path: Path) -> None:
    name = PRUNED_HEAD.needs[0].places[0]
    module, _, function = name.partition(":")
    path = tmp_path / Path(*module.split(".")).with_suffix(".py")
    path.parent.mkdir(parents=True)
    owner, _, method = function.partition(".")
    path.write_text(f"class {owner}:\n    def {method}(self, model_arch, model_cls): ...\n")
    assert main([str(tmp_path), "vLLM 1.0", str(tmp_path / "out.json")]) == 0
    assert Recording(tmp_path / "out.json").release == "vLLM 1.0"
    assert Recording(tmp_path / "out.json").places == recorded(SourceTree(tmp_path, "vLLM 1.0"))
    assert list(recorded(SourceTree(tmp_path, "vLLM 1.0"))) == [name]
