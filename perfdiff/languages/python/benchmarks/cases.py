"""Test cases of `unittest`, which its own loader finds by the arguments of `python -m unittest`."""

from __future__ import annotations

import argparse
import copy
import re
import shlex
import sys
import unittest
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .marks import Marks
from .reporting import Report
from .trials import LONG_TEST_S, Attempt, described, own_s

_STANDING_IN = re.compile(r"unittest\.loader\.\w+\.")  # names of tests in place of modules that cannot be imported


class _Loaded:
    """In place of a runner: keeps the tests that the loader found."""

    def __init__(self) -> None:
        self.tests: list[Any] = []

    def run(self, suite: Any) -> unittest.TestResult:
        """Keep the tests of a suite."""
        self.tests.extend(_flat(suite))
        return unittest.TestResult()


def _flat(suite: Any) -> Iterator[Any]:
    for test in suite:
        yield from _flat(test) if isinstance(test, unittest.TestSuite) else (test,)


class _Outcome(unittest.TestResult):
    """Keeps why a test says nothing, and what it took."""

    def __init__(self) -> None:
        super().__init__()
        self.whys: dict[str, str] = {}
        self.seconds: dict[str, float] = {}
        self._started = 0.0

    def startTest(self, test: Any) -> None:  # noqa: N802 (its name is unittest's)
        """Look at the clock."""
        super().startTest(test)
        self._started = own_s()

    def stopTest(self, test: Any) -> None:  # noqa: N802
        """Look at the clock."""
        self.seconds[test.id()] = own_s() - self._started
        super().stopTest(test)

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        """Keep what was raised."""
        super().addError(test, err)
        self._keep(test, err)

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        """Keep what was raised."""
        super().addFailure(test, err)
        self._keep(test, err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        """Keep what was raised."""
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._keep(test, err)

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802
        """Keep the reason."""
        super().addSkip(test, reason)
        self.whys.setdefault(test.id(), f"is skipped: {reason}".partition("\n")[0])

    def addExpectedFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        """Keep that it fails, as it should."""
        super().addExpectedFailure(test, err)
        self.whys.setdefault(test.id(), "it is expected to fail")

    def _keep(self, test: Any, err: Any) -> None:
        self.whys.setdefault(test.id(), f"{err[0].__name__}: {err[1]}".partition("\n")[0])


class _Repeated(unittest.TestSuite):
    """Runs each test, and a short one that passes a second time, and reports what comes of it."""

    _cleanup = False  # unittest's: whether it forgets tests that have run

    def __init__(self, tests: Sequence[Any], outcome: _Outcome, report: Report, arguments: str) -> None:
        super().__init__(tests)
        self._outcome = outcome
        self._report = report
        self._arguments = arguments

    def __iter__(self) -> Iterator[Any]:
        tests: Iterator[Any] = super().__iter__()
        for test in tests:
            if not self._report.begin(_name(test)):
                continue
            again_test = copy.copy(test)  # some can be run only once
            yield test
            first, why = self._outcome.seconds.pop(test.id(), None), self._outcome.whys.get(test.id())
            if first is None:
                self._report.fail(_name(test), why or "what comes before its class or module fails")
            elif why:
                self._report.fail(_name(test), why)
            else:
                if first < LONG_TEST_S:
                    yield again_test
                again = first < LONG_TEST_S and test.id() not in self._outcome.whys
                seconds = self._outcome.seconds.get(test.id(), first) if again else first
                benchmark = described(_name(test), "unittest", self._arguments, test.id(), is_test=True)
                self._report.point(benchmark, (), seconds, again=again)


class _Marked(unittest.TestSuite):
    """Runs each test, and marks where it ends, and where what its class or module has for all its tests is put away."""

    def __init__(self, tests: Sequence[Any], outcome: _Outcome, marks: Marks) -> None:
        super().__init__(tests)
        self._outcome = outcome
        self._marks = marks
        self._last = ""

    def __iter__(self) -> Iterator[Any]:
        tests: Iterator[Any] = super().__iter__()
        for test in tests:
            if self._marks.is_over:
                return
            yield test
            self._last = _name(test)
            has_run = test.id() in self._outcome.seconds
            self._marks.end(self._last, has_passed=has_run and test.id() not in self._outcome.whys)

    def _tearDownPreviousClass(self, test: Any, result: Any) -> None:  # noqa: N802 (its name is unittest's)
        super()._tearDownPreviousClass(test, result)  # type: ignore[misc]
        if self._last and result._previousTestClass is not test.__class__:
            self._marks.after(self._last)

    def _handleModuleTearDown(self, result: Any) -> None:  # noqa: N802
        super()._handleModuleTearDown(result)  # type: ignore[misc]
        if self._last:
            self._marks.after(self._last)


def _name(test: Any) -> str:
    return _STANDING_IN.sub("", test.id())


class _Loader(unittest.TestLoader):
    """Leaves out the modules in which a process hung or crashed."""

    def __init__(self, report: Report | None) -> None:
        super().__init__()
        self._report = report

    def _get_module_from_name(self, name: str) -> Any:
        if self._report and not self._report.enter(name):
            raise unittest.SkipTest("hangs or crashes")
        __import__(name)
        return sys.modules[name]


def _load(words: Sequence[str], report: Report | None = None) -> list[Any]:
    """Return the tests that `python -m unittest` finds by some arguments; the report is told which modules are imported."""
    loaded, loader = _Loaded(), _Loader(report)
    sys.path.insert(0, str(Path.cwd()))
    unittest.main(module=None, argv=["python -m unittest", *words], testRunner=loaded, testLoader=loader, exit=False)
    return loaded.tests


def try_all(report: Report, arguments: str) -> None:
    """Try the tests that `python -m unittest` finds by some arguments."""
    tests = _load(shlex.split(arguments), report)
    report.start()
    report.plan(map(_name, tests))
    outcome = _Outcome()
    _Repeated(tests, outcome, report, arguments).run(outcome)
    for name, why in outcome.whys.items():
        if name.startswith(("setUpClass", "setUpModule", "tearDownClass", "tearDownModule")):
            report.fail(name, why)


def _chosen(arguments: str, names: Sequence[str]) -> list[Any]:
    """Return some tests by their names, which the loader takes where it is led to the folder that discovery starts from."""
    _lead(shlex.split(arguments))
    tests: list[Any] = []
    with Attempt():  # the name of a doctest is that of what it is the documentation of, which the loader would call
        tests = list(_flat(unittest.defaultTestLoader.loadTestsFromNames(names)))
    if [test.id() for test in tests] == list(names):
        return tests
    wanted = set(names)
    return [test for test in _load(shlex.split(arguments)) if test.id() in wanted]


def _lead(words: Sequence[str]) -> None:
    """Have modules found as discovery finds them."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("-s", "--start-directory", default=".")
    parser.add_argument("-t", "--top-level-directory")
    folders, rest = parser.parse_known_args([word for word in words if word != "discover"])
    sys.path.insert(0, str(Path.cwd()))
    if "discover" in words:
        places = [word for word in rest if not word.startswith("-")]
        start = places[0] if places and folders.start_directory == "." else folders.start_directory
        sys.path.insert(0, str(Path(folders.top_level_directory or start).resolve()))


def run(arguments: str, name: str, _: Mapping[str, str], calls: int) -> int:
    """Run a test `calls` times; return 1 if it fails."""
    return _run([copy.copy(test) for test in _chosen(arguments, [name]) for _ in range(calls)], calls)


def run_batch(arguments: str, calls: str, *names: str) -> int:
    """Run each of some tests `calls` times; return 1 if one of them fails."""
    tests = [copy.copy(test) for test in _chosen(arguments, names) for _ in range(int(calls))]
    marks = Marks()
    if not marks.are_wanted:
        return _run(tests, len(names) * int(calls))
    outcome = _Outcome()
    marks.start()
    _Marked(tests, outcome, marks).run(outcome)
    return 0


def _run(tests: Sequence[Any], number: int) -> int:
    outcome = _Outcome()
    unittest.TestSuite(tests).run(outcome)
    for name, why in outcome.whys.items():
        sys.stderr.write(f"{name}: {why}\n")
    return 0 if outcome.wasSuccessful() and len(tests) == number else 1
