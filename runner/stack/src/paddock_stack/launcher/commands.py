"""Offer `paddock-stack serve`.

paddock-stack serve int4-fast --weights google/gemma-4-E4B-it-qat-w4a16-ct --set speculation.tokens=7
paddock-stack serve --submission FOLDER
paddock-stack serve int4-fast --dry-run
"""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path

from paddock_stack.launcher import checks, command, reading
from paddock_stack.launcher.machines import find_machine
from paddock_stack.launcher.serving import VLLM, serve
from paddock_stack.profiles.catalogue import load, read_setting
from paddock_stack.profiles.schema import Machine, Profile
from paddock_stack.refusals import Refused

SUMMARY = "serve a profile, or a submission that names one, with vLLM"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `serve` to `parser`."""
    parser.add_argument("profile", nargs="?", metavar="PROFILE", help="a name, or a file that ends in .toml")
    parser.add_argument("--submission", type=Path, metavar="FOLDER", help="serve what its manifest names instead")
    parser.add_argument("--machine", type=Machine, choices=list(Machine), help="default: the one that this is")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE",
                        help="override a key of the profile, e.g. speculation.tokens=7")  # fmt: skip
    parser.add_argument(
        "--weights", metavar="URI", help="folder, Hub id or hf://buckets/…; short for --set weights.uri="
    )
    parser.add_argument("--drafter", metavar="URI", help="the same for speculation.drafter.uri=")
    parser.add_argument("--dry-run", action="store_true", help="check the profile and print vLLM's command")


def run(arguments: argparse.Namespace) -> int:
    """Serve until told to stop; return the exit status."""
    base = _base(arguments)
    profile = _profile(arguments, base)
    address = reading.address(os.environ)
    if arguments.dry_run:
        checks.check_profile(profile)
        served = command.Served(Path("MODEL"), Path("DRAFTER"), address.model_name, address.host, address.port)
        print(shlex.join([*VLLM, *command.arguments(profile, served)]))
        return 0
    return serve(profile, address, base)


def serve_submission(folder: Path) -> int:
    """Serve the submission in `folder`: all that its serve.py does. Returns the exit status; a refusal is printed."""
    from paddock_stack.cli import main

    return main(["serve", "--submission", str(folder)])


def _base(arguments: argparse.Namespace) -> Path:
    """Return the folder that relative paths are in: the submission's, that of a profile of one's own, or this one."""
    if arguments.submission is None and str(arguments.profile).endswith(".toml"):
        return Path(arguments.profile).resolve().parent
    return Path(arguments.submission or ".").resolve()


def _profile(arguments: argparse.Namespace, base: Path) -> Profile:
    if (arguments.profile is None) == (arguments.submission is None):
        raise Refused("name a PROFILE or a --submission, and not both")
    machine = arguments.machine or find_machine()
    if arguments.submission is not None:
        if arguments.settings or arguments.weights or arguments.drafter:
            raise Refused("a submission's overrides stand in its manifest, not on the command line")
        return reading.submitted(base, machine, os.environ)
    overrides = dict(read_setting(each) for each in arguments.settings)
    for key, value in (("weights.uri", arguments.weights), ("speculation.drafter.uri", arguments.drafter)):
        if value:
            overrides[key] = value
    return load(arguments.profile, machine, overrides)
