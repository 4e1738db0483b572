"""Start vLLM as a profile says, warm it up before it shows itself ready, and record what it really runs."""
