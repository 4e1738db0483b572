"""What the record says vLLM resolved comes from vLLM's own words, as releases wrote them."""

from __future__ import annotations

from paddock_stack.launcher.acceptance import acceptance
from paddock_stack.launcher.logs import Resolved, read

GPU = """\
(EngineCore pid=3) INFO 06-18 11:01:31 [core.py:113] Initializing a V1 LLM engine (v0.23.0) with config: model='m'
'cudagraph_mode': <CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>, 'cudagraph_capture_sizes': [1, 2, 4, 8, 16], 'x': 1
(EngineCore pid=3) INFO 06-18 11:01:51 [vllm.py:999] Asynchronous scheduling is enabled.
(EngineCore pid=3) INFO 06-18 11:01:51 [wNa16.py:112] Using MarlinLinearKernel for CompressedTensorsWNA16
(EngineCore pid=3) INFO 06-18 11:01:51 [cuda.py:318] Using AttentionBackendEnum.TRITON_ATTN backend.
(EngineCore pid=3) INFO 06-18 11:01:51 [cuda.py:318] Using AttentionBackendEnum.TRITON_ATTN backend.
INFO 06-18 11:01:52 [x.py:1] Using cache directory: /c/torch_compile_cache/0123456789/rank_0_0/backbone
(EngineCore pid=3) INFO 06-18 11:01:52 [speculator.py:110] Capturing model for speculator...
"""


def test_log_of_a_gpu_tells_backends_graphs_and_scheduling() -> None:
    told = read(GPU.splitlines())
    assert told == Resolved(
        vllm="0.23.0",
        attention_backends=["TRITON_ATTN"],
        linear_kernels=["MarlinLinearKernel"],
        async_scheduling=True,
        capture_sizes=[1, 2, 4, 8, 16],
        cudagraph_mode="FULL_AND_PIECEWISE",
        compile_cache_keys=["0123456789"],
        draft_graph_captured=True,
    )


def test_log_of_a_cpu_tells_its_backend() -> None:
    told = read(["INFO [cpu.py:178] Cannot use AttentionBackendEnum.TRITON_ATTN backend on CPU."])
    assert told.attention_backends == ["CPU_ATTN"]


def test_what_is_not_said_stays_unknown() -> None:
    assert read(["hello"]) == Resolved()


def test_nothing_drafted_is_no_acceptance() -> None:
    assert acceptance('vllm:spec_decode_num_drafts_total{engine="0"} 0.0\n') is None
    assert acceptance("") is None
