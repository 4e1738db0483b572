"""List, lever by lever, the names and signatures of vLLM and of torch that the stack uses.

A place is written `module:Qualified.name`. What is read is their source, never imported modules: the same list
is held against the installed one at load and against recorded sources of other releases in the tests.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Need:
    """One function or class that must look as the stack assumes, in the first of `places` that exists.

    `parameters` must occur among the function's, in this order; with `exact`, be all of them. `sets` are attributes
    that it assigns on `self`. `words` are identifiers or strings that must occur in its body; of the sets of words in
    `either`, one whole set must.
    """

    places: tuple[str, ...]
    parameters: tuple[str, ...] = ()
    exact: bool = False
    sets: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    either: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Lever:
    """What one lever of the stack is called and what it needs of which package."""

    name: str
    needs: tuple[Need, ...]
    package: str = "vllm"


_MODELS = "vllm.model_executor.models"
_LAYERS = "vllm.model_executor.layers"
_BACKENDS = "vllm.v1.attention.backends"
_SPECULATORS = "vllm.v1.worker.gpu.spec_decode"

PRUNED_HEAD = Lever(
    "the pruned head",
    (
        Need((f"{_MODELS}.registry:_ModelRegistry.register_model",), ("self", "model_arch", "model_cls")),
        Need(
            (f"{_MODELS}.gemma4:Gemma4ForCausalLM.__init__",),
            ("self", "vllm_config", "prefix"),
            exact=True,
            sets=("config", "lm_head", "logits_processor", "model"),
            words=("tie_word_embeddings", "final_logit_softcapping"),
        ),
        Need((f"{_MODELS}.gemma4:Gemma4ForCausalLM.compute_logits",), ("self", "hidden_states"), exact=True),
        Need((f"{_MODELS}.gemma4:Gemma4DecoderLayer.forward",), ("self", "positions", "hidden_states", "residual")),
        Need(
            (f"{_MODELS}.gemma4_mm:Gemma4ForConditionalGeneration.__init__",),
            words=("init_vllm_registered_model", "Gemma4ForCausalLM", "text_config"),
        ),
        Need(
            (f"{_LAYERS}.vocab_parallel_embedding:ParallelLMHead.__init__",),
            ("self", "num_embeddings", "embedding_dim", "org_num_embeddings", "quant_config", "prefix"),
        ),
        Need((f"{_LAYERS}.logits_processor:LogitsProcessor.__init__",), ("self", "vocab_size", "soft_cap")),
        Need((f"{_LAYERS}.logits_processor:LogitsProcessor.forward",), ("self", "lm_head", "hidden_states")),
    ),
)

TWO_D_ATTENTION = Lever(
    "the 2D attention backend",
    (
        Need((f"{_BACKENDS}.registry:register_backend",), ("backend", "class_path")),
        Need((f"{_BACKENDS}.registry:AttentionBackendEnum",), words=("CUSTOM",)),
        Need((f"{_BACKENDS}.triton_attn:TritonAttentionBackend.get_name",), exact=True),
        Need((f"{_BACKENDS}.triton_attn:TritonAttentionBackend.get_builder_cls",), exact=True),
        Need(
            (f"{_BACKENDS}.triton_attn:TritonAttentionMetadataBuilder.__init__",),
            ("self", "kv_cache_spec", "layer_names", "vllm_config", "device"),
            exact=True,
            sets=("softmax_segm_output", "softmax_segm_max", "softmax_segm_expsum"),
        ),
        Need(
            ("vllm.v1.attention.ops.triton_unified_attention:unified_attention",),
            words=("use_3d", "softmax_segm_output", "softmax_segm_max", "softmax_segm_expsum", "seq_threshold_3D"),
        ),
    ),
)

FIXED_SPLIT_ATTENTION = Lever(
    "the fixed split of attention",
    (
        Need((f"{_BACKENDS}.triton_attn:TritonAttentionBackend.get_impl_cls",), exact=True),
        Need(
            (f"{_BACKENDS}.triton_attn:TritonAttentionMetadataBuilder.build",),
            ("self", "common_prefix_len", "common_attn_metadata", "fast_build"),
            exact=True,
            words=("TritonAttentionMetadata", "query_start_loc", "seq_lens", "block_table"),
            either=(("use_cascade",), ("causal", "rswa_window")),  # 0.23, and from 0.32 on
        ),
        Need(
            (f"{_BACKENDS}.triton_attn:TritonAttentionMetadataBuilder.build_for_cudagraph_capture",),
            words=("build",),
        ),
        Need(
            (f"{_BACKENDS}.triton_attn:TritonAttentionImpl.__init__",),
            sets=(
                *(
                    "num_heads",
                    "head_size",
                    "scale",
                    "num_kv_heads",
                    "alibi_slopes",
                    "sliding_window",
                    "kv_cache_dtype",
                ),
                *("logits_soft_cap", "attn_type", "sinks", "chunk_lookback"),
            ),
        ),
        Need(
            (f"{_BACKENDS}.triton_attn:TritonAttentionImpl.forward",),
            (
                *("self", "layer", "query", "key", "value", "kv_cache", "attn_metadata", "output"),
                *("output_scale", "output_block_scale"),
            ),
            exact=True,
            words=(
                *("num_actual_tokens", "max_query_len", "query_start_loc", "seq_lens", "block_table"),
                *("mm_prefix_range_tensor", "sliding_window"),
            ),
            either=(("unbind", "use_cascade"), ("transpose", "split", "causal", "rswa_window")),
        ),
    ),
)

FUSED_ARGMAX = Lever(
    "the fused sparse argmax",
    (
        Need(
            (f"{_MODELS}.gemma4_mtp:Gemma4MTPMaskedEmbedder.__init__",),
            sets=("num_centroids", "centroid_intermediate_top_k", "vocab_size_per_centroid", "centroids"),
            words=("token_ordering",),
        ),
        Need(
            (f"{_MODELS}.gemma4_mtp:Gemma4MTPMaskedEmbedder.get_top_tokens",),
            ("self", "hidden_states", "lm_head_weight"),
            exact=True,
            words=("_select_and_score", "argmax", "gather"),
        ),
        Need(
            (f"{_MODELS}.gemma4_mtp:Gemma4MTPMaskedEmbedder._select_and_score",),
            ("self", "hidden_states", "lm_head_weight"),
            exact=True,
            words=("topk", "centroids", "token_ordering", "td,tsd->ts"),
        ),
    ),
)

STEPTIME = Lever(
    "the steptime probe",
    (
        Need(("vllm.v1.worker.gpu_model_runner:GPUModelRunner.execute_model",), ("self", "scheduler_output")),
        Need(("vllm.v1.worker.gpu_model_runner:GPUModelRunner.sample_tokens",), ("self",)),
        Need(("vllm.v1.spec_decode.llm_base_proposer:SpecDecodeBaseProposer.propose",), ("self",)),
        Need(("vllm.v1.worker.gpu.model_runner:GPUModelRunner.execute_model",), ("self", "scheduler_output")),
        Need(("vllm.v1.worker.gpu.model_runner:GPUModelRunner.sample_tokens",), ("self",)),
        Need(
            (
                f"{_SPECULATORS}.target_dependent_ar.speculator:TargetDependentARSpeculator.propose",
                f"{_SPECULATORS}.autoregressive.speculator:AutoRegressiveSpeculator.propose",
            ),
            ("self",),
        ),
    ),
)

CONTIGUOUS_MM = Lever(
    "the contiguous oneDNN product",
    (Need(("vllm._custom_ops:onednn_mm",), ("dnnl_handler", "x", "bias"), exact=True, words=("reshape",)),),
)

_LINEAR = "vllm.model_executor.kernels.linear"

SKINNY_LINEAR = Lever(
    "the int4 product for few tokens",
    (
        Need((f"{_LINEAR}.__init__:register_linear_kernel",), ("kernel_class", "platform", "kernel_type")),
        Need(
            (f"{_LINEAR}.__init__:choose_mp_linear_kernel",),
            words=("_POSSIBLE_KERNELS", "VLLM_DISABLED_KERNELS", "can_implement"),
        ),
        Need((f"{_LINEAR}.mixed_precision.marlin:MarlinLinearKernel.can_implement",), ("cls", "c"), exact=True),
        Need(
            (f"{_LINEAR}.mixed_precision.marlin:MarlinLinearKernel.process_weights_after_loading",),
            ("self", "layer"),
            exact=True,
            words=("w_q_name", "w_s_name", "marlin_permute_bias"),
        ),
        Need(
            (f"{_LINEAR}.mixed_precision.marlin:MarlinLinearKernel.apply_weights",),
            ("self", "layer", "x", "bias"),
            exact=True,
            words=("apply_gptq_marlin_linear", "partition_weight_shape", "_get_weight_params"),
        ),
    ),
)

SKINNY_BF16 = Lever(
    "the bf16 product for few tokens",
    (
        Need(
            (f"{_LAYERS}.utils:default_unquantized_gemm",),
            ("layer", "x", "weight", "bias"),
            exact=True,
            words=("linear",),
        ),
        Need((f"{_LAYERS}.utils:dispatch_unquantized_gemm",), words=("default_unquantized_gemm",)),
        Need((f"{_LAYERS}.linear:UnquantizedLinearMethod",), words=("dispatch_unquantized_gemm",)),
        Need(
            (f"{_LAYERS}.vocab_parallel_embedding:UnquantizedEmbeddingMethod.apply",),
            words=("dispatch_unquantized_gemm",),
        ),
    ),
)

PERSISTENT_NORMS = Lever(
    "the rule for norms in registers",
    (
        Need(
            ("torch._inductor.choices:InductorChoices.should_use_persistent_reduction",),
            ("features", "cooperative_reduction"),
            exact=True,
            words=("get_reduction_hint", "reduction_numel", "INNER", "statically_known_leq", "persistent_reductions"),
        ),
        Need(("torch._inductor.virtualized:_choices_default",), words=("inductor_choices_class",)),
    ),
    package="torch",
)

LEVERS = (
    *(PRUNED_HEAD, TWO_D_ATTENTION, FIXED_SPLIT_ATTENTION, FUSED_ARGMAX, STEPTIME, CONTIGUOUS_MM),
    *(SKINNY_LINEAR, SKINNY_BF16, PERSISTENT_NORMS),
)
