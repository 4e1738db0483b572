"""Say which parts of vLLM the stack leans on, and refuse in one sentence a vLLM that has others."""
