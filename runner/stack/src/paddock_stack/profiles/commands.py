"""Offer `paddock-stack profiles`: list them, or show one as it comes out for a machine."""

from __future__ import annotations

import argparse
import dataclasses
import json

from paddock_stack.launcher.machines import find_machine
from paddock_stack.profiles.catalogue import NAMES, load
from paddock_stack.profiles.schema import Machine

SUMMARY = "list the profiles, or show one as a machine gets it"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `profiles` to `parser`."""
    parser.add_argument("name", nargs="?", metavar="PROFILE")
    parser.add_argument("--machine", type=Machine, choices=list(Machine), help="default: the one that this is")


def run(arguments: argparse.Namespace) -> int:
    """Print what was asked for; return the exit status."""
    machine = arguments.machine or find_machine()
    if arguments.name:
        print(json.dumps(dataclasses.asdict(load(arguments.name, machine)), indent=2))
        return 0
    for name in NAMES:
        profile = load(name, machine)
        print(f"{name:<20} {profile.answers:<15} {profile.summary}{f' {profile.warning}' if profile.warning else ''}")
    return 0
