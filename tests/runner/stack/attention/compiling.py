"""Compile the fixed split for GPUs that are not here; needs Triton, runs in a process of its own.

    python compiling.py

Prints a JSON object: the shared bytes of a program, a kernel a key.
"""

from __future__ import annotations

import json

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from paddock_stack.attention import fixed_split_triton
from paddock_stack.attention.fixed_split_plan import cut_for, rows, slots

POINTERS = {
    **dict.fromkeys(("query", "keys", "values", "output"), "*bf16"),
    **dict.fromkeys(("part_mixed", "part_most", "part_total"), "*fp32"),
    **dict.fromkeys(("table", "lengths", "starts"), "*i32"),
}


def compiled() -> dict[str, int]:
    """Return the shared bytes of a program of each kernel, at both head sizes, on both kinds of GPU."""
    told = {}
    for capability in (86, 90):
        for head, window in ((256, 512), (512, 0)):
            cut = cut_for(head)
            many = slots(cut, window, 4096)
            both = {"head": head, "window": window, "segment": cut.segment, "slots": many}
            attend = {"group": 4, "block_size": 16, "tile": cut.tile, "rows": rows(4)}
            merge = {"width": fixed_split_triton.WIDTH, "padded": triton.next_power_of_2(many), "merged": 16}
            name = f"sm_{capability}, head {head}"
            told[f"attend, {name}"] = _shared(
                fixed_split_triton.attend_segments, both | attend, capability, warps=cut.warps
            )
            told[f"merge, {name}"] = _shared(fixed_split_triton.merge_segments, both | merge, capability, warps=4)
    return told


def _shared(kernel: triton.JITFunction, constants: dict[str, int], capability: int, *, warps: int) -> int:
    names = [each for each in kernel.arg_names if each not in constants]
    signature = {each: "fp32" if each == "scale" else POINTERS.get(each, "i32") for each in names}
    aligned = {(kernel.arg_names.index(each),): [["tt.divisibility", 16]] for each in names if each != "scale"}
    source = ASTSource(
        fn=kernel,
        signature={each: signature.get(each, "constexpr") for each in kernel.arg_names},
        constexprs=constants,
        attrs=aligned,
    )
    options = {"num_warps": warps, "num_stages": 1}
    made = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
    assert made.asm["cubin"]
    return int(made.metadata.shared)


if __name__ == "__main__":
    print(json.dumps(compiled()))
