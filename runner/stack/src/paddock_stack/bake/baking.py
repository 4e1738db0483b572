"""Run a chain of steps over a model, a drafter, or both, from folders to folders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from paddock_stack.bake.checkpoint import Checkpoint, is_drafter, open_checkpoint
from paddock_stack.bake.plan import SHARD_BYTES, Plan, make_plan
from paddock_stack.bake.progress import Progress
from paddock_stack.bake.steps.step import Models, Step
from paddock_stack.bake.writing import Counting, write
from paddock_stack.refusals import Refused


@dataclass(frozen=True)
class Route:
    """Say where one checkpoint is read and where its baked form goes."""

    source: Path
    out: Path


@dataclass(frozen=True)
class Baked:
    """Tell what a bake made: the folder, its size, and whether it was there already."""

    out: Path
    nbytes: int
    is_new: bool


def bake(
    steps: Sequence[Step],
    target: Route | None,
    drafter: Route | None = None,
    *,
    shard_bytes: int = SHARD_BYTES,
    discard: bool = False,
    make_progress: Callable[[int], Counting] = Progress,
) -> list[Baked]:
    """Bake `steps` and return what was made, the drafter first.

    Each folder appears whole or not at all. After an interruption between the two, the same call makes the other.
    """
    _check_routes(target, drafter)
    with _opened(target, drafter, may_be_cut=bool(steps) and steps[0].names_rows) as before:
        after = before
        for step in steps:
            after = step.apply(after)
        records = [step.record() for step in steps]
        routes = ((drafter, before.drafter, after.drafter), (target, before.target, after.target))
        plans = [
            (route, make_plan(old, new, records, shard_bytes)) for route, old, new in routes if route and old and new
        ]
        return [_write(route, plan, make_progress, discard) for route, plan in plans]


def _write(route: Route, plan: Plan, make_progress: Callable[[int], Counting], discard: bool) -> Baked:
    total = sum(shard.nbytes for shard in plan.shards)
    progress = make_progress(total)
    is_new = write(plan, route.out, progress, discard=discard)
    if isinstance(progress, Progress):
        progress.finish()
    return Baked(route.out, total, is_new)


def _check_routes(target: Route | None, drafter: Route | None) -> None:
    routes = [route for route in (target, drafter) if route is not None]
    places = [route.out.resolve() for route in routes] + [route.source.resolve() for route in routes]
    if len(set(places)) != len(places):
        raise Refused("a bake writes into folders of its own: input and output, model and drafter all differ")
    for place in places:
        if any(place in other.parents for other in places):
            raise Refused(f"{place} lies around another folder of this bake; keep them beside each other")


@contextmanager
def _opened(target: Route | None, drafter: Route | None, *, may_be_cut: bool) -> Iterator[Models]:
    opened: list[Checkpoint] = []
    try:
        for route in (target, drafter):
            opened += [open_checkpoint(route.source, may_be_cut=may_be_cut)] if route else []
        models = Models(opened[0] if target else None, opened[-1] if drafter else None)
        if (models.target and is_drafter(models.target.config)) or (
            models.drafter and not is_drafter(models.drafter.config)
        ):
            raise Refused("the model and its drafter were given the wrong way round")
        yield models
    finally:
        for checkpoint in opened:
            checkpoint.close()
