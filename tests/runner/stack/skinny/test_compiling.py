"""skinny.cu compiles for every GPU generation and plan; NVRTC needs no GPU, but fifty megabytes."""

import os
from ctypes import CDLL, byref, c_char_p, c_size_t, c_void_p, create_string_buffer

import pytest

from paddock_stack.skinny import source
from paddock_stack.skinny.plan import Plan, plan
from tests.runner.stack.skinny.test_plan import E4B, EDGES, WIDE

NVRTC = os.environ.get("PADDOCK_TEST_NVRTC", "")  # the path of libnvrtc.so
PLANS = {(each.warps, each.tiles, each.depth): each for each in (plan(*shape) for shape in (*E4B, *WIDE, *EDGES))}


@pytest.mark.parametrize("chosen", PLANS.values(), ids=str)
@pytest.mark.parametrize("group", [0, 32, 64, 128])
@pytest.mark.parametrize("capability", [(8, 0), (8, 6), (9, 0)], ids=str)
def test_skinny_compiles(capability: tuple[int, int], group: int, chosen: Plan) -> None:
    if not NVRTC:
        pytest.skip("NVRTC IS ABSENT: name libnvrtc.so (package nvidia-cuda-nvrtc) in PADDOCK_TEST_NVRTC")
    code, log, size = compiled(source.text(), source.options(group, chosen, capability))
    assert code == 0, log
    assert "warning" not in log
    assert size > 1000


def test_a_fault_is_found() -> None:
    if not NVRTC:
        pytest.skip("NVRTC IS ABSENT: name libnvrtc.so (package nvidia-cuda-nvrtc) in PADDOCK_TEST_NVRTC")
    code, log, _ = compiled(source.text() + b"int x = undefined_name;", source.options(32, plan(16, 64), (9, 0)))
    assert code != 0
    assert "undefined_name" in log


def compiled(text: bytes, options: list[bytes]) -> tuple[int, str, int]:
    """Return NVRTC's code, its log, and the size of what it made."""
    library, program, size = CDLL(NVRTC), c_void_p(), c_size_t()
    assert library.nvrtcCreateProgram(byref(program), c_char_p(text), b"skinny.cu", 0, None, None) == 0
    code = library.nvrtcCompileProgram(program, len(options), (c_char_p * len(options))(*options))
    assert library.nvrtcGetProgramLogSize(program, byref(size)) == 0
    log = create_string_buffer(size.value)
    assert library.nvrtcGetProgramLog(program, log) == 0
    made = c_size_t()
    assert code != 0 or library.nvrtcGetCUBINSize(program, byref(made)) == 0
    assert library.nvrtcDestroyProgram(byref(program)) == 0
    return code, log.value.decode(), made.value
