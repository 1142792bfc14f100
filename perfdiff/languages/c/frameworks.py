"""Frameworks of benchmarks and tests in C and C++, whose programs a built tree has."""

from __future__ import annotations

from perfdiff.languages.c.suites.fuzz import FuzzTargets
from perfdiff.languages.frameworks import Framework

FRAMEWORKS: tuple[Framework, ...] = (FuzzTargets(),)
