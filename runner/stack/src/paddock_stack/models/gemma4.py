"""Serve Gemma 4 with a head that kept only some rows of its vocabulary, or with layers left out.

Registered as `Gemma4ForCausalLM`, which vLLM also builds inside `Gemma4ForConditionalGeneration`: towers stay as they
are. A checkpoint whose configuration has neither key gets exactly vLLM's own model.
"""

from __future__ import annotations

from typing import Any

import torch
from vllm.model_executor.layers.logits_processor import LogitsProcessor
from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead
from vllm.model_executor.models import gemma4
from vllm.model_executor.models.utils import maybe_prefix

from paddock_stack.kernels.pruned_head import scatter_rows
from paddock_stack.models.head_rows import find_keep_ids
from paddock_stack.models.layer_skip import find_skipped, pass_through


class PrunedGemma4(gemma4.Gemma4ForCausalLM):  # type: ignore[misc]  # vLLM is not seen where types are checked
    """Gemma 4 whose head has one row per kept id; all other ids have logit -inf."""

    def __init__(self, *, vllm_config: Any, prefix: str = "") -> None:
        super().__init__(vllm_config=vllm_config, prefix=prefix)
        kept = find_keep_ids(self.config)
        self.keeps_all = kept is None
        if kept is not None:
            self._rebuild_head(len(kept), prefix)
            self.register_buffer("keep_ids", torch.tensor(kept, dtype=torch.int64), persistent=False)
        for index in find_skipped(self.config):
            self.model.layers[index].forward = pass_through

    def _rebuild_head(self, rows: int, prefix: str) -> None:
        """Give the head `rows` rows: the loader refuses any other number than it was built with, and pads it by zeros
        only beyond `org_num_embeddings`, where they are cut off again."""
        self.lm_head = ParallelLMHead(
            rows,
            self.config.hidden_size,
            org_num_embeddings=rows,
            quant_config=self.quant_config,
            prefix=maybe_prefix(prefix, "lm_head"),
        )
        self.logits_processor = LogitsProcessor(rows, soft_cap=getattr(self.config, "final_logit_softcapping", None))

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor | None:
        """Return the logits [num_tokens, vocab_size] of `hidden_states` [num_tokens, hidden_size].

        The soft cap is applied to the kept rows alone: it would leave -inf as it is. The result is a new tensor each
        time, because vLLM edits logits in place and may hold two of them at once.
        """
        rows = super().compute_logits(hidden_states)
        if self.keeps_all or rows is None:
            return rows
        return scatter_rows(rows, self.keep_ids, self.config.vocab_size)
