"""Measure how long vLLM's steps and drafts take, on the device, while it serves."""
