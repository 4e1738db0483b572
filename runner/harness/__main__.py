"""The harness's command line.

    python -m runner.harness run --spec spec.json --out FOLDER

Standard output carries progress, one JSON object per line: `{"stage": "benchmark", "done": 3, "total": 128}`.
Exit status 0: measured. 3: the submission failed, see `failure.json`. 2: the order was unusable, one sentence on
standard error. Anything else is our own fault.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from runner.harness.faults import BadInput, SubmissionFault
from runner.harness.measurement import measure
from runner.harness.run_folder import RunFolder
from runner.harness.spec import read_spec


def main(arguments: list[str] | None = None) -> int:
    """Run one measurement and return the exit status."""
    parsed = _parser().parse_args(arguments)
    try:
        measure(read_spec(parsed.spec), RunFolder(parsed.out))
    except SubmissionFault as fault:
        sys.stderr.write(f"{fault.code}: {fault.message}\n".encode("ascii", "backslashreplace").decode())
        return 3
    except BadInput as fault:
        sys.stderr.write(f"{fault}\n")
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m runner.harness", description="Measure one model server.")
    run = parser.add_subparsers(dest="command", required=True).add_parser("run", help="measure and leave the files")
    run.add_argument("--spec", type=Path, required=True, help="JSON file that says what to measure")
    run.add_argument("--out", type=Path, required=True, help="folder that receives the run's files")
    return parser


if __name__ == "__main__":
    sys.exit(main())
