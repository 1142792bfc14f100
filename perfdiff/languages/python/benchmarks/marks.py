"""Marks in what probes count, by which one run tells what each of its tests calls: where a test ends, the probes' runtime writes that down.

A run is asked for them by the variable `PERFDIFF_MARKS`. Then a test that fails is told by its mark alone, and ends no run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

WANTED, LIMIT_S = "PERFDIFF_MARKS", "PERFDIFF_MARKS_S"
_EXTENSION = "PERFDIFF_EXTENSION"  # the module by which functions are probed, over the runtime


class Marks:
    """The marks of a run: none where nobody asks for them, or no probes are there."""

    def __init__(self) -> None:
        self._mark = _runtime()
        self._ends = time.monotonic() + float(os.environ.get(LIMIT_S, "inf"))

    @property
    def are_wanted(self) -> bool:
        """Return whether tests are to be told apart."""
        return self._mark is not None

    @property
    def is_over(self) -> bool:
        """Return whether there is no time for one more test."""
        return self.are_wanted and time.monotonic() >= self._ends

    def start(self) -> None:
        """Tell that all before the first test was done: what is called until then is no test's."""
        self._write("start")

    def end(self, name: str, *, has_passed: bool) -> None:
        """Tell that a test ended."""
        self._write(f"{'passed' if has_passed else 'failed'} {name}")

    def after(self, name: str) -> None:
        """Tell that what several tests share was put away behind a test, the last one of them."""
        self._write(f"after {name}")

    def _write(self, text: str) -> None:
        if self._mark is not None:
            self._mark(text.encode(errors="replace"))


def _runtime() -> Callable[[bytes], object] | None:
    """Return the function of the probes' runtime that writes a mark, None where it is not asked for, or not there."""
    if WANTED not in os.environ or _EXTENSION not in os.environ:
        return None
    try:
        import ctypes

        mark: Callable[[bytes], object] = ctypes.CDLL(os.environ[_EXTENSION]).pd_mark
    except (ImportError, OSError, AttributeError):
        return None
    return mark
