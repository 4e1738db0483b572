"""The zygote's own side, run by the server environment's Python: import vLLM once, then fork for every task.

Reads one JSON order a line on stdin and answers with one JSON line on stdout; everything else printed here or in a
task goes to stderr. No tensor is touched before the fork: OpenMP's threads would not survive it.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sys
import traceback
from typing import Any

# What an engine and the references import on their way; imported here, every fork has it.
MODULES = (
    *("torch", "transformers", "transformers.models.gemma4.modeling_gemma4", "vllm", "vllm.entrypoints.llm"),
    *("vllm.v1.engine.core", "vllm.v1.executor.uniproc_executor", "vllm.v1.worker.cpu_worker"),
    *("vllm.v1.attention.backends.cpu_attn", "vllm.v1.spec_decode.gemma4", "vllm.model_executor.models.gemma4"),
    *("vllm.model_executor.models.gemma4_mm", "vllm.model_executor.models.gemma4_mtp"),
    *("vllm.model_executor.layers.quantization.compressed_tensors.compressed_tensors", "paddock_stack.models.gemma4"),
)


def main() -> None:
    """Answer orders until stdin ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for name in MODULES:
        importlib.import_module(name)
    _know_models()
    gc.freeze()  # vLLM collects garbage at every start and end of an engine: two seconds over all that was imported
    print(json.dumps({"result": "ready"}), file=answers)
    for line in sys.stdin:
        print(_in_a_fork(json.loads(line)), file=answers)


def imported() -> list[str]:
    """Return the modules that a task need not import."""
    return sorted(sys.modules)


def die() -> None:
    """End this task as a fault in native code would: without an answer."""
    os.kill(os.getpid(), signal.SIGKILL)


def _know_models() -> None:
    """Hand vLLM the classes themselves: it would start a Python of its own to look at each one named by a string."""
    from vllm import ModelRegistry
    from vllm.model_executor.models import gemma4, gemma4_mm, gemma4_mtp

    ModelRegistry.register_model("Gemma4ForCausalLM", gemma4.Gemma4ForCausalLM)
    ModelRegistry.register_model("Gemma4ForConditionalGeneration", gemma4_mm.Gemma4ForConditionalGeneration)
    ModelRegistry.register_model("Gemma4MTPModel", gemma4_mtp.Gemma4MTP)


def _in_a_fork(order: dict[str, Any]) -> str:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        with os.fdopen(writer, "w") as told:
            told.write(_done(order))
        os._exit(0)  # no exit handlers: they belong to the process that was forked
    os.close(writer)
    with os.fdopen(reader) as told:
        answer = told.read()
    _, status = os.waitpid(child, 0)
    return answer or json.dumps({"fault": f"the task died with wait status {status}"})


def _done(order: dict[str, Any]) -> str:
    try:
        os.environ.update(order["env"])
        module, _, name = order["task"].partition(":")
        return json.dumps({"result": getattr(importlib.import_module(module), name)(**order["arguments"])})
    except BaseException:  # noqa: BLE001  # whatever it was, the test that asked gets to read it
        return json.dumps({"fault": traceback.format_exc()})


if __name__ == "__main__":
    main()
