"""Translate public submissions, which turn levers by environment variables, into profiles."""
