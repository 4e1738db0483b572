"""Hold the model classes that the plugin registers in place of vLLM's own."""
