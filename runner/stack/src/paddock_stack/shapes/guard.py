"""Hold a lever's needs against a library, and refuse that one in a sentence when its shape differs."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from paddock_stack.refusals import Refused
from paddock_stack.shapes.needs import Lever, Need
from paddock_stack.shapes.source import Seen, Source, SourceTree

CALLED = {"vllm": "vLLM", "torch": "torch"}


class UnknownLibrary(Refused):
    """The installed vLLM or torch does not look as a lever of the stack assumes; nothing of it was changed."""


def require(lever: Lever) -> None:
    """Return when the installed library has what `lever` needs; raise `UnknownLibrary` otherwise."""
    told = fault(lever, installed(lever.package))
    if told is not None:
        raise UnknownLibrary(told)


@cache
def installed(package: str = "vllm") -> Source:
    """Return `vllm` or `torch` of this environment; raise `UnknownLibrary` where there is none."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise UnknownLibrary(f"{CALLED[package]} is not installed beside paddock-stack, so there is nothing to extend")
    return SourceTree(Path(spec.origin).parent.parent, f"{CALLED[package]} {installed_version(package)}")


def installed_version(package: str = "vllm") -> str:
    """Return its version as its distribution tells it (`0.32.0`, or `0.32.0+cpu`), or `of unknown version`."""
    for name in (f"{package}-cpu", package):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "of unknown version"


def fault(lever: Lever, source: Source) -> str | None:
    """Return the sentence that says how `source` differs from what `lever` needs, or None where it does not."""
    for need in lever.needs:
        difference = _difference(need, source)
        if difference is not None:
            return f"{lever.name} does not fit {source.release}: {difference}"
    return None


def _difference(need: Need, source: Source) -> str | None:
    for place in need.places:
        seen = source.find(place)
        if seen is not None:
            return _differs(need, seen, place)
    return f"there is no {' or '.join(need.places)}"


def _differs(need: Need, seen: Seen, place: str) -> str | None:
    if need.exact and seen.parameters != need.parameters:
        return f"{place} takes ({', '.join(seen.parameters)}) and not ({', '.join(need.parameters)})"
    if not _in_order(need.parameters, seen.parameters):
        return f"{place} takes ({', '.join(seen.parameters)}), where ({', '.join(need.parameters)}) were expected"
    unset = sorted(set(need.sets) - seen.sets)
    if unset:
        return f"{place} no longer sets {', '.join(unset)}"
    unsaid = sorted(set(need.words) - seen.words)
    if unsaid:
        return f"{place} no longer mentions {', '.join(unsaid)}"
    if need.either and not any(set(words) <= seen.words for words in need.either):
        return f"{place} no longer mentions {' or '.join(', '.join(words) for words in need.either)}"
    return None


def _in_order(wanted: tuple[str, ...], given: tuple[str, ...]) -> bool:
    rest = iter(given)
    return all(name in rest for name in wanted)
