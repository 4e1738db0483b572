"""Read off vLLM's own log what it resolved: backends, graphs, scheduling.

What it doesn't say is unknown (None, or an empty list), never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

_ATTENTION = re.compile(r"Using (?:AttentionBackendEnum\.)?(\w+)(?: attention)? backend")
_CPU_ATTENTION = re.compile(r"Cannot use \S+ backend on CPU")
_LINEAR = re.compile(r"Using (\w*LinearKernel) for")
_ASYNC = re.compile(r"Asynchronous scheduling is (enabled|disabled)")
_SIZES = re.compile(r"cudagraph_capture_sizes'?[:=] ?\[([\d, ]*)\]")
_MODE = re.compile(r"cudagraph_mode'?[:=] ?<CUDAGraphMode\.(\w+)")
_CACHE = re.compile(r"torch_compile_cache/(?:torch_aot_compile/)?([0-9a-f]{8,64})")
_SPECULATOR = re.compile(r"Capturing model for (?:[\w-]+ )?speculator")
_STEP_BY_STEP = re.compile(r"cannot update draft decode metadata in place")  # said before anything is captured
_CAPTURED = re.compile(r"Graph capturing finished")  # the drafter's, if any, came before
_VERSION = re.compile(r"Initializing a V1 LLM engine \(v([^)]+)\)")


@dataclass
class Resolved:
    """What the log has said so far."""

    vllm: str | None = None
    attention_backends: list[str] = field(default_factory=list)
    linear_kernels: list[str] = field(default_factory=list)
    async_scheduling: bool | None = None
    capture_sizes: list[int] | None = None
    cudagraph_mode: str | None = None
    compile_cache_keys: list[str] = field(default_factory=list)
    draft_graph_captured: bool | None = None  # the whole draft loop as one graph

    def see(self, line: str) -> None:
        """Take in one line of the log."""
        for pattern, into in (
            (_ATTENTION, self.attention_backends),
            (_LINEAR, self.linear_kernels),
            (_CACHE, self.compile_cache_keys),
        ):
            into.extend(word for word in pattern.findall(line) if word not in into)
        if _CPU_ATTENTION.search(line) and "CPU_ATTN" not in self.attention_backends:
            self.attention_backends.append("CPU_ATTN")
        if found := _ASYNC.search(line):
            self.async_scheduling = found[1] == "enabled"
        if found := _SIZES.search(line):
            self.capture_sizes = [int(size) for size in found[1].split(",") if size.strip()]
        if found := _MODE.search(line):
            self.cudagraph_mode = found[1]
        if found := _VERSION.search(line):
            self.vllm = found[1]
        if _STEP_BY_STEP.search(line):
            self.draft_graph_captured = False
        elif _SPECULATOR.search(line):
            self.draft_graph_captured = self.draft_graph_captured is not False
        elif _CAPTURED.search(line):
            self.draft_graph_captured = bool(self.draft_graph_captured)

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        return dict(vars(self))


def read(lines: Iterable[str]) -> Resolved:
    """Return what `lines` say."""
    resolved = Resolved()
    for line in lines:
        resolved.see(line)
    return resolved
