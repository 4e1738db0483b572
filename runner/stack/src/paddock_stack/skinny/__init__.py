"""Multiply int4 or bf16 weights by up to eight tokens in one pass over them: decoding, and verifying a draft of seven.

At batch 1 a GPU spends its step reading weights, and vLLM's Marlin spends half of it waiting at the small shapes of
Gemma 4 (bench/H200.md). The kernel here reads compressed-tensors' int4 rows, laid out for it once, or bf16 rows as they
lie, and gives every token the same bits however many come along, which neither Marlin nor cuBLAS does.
"""
