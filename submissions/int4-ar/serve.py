"""Serve the profile that manifest.json beside this file names, by paddock-stack."""

import sys
from pathlib import Path

from paddock_stack.launcher.commands import serve_submission

if __name__ == "__main__":
    sys.exit(serve_submission(Path(__file__).resolve().parent))
