"""What is taken from a file that others may have written, before anything is allocated for it: its size, its numbers, its nesting.

A folder of samples or a recording may come from another machine, so a file of a kilobyte must not cost more than some megabytes.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterable
from typing import Any

from perfdiff.records.remote import Folder

# As much as a log of Freud's may have: files are held in memory as a whole.
LARGEST_BYTES = 4 * 2**30
# Numbers of functions, runs and points are places in tables of the analysis, which take 8 bytes each; no program has so many functions.
MOST_NUMBERS = 2**20
# A table may be so many times larger in memory than on disk, as columns of one value take next to nothing there, and that much in any case.
LARGEST_RATIO = 1000
ANY_TABLE_BYTES = 64 * 2**20


# The kernel counts bytes and lines of a run in 64 bits; Python's own integers have no end, and no place in a float.
MOST_COUNTED = 2**63


class BoundError(ValueError):
    """A file claims more than is taken from it."""


def content(path: Folder, largest: int = LARGEST_BYTES) -> bytes:
    """Return what a regular file holds; raise OSError where it cannot be read, BoundError where it is none or too large."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise BoundError("it is no regular file")
    if status.st_size > largest:
        raise BoundError(f"it has {status.st_size:,} bytes, {largest:,} at most are read")
    return path.read_bytes()


def parsed(text: bytes | str) -> Any:
    """Return what JSON text says; raise ValueError where it is none, or is nested more deeply than an interpreter's stack."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise BoundError("it is nested too deeply") from error


def check_numbers(numbers: Iterable[int], says: str) -> None:
    """Raise BoundError unless numbers are from 0 on, small enough to be places in a table, and each there once."""
    listed = list(numbers)
    beyond = next((number for number in listed if not 0 <= number < MOST_NUMBERS), None)
    if beyond is not None:
        raise BoundError(f"number {beyond:,} of {says}, which begin at 0 and end below {MOST_NUMBERS:,}")
    if len(set(listed)) < len(listed):
        raise BoundError(f"two {says} of one number")


def check_counts(counts: Iterable[int], says: str) -> None:
    """Raise BoundError unless counts are from 0 on, and such as a machine can count."""
    if any(not 0 <= count < MOST_COUNTED for count in counts):
        raise BoundError(f"counts of {says} that no machine can have")


def check_size(rows: int, columns: int, file_bytes: int) -> None:
    """Raise BoundError where a table of 8-byte values takes far more memory than its file has bytes."""
    largest = max(ANY_TABLE_BYTES, LARGEST_RATIO * file_bytes)
    if not 0 <= rows * columns * 8 <= min(largest, LARGEST_BYTES):
        raise BoundError(f"{rows:,} rows of {columns:,} columns in {file_bytes:,} bytes")
