"""Compile skinny.cu for the GPU at hand and launch it, by NVRTC and the driver: no CUDA toolkit is needed."""

from __future__ import annotations

from ctypes import c_int, c_void_p
from functools import cache
from typing import Any

import torch

from paddock_stack.refusals import Refused
from paddock_stack.skinny import source
from paddock_stack.skinny.plan import TILE_ROWS, Plan

_TYPES = (c_void_p,) * 6 + (c_int,) * 3


class CannotCompile(Refused):
    """The kernel could not be compiled or loaded on this machine."""


@cache
def function(bits: int, group: int, plan: Plan) -> Any:
    """Return the kernel for weights of `bits` in scales of `group` columns (0: one a row).

    It is compiled once a process, in about a second, so call this before a CUDA graph is captured over a launch.

    Raises:
        CannotCompile: with the compiler's or the driver's own words.
    """
    driver, _ = _bindings()
    return _done(driver.cuModuleGetFunction(_done(driver.cuModuleLoadData(_binary(bits, group, plan))), b"skinny"))


def launch(kernel: Any, plan: Plan, pointers: tuple[int, ...], shape: tuple[int, int, int]) -> None:
    """Start `kernel`, compiled for `plan`, on torch's current stream, which may be under capture.

    `pointers` are those of words, scale pairs, x, y, parts and counters; `shape` is (rows, columns, tokens).
    """
    driver, _ = _bindings()
    stream = torch.cuda.current_stream().cuda_stream
    arguments = ((*pointers, *shape), _TYPES)
    blocks = shape[0] // TILE_ROWS // plan.tiles
    _done(driver.cuLaunchKernel(kernel, blocks, plan.split, 1, plan.warps * 32, 1, 1, 0, stream, arguments, 0))


def _binary(bits: int, group: int, plan: Plan) -> bytes:
    _, nvrtc = _bindings()
    options = source.options(bits, group, plan, torch.cuda.get_device_capability())
    program = _done(nvrtc.nvrtcCreateProgram(source.text(), b"skinny.cu", 0, [], []))
    code, *_ = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if int(code) != 0:
        log = b" " * _done(nvrtc.nvrtcGetProgramLogSize(program))
        nvrtc.nvrtcGetProgramLog(program, log)
        raise CannotCompile(f"skinny.cu does not compile here: {log.decode(errors='replace').strip()}")
    binary: bytes = b" " * _done(nvrtc.nvrtcGetCUBINSize(program))
    _done(nvrtc.nvrtcGetCUBIN(program, binary))
    return binary


def _bindings() -> tuple[Any, Any]:
    try:
        from cuda.bindings import driver, nvrtc
    except ImportError as error:
        raise CannotCompile(
            "the products for few tokens need the package cuda-bindings, which torch's CUDA builds bring along"
        ) from error
    return driver, nvrtc


def _done(result: tuple[Any, ...]) -> Any:
    code, *rest = result
    if int(code) != 0:
        raise CannotCompile(f"the CUDA driver answered {code!s} to the products for few tokens")
    return rest[0] if rest else None
