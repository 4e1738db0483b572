"""Record, of a library's source tree, the shapes that the stack needs, as one small JSON file.

    python -m paddock_stack.shapes.record FOLDER RELEASE OUT.json

FOLDER holds the package: unpack a wheel's `vllm/*.py` there by hand, or torch's. RELEASE is as in "vLLM 0.33.0".
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from paddock_stack.shapes.needs import LEVERS, Need
from paddock_stack.shapes.source import Source, SourceTree


def main(arguments: list[str]) -> int:
    """Write the recording named last; return 0, or 1 after one sentence on stderr."""
    if len(arguments) != 3:
        print("usage: record FOLDER RELEASE OUT.json", file=sys.stderr)
        return 1
    folder, release, out = arguments
    told = {"release": release, "places": recorded(SourceTree(Path(folder), release))}
    Path(out).write_text(json.dumps(told, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 0


def recorded(source: Source) -> dict[str, dict[str, list[str]]]:
    """Return what `source` has of every needed place; of sets and words, only those that a need names."""
    found: dict[str, dict[str, list[str]]] = {}
    for need in (need for lever in LEVERS for need in lever.needs):
        for place in need.places:
            told = _recorded(need, source, place)
            if told is not None:
                found[place] = told
    return found


def _recorded(need: Need, source: Source, place: str) -> dict[str, list[str]] | None:
    seen = source.find(place)
    if seen is None:
        return None
    words = {*need.words, *next((each for each in need.either if set(each) <= seen.words), ())}
    return {
        "parameters": list(seen.parameters),
        "sets": sorted(seen.sets & set(need.sets)),
        "words": sorted(seen.words & words),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
