"""Fill a model with seeded random weights whose greedy output varies, as vLLM's load format `seeded`.

vLLM's own dummy weights are so small that every prompt repeats one token, and then two runs agree whatever the kernels
do. Here every product keeps the size of what it multiplies, norms are one, and each layer adds as much as there was.
"""

from __future__ import annotations

import zlib
from typing import Any

import torch
from vllm.model_executor.model_loader import register_model_loader
from vllm.model_executor.model_loader.base_loader import BaseModelLoader

_INT4_SPREAD = 4.2  # standard deviation of whole numbers from -8 to 7 whose -8 became 0
_AT_ONCE = 1 << 28


@register_model_loader("seeded")
class SeededLoader(BaseModelLoader):  # type: ignore[misc]  # vLLM's types are not seen here
    """Load nothing: make the weights from their names."""

    def download_model(self, model_config: Any) -> None:
        """Do nothing: there is nothing to fetch."""

    def load_weights(self, model: torch.nn.Module, model_config: Any) -> None:  # noqa: ARG002  (vLLM's signature)
        """Fill every parameter and buffer of `model`, alike in every process that builds the same one."""
        tensors = model.state_dict()
        for name, tensor in tensors.items():
            generator = torch.Generator(tensor.device).manual_seed(zlib.crc32(name.encode()))
            _fill(name, tensor, tensors, generator)


@torch.no_grad()  # type: ignore[untyped-decorator]  # torch is not seen here
def _fill(name: str, tensor: torch.Tensor, all_of_it: dict[str, torch.Tensor], generator: torch.Generator) -> None:
    if name.endswith("weight_packed"):
        tensor.copy_(_balanced(tensor.random_(-(2**31), 2**31 - 1, generator=generator)))
    elif name.endswith("weight_scale"):
        columns = all_of_it[name.removesuffix("weight_scale") + "weight_packed"].shape[1] * 8
        tensor.fill_(1 / (_INT4_SPREAD * columns**0.5))
    elif name.endswith("token_ordering"):
        tensor.copy_(torch.randperm(tensor.numel(), device=tensor.device, generator=generator))
    elif name.endswith("weight_shape"):
        tensor.copy_(torch.tensor([tensor.numel(), 1]))
    elif "norm" in name:
        tensor.fill_(4.0 if name.endswith("model.norm.weight") else 1.0)
    elif name.endswith("layer_scalar"):
        tensor.fill_(1.0)
    elif tensor.is_floating_point() and tensor.dim() == 2:
        flat = tensor.view(-1)
        for first in range(0, flat.numel(), _AT_ONCE):
            flat[first : first + _AT_ONCE].normal_(0, tensor.shape[1] ** -0.5, generator=generator)


def _balanced(packed: torch.Tensor) -> torch.Tensor:
    """Make each -8 of int32 `packed`, stored as 0, a 0, stored as 8, so that the mean of all is none.

    Otherwise a product's largest part is the mean of what it multiplies, and the text one repeated token.
    """
    ones = 0x11111111
    is_eight_below = ~(packed | packed >> 1 | packed >> 2 | packed >> 3) & ones
    return packed | is_eight_below << 3
