"""Make submissions out of profiles."""
