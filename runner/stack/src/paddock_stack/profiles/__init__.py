"""Hold what the stack serves, as data: one file a profile in `bundled/`, read strictly."""
