"""Verdicts: on each function, on all of them together, and on the whole program."""
