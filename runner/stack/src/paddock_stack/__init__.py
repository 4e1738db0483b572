"""Bake Gemma 4 checkpoints and serve them with vLLM; imports nothing of Paddock's other packages."""

VERSION = "0.1.0"
