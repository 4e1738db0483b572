"""Hold the Xet formats and their verification as pure functions: bytes in, values out, one kind of error."""
