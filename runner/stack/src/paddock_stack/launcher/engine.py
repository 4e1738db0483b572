"""Find, among the options of vLLM that a profile sets, those that would make a start dishonest or less than it says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_LEAST_CAPTURED = 2  # vLLM's split attention holds itself to the captured sizes, and ends where one row is the largest
_OVERRIDABLE = {"skip_layers"}
_SIZES = {"cudagraph-capture-sizes", "cudagraph_capture_sizes", "max_cudagraph_capture_size"}


def faults(engine: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for everything in `engine`, whose forms are known to be right, that must not be started."""
    if engine.get("enable-prefix-caching") is not False:
        yield "hits in a prefix cache would count as speed; set engine.enable-prefix-caching=false"
    if not all(_is_captured(sizes) for sizes in _capture_sizes(engine)):
        yield "capture sizes without one of at least 2 silently turn split attention off; add 2"
    for tower, most in engine.get("limit-mm-per-prompt", {}).items():
        if not _at_least(1, most.get("count", 1) if isinstance(most, Mapping) else most):
            yield f"limit-mm-per-prompt drops {tower}, but all modalities must work; leave it out or allow at least one"
    overridden = sorted(_keys(engine.get("hf-overrides", {})) - _OVERRIDABLE)
    if overridden:
        yield (
            f"hf-overrides sets {overridden[0]}, which would not reach the drafter nor be held against it; bake it, or "
            "set `window` for a window"
        )


def _capture_sizes(engine: Mapping[str, Any]) -> list[Any]:
    """Return every value by which `engine` limits what is captured, whatever it is called."""
    places = (engine, engine.get("compilation-config", {}))
    return [told[name] for told in places for name in _SIZES & set(told)]


def _is_captured(sizes: Any) -> bool:
    return any(_at_least(_LEAST_CAPTURED, size) for size in (sizes if isinstance(sizes, list) else [sizes]))


def _at_least(least: int, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _keys(overrides: Mapping[str, Any]) -> set[str]:
    """Return the keys of the configuration and of its text part that `overrides` change."""
    text = overrides.get("text_config", {})
    return set(overrides) - {"text_config"} | (set(text) if isinstance(text, Mapping) else {"text_config"})
