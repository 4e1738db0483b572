"""Keep buckets at a Hugging Face Hub, reached through its own client library."""
