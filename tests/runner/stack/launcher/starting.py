"""Start the launcher as a process of its own, and look at it from outside."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.runner.stack.serving.zygote import ROOT

SOURCES = ROOT / "runner/stack/src"
FAKE = Path(__file__).with_name("fake_vllm.py")
# Serves on the fake; what is under test is all but vLLM.
PROGRAM = """
import sys
from pathlib import Path
from paddock_stack.launcher import serving
from paddock_stack.refusals import Refused
from paddock_stack.profiles.catalogue import load
from paddock_stack.profiles.schema import Machine
import json
told = json.loads(sys.argv[1])
profile = load(told["profile"], Machine(told["machine"]), told["overrides"])
try:
    sys.exit(serving.serve(profile, serving.Address("127.0.0.1", told["port"], "tiny"), Path(told["base"]),
                           program=(sys.executable, told["fake"])))
except Refused as refusal:
    sys.exit(f"refused: {refusal}")
"""


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_on_fake(
    folder: Path,
    port: int,
    profile: str,
    overrides: dict[str, Any],
    fault: str = "",
    *,
    machine: str = "cpu",
    env: dict[str, str] | None = None,
) -> Any:
    """Start `serve` with the fake in vLLM's place; its cache and record lie in `folder`."""
    told = {"profile": profile, "machine": machine, "overrides": overrides}
    told |= {"port": port, "base": str(folder), "fake": str(FAKE)}
    own = {"PADDOCK_STACK_CACHE": str(folder / "cache"), "FAKE_FAULT": fault}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, json.dumps(told)],
        env={**clean_environment(), **own, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def clean_environment() -> dict[str, str]:
    """Return our environment without switches of the stack or of vLLM, with the stack's sources to import."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PADDOCK_", "VLLM_"))}
    return {**inherited, "PYTHONPATH": str(SOURCES)}


def status_of(port: int, path: str = "/v1/models") -> int | None:
    """Return the status that a stranger's GET is answered with, or None where nobody listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code
    except OSError:
        return None


def post(port: int, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON that a stranger's POST is answered with."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        told: dict[str, Any] = json.load(answer)
    return told
