"""Hold the steps of a bake: each turns the description of a model into that of another, and touches no file."""
