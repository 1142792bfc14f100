"""perfdiff compares the performance of two git revisions, function by function."""

__version__ = "0.1.0"
