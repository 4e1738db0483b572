"""Choose how vLLM's Triton attention splits its work."""
