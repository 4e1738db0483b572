"""Offer `paddock-stack submission`.

paddock-stack submission int4-fast DIR --weights model --drafter drafter
paddock-stack submission int4-fast DIR --set speculation.tokens=7 --configuration-only
paddock-stack submission my.toml DIR                   # my.toml, what it extends and its keep-set travel with it
"""

from __future__ import annotations

import argparse
from pathlib import Path

from paddock_stack.profiles.catalogue import read_setting
from paddock_stack.submissions.writing import Wanted, write

SUMMARY = "make a submission out of a profile"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `submission` to `parser`."""
    parser.add_argument("profile", metavar="PROFILE", help="a name, or a file that ends in .toml")
    parser.add_argument("out", type=Path, metavar="DIR", help="folder to be made")
    parser.add_argument("--name", help="default: the profile's")
    parser.add_argument("--weights", type=Path, help="folder copied into DIR/model, best baked already")
    parser.add_argument("--drafter", type=Path, help="folder copied into DIR/drafter")
    parser.add_argument("--keepset", type=Path, help="file copied to DIR/keepset.json, instead of the profile's own")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument(
        "--configuration-only", action="store_true", help="no serve.py: the runner's own stack serves it"
    )
    parser.add_argument("--served-model-name", default=Wanted.served_model_name)
    parser.add_argument("--port", type=int, default=Wanted.port)


def run(arguments: argparse.Namespace) -> int:
    """Write the folder; return the exit status."""
    wanted = Wanted(
        name=arguments.name or "",
        overrides=dict(read_setting(each) for each in arguments.settings),
        model=arguments.weights,
        drafter=arguments.drafter,
        keepset=arguments.keepset,
        served_model_name=arguments.served_model_name,
        port=arguments.port,
        has_serve_py=not arguments.configuration_only,
    )
    manifest = write(arguments.profile, wanted, arguments.out)
    print(f"{arguments.out}: {manifest['name']}, profile {manifest['profile']}")
    return 0
