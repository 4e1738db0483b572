"""Give `paddock-stack` its subcommands; each group lives in a module of its own and is imported only when called.

A group is a module with `SUMMARY: str`, `configure(parser) -> None`, which adds its subcommands and options, and
`run(arguments) -> int`, which returns the exit status. A `Refused` becomes one sentence on stderr and status 1.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Protocol, cast

from paddock_stack import VERSION
from paddock_stack.refusals import Refused

# Command -> module. A module is imported only when its command is named, so that baking needs neither vLLM nor torch.
GROUPS = {
    "bake": "paddock_stack.bake.commands",
    "import-manifest": "paddock_stack.recipe.commands",
    "profiles": "paddock_stack.profiles.commands",
    "serve": "paddock_stack.launcher.commands",
    "submission": "paddock_stack.submissions.commands",
}


class Group(Protocol):
    """What a module in `GROUPS` must offer."""

    SUMMARY: str

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the group's subcommands and options to `parser`."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Do what `arguments` ask; return the exit status."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line in `argv` (default: the process's own) and return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(prog="paddock-stack", description="Bake and serve Gemma 4.")
    parser.add_argument("--version", action="version", version=f"paddock-stack {VERSION}")
    groups = parser.add_subparsers(dest="group", required=True, metavar="COMMAND")
    chosen = next((word for word in words if not word.startswith("-")), None)
    for name, module in GROUPS.items():
        if chosen in (None, name):
            group = cast(Group, importlib.import_module(module))
            group.configure(groups.add_parser(name, help=group.SUMMARY, description=group.SUMMARY))
    if chosen is not None and chosen not in GROUPS:
        parser.error(f"there is no command {chosen!r}; there are: {', '.join(GROUPS)}")
    arguments = parser.parse_args(words)
    return _call(cast(Group, importlib.import_module(GROUPS[arguments.group])), arguments)


def _call(group: Group, arguments: argparse.Namespace) -> int:
    try:
        return group.run(arguments)
    except Refused as refusal:
        print(f"paddock-stack: {refusal}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
