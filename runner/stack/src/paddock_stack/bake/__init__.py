"""Turn one Gemma 4 checkpoint into another in one streaming pass over its tensors."""
