"""Runs that count and are not timed."""
