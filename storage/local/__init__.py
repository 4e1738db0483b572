"""Keep buckets on this machine: xorbs as files, everything about them as rows."""
