"""skinny.cu compiles for every GPU generation and plan; NVRTC needs no GPU."""

from ctypes import CDLL, byref, c_char_p, c_size_t, c_void_p, create_string_buffer
from pathlib import Path

import pytest

from paddock_stack.skinny import source
from paddock_stack.skinny.plan import Plan, plan
from tests.runner.stack.skinny.test_plan import E4B, EDGES, WIDE

SHAPES = (*E4B, *WIDE, *EDGES)


def plans(bits: int) -> list[Plan]:
    """Return one plan of each compilation that the shapes lead to."""
    chosen = (plan(*shape, bits) for shape in SHAPES)
    return list({(each.warps, each.tiles, each.depth): each for each in chosen}.values())


WAYS = [(4, group, each) for group in (0, 32, 64, 128) for each in plans(4)] + [(16, 0, each) for each in plans(16)]


@pytest.mark.parametrize(("bits", "group", "chosen"), WAYS, ids=str)
@pytest.mark.parametrize("capability", [(8, 0), (8, 6), (9, 0)], ids=str)
def test_skinny_compiles(capability: tuple[int, int], bits: int, group: int, chosen: Plan, nvrtc: Path) -> None:
    code, log, size = compiled(nvrtc, source.text(), source.options(bits, group, chosen, capability))
    assert code == 0, log
    assert "warning" not in log
    assert size > 1000


def test_a_fault_is_found(nvrtc: Path) -> None:
    code, log, _ = compiled(
        nvrtc, source.text() + b"int x = undefined_name;", source.options(4, 32, plan(16, 64), (9, 0))
    )
    assert code != 0
    assert "undefined_name" in log


def compiled(nvrtc: Path, text: bytes, options: list[bytes]) -> tuple[int, str, int]:
    """Return NVRTC's code, its log, and the size of what it made."""
    library, program, size = CDLL(str(nvrtc)), c_void_p(), c_size_t()
    assert library.nvrtcCreateProgram(byref(program), c_char_p(text), b"skinny.cu", 0, None, None) == 0
    code = library.nvrtcCompileProgram(program, len(options), (c_char_p * len(options))(*options))
    assert library.nvrtcGetProgramLogSize(program, byref(size)) == 0
    log = create_string_buffer(size.value)
    assert library.nvrtcGetProgramLog(program, log) == 0
    made = c_size_t()
    assert code != 0 or library.nvrtcGetCUBINSize(program, byref(made)) == 0
    assert library.nvrtcDestroyProgram(byref(program)) == 0
    return code, log.value.decode(), made.value
