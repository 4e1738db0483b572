"""Decide which levers this process's vLLM gets, and put them in."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from paddock_stack.plugin import rebindings, switches
from paddock_stack.shapes.guard import installed_version, require
from paddock_stack.shapes.needs import PERSISTENT_NORMS, PRUNED_HEAD, SKINNY_BF16, SKINNY_LINEAR

GEMMA4 = "paddock_stack.models.gemma4:PrunedGemma4"
ATTENTION = {
    "2d": "paddock_stack.attention.two_d.TwoDAttentionBackend",
    "fixed_split": "paddock_stack.attention.fixed_split.FixedSplitBackend",
}


def pull(environ: Mapping[str, str]) -> None:
    """Put in every lever that fits this machine and is not switched off; a second call changes nothing.

    Raises `Refused` with one sentence for a vLLM of another shape and for a switch that is none.
    """
    fused = switches.is_on(environ, switches.FUSED_ARGMAX, default=True)
    skinny = switches.is_on(environ, switches.SKINNY, default=False)
    persistent = switches.is_on(environ, switches.PERSISTENT_NORMS, default=False)
    attention = switches.one_of(environ, switches.ATTENTION, tuple(ATTENTION))
    register_model()
    register_attention(ATTENTION[attention])
    if is_cpu():
        mend_for_cpu()
    elif fused and find_spec("triton") is not None:
        rebindings.fuse_sparse_argmax()
    if skinny:
        prefer_skinny()
    if persistent:
        hold_rows_of_norms()
    if environ.get(switches.STEPTIME):
        from paddock_stack.steptime.probe import watch

        watch(environ[switches.STEPTIME], on_gpu=not is_cpu())


def register_model() -> None:
    """Have vLLM build our Gemma 4, also inside its multimodal one; by name, so that nothing is imported yet."""
    require(PRUNED_HEAD)
    from vllm import ModelRegistry

    ModelRegistry.register_model("Gemma4ForCausalLM", GEMMA4)


def register_attention(path: str) -> None:
    """Offer the backend at `path` under the name CUSTOM; its module checks vLLM's shape when the backend is chosen."""
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    register_backend(AttentionBackendEnum.CUSTOM, path)


def prefer_skinny() -> None:
    """Have vLLM ask our products first, before Marlin and cuBLAS; raise `NotASwitch` where there is no GPU for them."""
    if is_cpu():
        raise switches.NotASwitch(f"{switches.SKINNY} is 1, but the products for few tokens need a GPU")
    require(SKINNY_LINEAR)
    require(SKINNY_BF16)  # before anything of vLLM's is changed
    from paddock_stack.skinny.linear import prefer

    prefer()
    rebindings.multiply_few_tokens_alike()


def hold_rows_of_norms() -> None:
    """Have torch compile norms that hold a row in registers; raise `NotASwitch` where no GPU would run them."""
    if is_cpu():
        raise switches.NotASwitch(f"{switches.PERSISTENT_NORMS} is 1, but only kernels for a GPU are compiled so")
    require(PERSISTENT_NORMS)
    from paddock_stack.plugin.persistent_norms import prefer

    prefer()


def mend_for_cpu() -> None:
    """Mend what is broken in the one release for the CPU that the tests run."""
    if installed_version().startswith("0.32."):
        rebindings.make_onednn_inputs_contiguous()


def is_cpu() -> bool:
    """Return whether vLLM takes this machine for one without an accelerator."""
    from vllm.platforms import current_platform

    return bool(current_platform.is_cpu())
