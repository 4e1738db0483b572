"""What the record says vLLM resolved comes from vLLM's own words, as releases wrote them."""

from __future__ import annotations

from paddock_stack.launcher.acceptance import acceptance
from paddock_stack.launcher.logs import Resolved, read

# As vLLM 0.23.0 wrote it on an H200 for int4-fast with six drafts, on 2026-11-30; long lines cut.
GPU = """\
INFO 11-30 01:58:18 [vllm.py:999] Asynchronous scheduling is enabled.
INFO 11-30 01:58:18 [core.py:113] Initializing a V1 LLM engine (v0.23.0) with config: model='m', \
'cudagraph_mode': <CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>, 'cudagraph_num_of_warmups': 1, \
'cudagraph_capture_sizes': [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14], 'cudagraph_copy_inputs': False
INFO 11-30 01:58:20 [compressed_tensors_wNa16.py:112] Using SkinnyLinearKernel for CompressedTensorsWNA16
INFO 11-30 01:58:20 [cuda.py:318] Using AttentionBackendEnum.CUSTOM backend.
INFO 11-30 01:58:20 [cuda.py:318] Using AttentionBackendEnum.CUSTOM backend.
INFO 11-30 01:58:41 [backends.py:1089] Using cache directory: /v/torch_compile_cache/6ac6144e25/rank_0_0/backbone
INFO 11-30 01:59:22 [decorators.py:708] saved AOT compiled function to \
/v/torch_compile_cache/torch_aot_compile/9160a1815d08f7ef/rank_0_0/model
INFO 11-30 01:59:49 [gpu_model_runner.py:6585] Graph capturing finished in 5 secs, took -5.61 GiB
"""


def test_log_of_a_gpu_tells_backends_graphs_and_scheduling() -> None:
    told = read(GPU.splitlines())
    assert told == Resolved(
        vllm="0.23.0",
        attention_backends=["CUSTOM"],
        linear_kernels=["SkinnyLinearKernel"],
        async_scheduling=True,
        capture_sizes=list(range(1, 15)),
        cudagraph_mode="FULL_AND_PIECEWISE",
        compile_cache_keys=["6ac6144e25", "9160a1815d08f7ef"],
        draft_graph_captured=False,  # the first runner has none: it captures the target alone and is done
    )


def test_log_of_the_second_runner_tells_of_the_one_draft_graph() -> None:
    line = "(EngineCore pid=3) INFO 06-18 11:01:52 [speculator.py:110] Capturing model for speculator..."
    assert read([line]).draft_graph_captured is True
    assert read([line, *GPU.splitlines()]).draft_graph_captured is True


def test_log_of_the_second_runner_tells_of_drafts_captured_step_by_step() -> None:
    backend = (
        "INFO [speculator.py:318] Attention backend(s) X cannot update draft decode metadata in place; falling back"
    )
    line = "INFO [speculator.py:110] Capturing model for speculator..."
    assert read([backend, line, *GPU.splitlines()]).draft_graph_captured is False


def test_log_of_a_cpu_tells_its_backend() -> None:
    told = read(["INFO [cpu.py:178] Cannot use AttentionBackendEnum.TRITON_ATTN backend on CPU."])
    assert told.attention_backends == ["CPU_ATTN"]


def test_what_is_not_said_stays_unknown() -> None:
    assert read(["hello"]) == Resolved()


def test_nothing_drafted_is_no_acceptance() -> None:
    assert acceptance('vllm:spec_decode_num_drafts_total{engine="0"} 0.0\n') is None
    assert acceptance("") is None
