"""Files of tests: which files of a project are told apart as its tests, and lists in which these stand behind its sources."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

# Folders in which projects of all languages keep tests (`tests`, `src/test`, `unit-tests`, Gradle's `integrationTest`), and names that
# runners of tests look for (`test_*.py`, `*_test.cc`, `test-*.c`, `tests.py`, `*Test.java`, `*Test.php`).
_FOLDER = r"(?:[^/]*[-_.])?(?:[Tt]ests?|testing|[Tt]estsuites?|[Uu]nit[Tt]ests?|specs?)|[^/]*[a-z0-9]Tests?"
_NAME = r"test[-_][^/]*|(?:[^/]*[-_.])?tests?\.\w+|[^/]*(?:Tests?|TestCase)\.\w+|conftest\.py"
_OF_TESTS = re.compile(rf"(?:.*/)?(?:(?:{_FOLDER})/.*|{_NAME})")


def is_of_tests(file: str) -> bool:
    """Return whether a file belongs to a project's tests, by its name: a benchmark hardly ever runs these."""
    return _OF_TESTS.fullmatch(file) is not None


def sources_first(items: Iterable[T], file: Callable[[T], str]) -> list[T]:
    """Return items in their order, but those whose `file` is of tests behind all others."""
    return sorted(items, key=lambda item: is_of_tests(file(item)))
