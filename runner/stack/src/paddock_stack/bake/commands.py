"""Offer `paddock-stack bake`.

paddock-stack bake inspect IN
paddock-stack bake drop-layers IN OUT --layers 2,3 --then untie-head --bits 4 --then prune-head --keep 12k.json
paddock-stack bake run IN OUT --steps steps.json --drafter DRAFTER --drafter-out DRAFTER_OUT
paddock-stack bake verify OUT
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paddock_stack.bake.baking import Route, bake
from paddock_stack.bake.composing import How, write_composed
from paddock_stack.bake.inspection import inspect
from paddock_stack.bake.plan import SHARD_BYTES
from paddock_stack.bake.steps.catalogue import STEPS, read_step, read_steps
from paddock_stack.bake.steps.step import Step
from paddock_stack.bake.verification import verify
from paddock_stack.refusals import Refused

SUMMARY = "turn a checkpoint into another: drop layers, prune the head, quantise, …"
OF_EVERY_BAKE = ("group", "step", "source", "out", "drafter", "drafter_out", "shard_gb", "discard", "then", "steps")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of `bake` to `parser`."""
    commands = parser.add_subparsers(dest="step", required=True, metavar="STEP")
    told = commands.add_parser("inspect", help="tell what a checkpoint is made of")
    told.add_argument("source", type=Path)
    checked = commands.add_parser("verify", help="hold a baked folder against its provenance and configuration")
    checked.add_argument("source", type=Path)
    _configure_compose(commands.add_parser("compose-keepset", help="make a keep-set from others"))
    chain = commands.add_parser("run", help="bake the steps of a file")
    chain.add_argument("--steps", type=Path, required=True, help='JSON list of {"step": name, option: value}')
    _configure_bake(chain)
    for name, step in STEPS.items():
        single = commands.add_parser(name, help=step.SUMMARY, description=step.__doc__)
        _configure_bake(single)
        step.configure(single)
        single.add_argument("--then", nargs=argparse.REMAINDER, default=[], help="another step and its options; last")


def _configure_bake(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", type=Path, nargs="?", metavar="IN", help="folder with the model")
    parser.add_argument("out", type=Path, nargs="?", metavar="OUT", help="folder to be made")
    parser.add_argument("--drafter", type=Path, help="folder with the drafter, for steps that change it")
    parser.add_argument("--drafter-out", type=Path, help="folder to be made for it")
    parser.add_argument("--shard-gb", type=float, default=SHARD_BYTES / 1e9, help="largest weights file but for "
                        "single tensors; a restart keeps whole files")  # fmt: skip
    parser.add_argument("--discard", action="store_true", help="throw away an unfinished bake of another plan")


def _configure_compose(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("out", type=Path, metavar="OUT", help="file to be made")
    parser.add_argument("files", type=Path, nargs="+", metavar="KEEPSET")
    parser.add_argument("--model", type=Path, required=True, help="folder with the model whose tokens they are")
    parser.add_argument("--how", type=How, choices=list(How), default=How.UNION)
    parser.add_argument("--needed", action="store_true", help="add the tokens that a model can't do without")


def run(arguments: argparse.Namespace) -> int:
    """Do what `arguments` ask; return the exit status."""
    if arguments.step == "inspect":
        print(json.dumps(inspect(arguments.source), indent=2))
    elif arguments.step == "verify":
        found = verify(arguments.source)
        print(f"{arguments.source}: {found.files} files, {found.tensors} tensors, {found.packed_modules} packed: sound")
    elif arguments.step == "compose-keepset":
        made = write_composed(
            arguments.files, arguments.how, arguments.model, arguments.out, add_needed=arguments.needed
        )
        print(f"{arguments.out}: {len(made.ids)} of {made.full_vocab} tokens")
    else:
        _bake(arguments)
    return 0


def _bake(arguments: argparse.Namespace) -> None:
    steps = read_steps(arguments.steps) if arguments.step == "run" else _steps_of(arguments)
    target = _route(arguments.source, arguments.out, "IN and OUT")
    drafter = _route(arguments.drafter, arguments.drafter_out, "--drafter and --drafter-out")
    if target is None and drafter is None:
        raise Refused("name the folders to read and to make: IN and OUT, or --drafter and --drafter-out")
    if not (1e-9 <= arguments.shard_gb <= 1e6):
        raise Refused(f"a weights file of {arguments.shard_gb} GB can't be made")
    shard_bytes = round(arguments.shard_gb * 1e9)
    for made in bake(steps, target, drafter, shard_bytes=shard_bytes, discard=arguments.discard):
        print(f"{made.out}: {made.nbytes} bytes of weights" + ("" if made.is_new else ", there already"))


def _route(source: Path | None, out: Path | None, names: str) -> Route | None:
    if source is None and out is None:
        return None
    if source is None or out is None:
        raise Refused(f"{names} go together")
    return Route(source, out)


def _steps_of(arguments: argparse.Namespace) -> list[Step]:
    options = {name: value for name, value in vars(arguments).items() if name not in OF_EVERY_BAKE}
    return [read_step({"step": arguments.step, **options}), *_chained(arguments.then)]


def _chained(words: Sequence[str]) -> list[Step]:
    """Return the steps in `words`, the rest of a command line after `--then`."""
    if not words:
        return []
    parser = argparse.ArgumentParser(prog="paddock-stack bake … --then", add_help=False)
    commands = parser.add_subparsers(dest="step", required=True, metavar="STEP")
    for name, step in STEPS.items():
        single = commands.add_parser(name)
        step.configure(single)
        single.add_argument("--then", nargs=argparse.REMAINDER, default=[])
    given: dict[str, Any] = vars(parser.parse_args(words))
    rest = given.pop("then")
    return [read_step(given), *_chained(rest)]
