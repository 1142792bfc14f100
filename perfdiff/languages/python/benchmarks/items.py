"""Tests that pytest collects, and among them benchmarks of pytest-benchmark and pytest-codspeed.

A test that has the fixture `benchmark` is called as often as is asked for where it hands a function to that. The function of any other one
is called again with the same fixtures; where that fails, and where pytest alone can call it, the whole test is run again, with new ones.
pytest's parameters are those of the benchmark.
"""

from __future__ import annotations

import copy
import importlib.util
import inspect
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestItem
from _pytest.reports import CollectReport
from _pytest.runner import runtestprotocol

from .marks import Marks
from .reporting import Report, unlikely
from .scanning import benchmark_files
from .trials import LONG_TEST_S, Attempt, Label, described, identifiers, labels, own_s, point, took

# Options of plugins that a project may have: runs are alike, in one process and in the order of the files, nothing traces them, and nothing
# is left in the tree.
_PLAIN = {"xdist": "-n0", "pytest_cov": "--no-cov", "pytest_benchmark": "--benchmark-storage=file://{storage}"}
_FAILURES = (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)  # of pytest, not of a test
# Assertions are as Python has them: rewritten modules would be compiled in each run, and written into the tree.
_FIXED = ("-p", "no:cacheprovider", "-p", "no:randomly", "--assert=plain", "-q", "--color=no")
_ALL = ("--maxfail=0", "--continue-on-collection-errors")  # what fails stops no listing
_WITHOUT_OWN = ("-o", "addopts=", "-o", "required_plugins=")  # where the project's own options need plugins that are not there

# What pytest-cov takes, as its documentation tells: with a value, which may be left out, or alone.
_COVERAGE = ("--cov",), ("--cov-report", "--cov-config", "--cov-context", "--cov-fail-under", "--cov-precision")
_COVERAGE_FLAGS = ("--no-cov", "--no-cov-on-fail", "--cov-append", "--cov-branch", "--cov-reset")

Calling = Callable[[Any, Callable[[], object]], None]  # calls the function of a test as often as is wanted


class Repeating:
    """A plugin by which the functions of tests are called as `calling` says."""

    def __init__(self, calling: Calling) -> None:
        self._calling = calling

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self, session: Any) -> None:
        """Put fixtures over those that pytest-benchmark and pytest-codspeed have, which are there by now."""
        for plugin, fixtures in (("benchmark", _Fixtures), ("codspeed", _CodspeedFixtures)):
            if session.config.pluginmanager.hasplugin(plugin):
                session.config.pluginmanager.register(fixtures(self._calling))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: Any) -> Iterator[None]:
        """Call a test that hands nothing to a fixture, and nothing that other plugins have to run."""
        function = pyfuncitem.obj
        if type(pyfuncitem) is pytest.Function and not _has_fixture(pyfuncitem) and not inspect.iscoroutinefunction(function):
            pyfuncitem.obj = _repeated(function, lambda call: self._calling(pyfuncitem, call))
        yield
        pyfuncitem.obj = function


class _Fixtures:
    def __init__(self, calling: Calling) -> None:
        self._calling = calling

    @pytest.fixture
    def benchmark(self, benchmark: Any, request: Any) -> Any:
        """Have functions called as often as is asked for, in place of rounds that each run would choose for itself."""
        benchmark.disabled = True
        benchmark.__class__ = _counted(type(benchmark), lambda call: self._calling(request.node, call))
        return benchmark


class _CodspeedFixtures:
    def __init__(self, calling: Calling) -> None:
        self._calling = calling

    @pytest.fixture
    def codspeed_benchmark(self, codspeed_benchmark: Any, request: Any) -> Any:
        """Have functions called as often as is asked for; the plugin's `benchmark` is this fixture, whose class cannot be set."""
        counted = _counted(type(codspeed_benchmark), lambda call: self._calling(request.node, call))
        benchmark = counted.__new__(counted)
        benchmark.__dict__.update(codspeed_benchmark.__dict__)
        return benchmark


def _counted(kind: Any, calling: Callable[[Callable[[], object]], None]) -> Any:
    """Return the class of the fixture `benchmark` as a class that calls functions as `calling` says; the plugin asks for its own class."""

    class CountedBenchmark(kind):  # type: ignore[misc]
        def __call__(self, function: Callable[..., object], *arguments: Any, **named: Any) -> object:
            return super().__call__(_repeated(function, calling), *arguments, **named)

        def pedantic(
            self,
            target: Callable[..., object],
            args: Sequence[object] = (),
            kwargs: Mapping[str, object] | None = None,
            setup: Callable[[], Any] | None = None,
            teardown: Callable[..., object] | None = None,
            **_: object,
        ) -> object:
            """Call a function with arguments that are made anew each time where there is a `setup`."""

            def call() -> object:
                arguments, named = (setup() if setup else None) or (args, kwargs or {})
                result = target(*arguments, **named)
                if teardown:
                    teardown(*arguments, **named)
                return result

            return self(call)

    return CountedBenchmark


def _has_fixture(item: Any) -> bool:
    """Return whether a test hands what is to be measured to a fixture."""
    names, has_plugin = getattr(item, "fixturenames", ()), item.config.pluginmanager.hasplugin
    return ("benchmark" in names and (has_plugin("benchmark") or has_plugin("codspeed"))) or (
        "codspeed_benchmark" in names and has_plugin("codspeed")
    )


def _is_benchmark(item: Any) -> bool:
    """Return whether a test has a fixture for benchmarks, or is one as a whole, as pytest-codspeed's marker says."""
    markers = ("benchmark", "codspeed_benchmark") if item.config.pluginmanager.hasplugin("codspeed") else ()
    return _has_fixture(item) or any(item.get_closest_marker(marker) for marker in markers)


def _repeated(function: Callable[..., object], calling: Callable[[Callable[[], object]], None]) -> Callable[..., object]:
    """Return a function that calls another one as `calling` says, and returns what the last call did."""

    def repeated(*arguments: Any, **named: Any) -> object:
        results: list[object] = [None]

        def call() -> None:
            results[0] = function(*arguments, **named)

        calling(call)
        return results[0]

    return repeated


class _Unmeasured:
    """Takes the options of pytest-cov from a project's configuration where that is not installed: no run measures coverage."""

    def pytest_addoption(self, parser: Any) -> None:
        """Make the options known."""
        group = parser.getgroup("cov")
        for optional, names in zip(("?", None), _COVERAGE, strict=True):
            for name in names:
                group.addoption(name, action="append", nargs=optional, default=[])
        for name in _COVERAGE_FLAGS:
            group.addoption(name, action="store_true")


# Which of the tests that pytest collects are tried, by the word of the command line.
_SELECTIONS: Mapping[str, Callable[[Any], bool]] = {
    "all": lambda _: True,
    "tests": lambda item: not _is_benchmark(item),
    "benchmarks": _is_benchmark,
}


class _Trying:
    """Tries each test, and reports what comes of it."""

    def __init__(self, report: Report, arguments: str, selection: str) -> None:
        self._report = report
        self._arguments = arguments
        self._is_selected = _SELECTIONS[selection]
        self._names: dict[str, tuple[str, dict[str, Label]]] = {}
        self._call: tuple[float, bool] | None = None  # of the test's function, within the test that is running

    def call(self, item: Any, call: Callable[[], object]) -> None:
        """Time the calls of a test's function: a test's second one, as there may be thousands of tests."""
        self._call = took(call, self._report.trial_s, is_test=not _is_benchmark(item))

    @pytest.hookimpl(tryfirst=True)
    def pytest_make_collect_report(self, collector: Any) -> CollectReport | None:
        """Collect nothing of a file that made a process hang or crash."""
        if not isinstance(collector, pytest.File) or self._report.enter(collector.nodeid):
            return None
        return CollectReport(collector.nodeid, "passed", None, [])

    def pytest_collectreport(self, report: Any) -> None:
        """Tell which file cannot be imported."""
        if report.failed:
            self._report.fail(report.nodeid, _why(report))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> Iterator[None]:
        """Name the values of all tests before some of them are left out, and tell which remain."""
        self._names = named(items)
        yield
        items[:] = [item for item in items if isinstance(item, pytest.Function | DoctestItem) and self._is_selected(item)]
        items.sort(key=lambda item: unlikely(item.nodeid.partition("::")[0]))
        self._report.plan(map(self._shown, items))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> bool:
        """Run a test, and where that is short and its function was not called again, run it a second time."""
        self._report.start()
        if not self._report.begin(self._shown(item)):
            return True
        self._call = None
        failure, seconds = self._run(item)
        again = False
        if failure is None and self._call and self._call[1]:
            seconds, again = self._call
        elif failure is None and seconds < LONG_TEST_S:
            second_failure, second = self._run(item)
            again = second_failure is None
            seconds = min(seconds, second) if again else seconds
        with Attempt() as ending:
            _tear_down(item, nextitem)
        failure = failure or (f"its teardown fails: {ending.failure}" if ending.failure else None)
        if failure:
            self._report.fail(self._shown(item), failure)
        else:
            function, values = self._names[item.nodeid]
            benchmark = described(function, "pytest", self._arguments, function, places=list(values), is_test=True)
            self._report.point(benchmark, list(values.values()), seconds, again=again)
        return True

    def _run(self, item: Any) -> tuple[str | None, float]:
        """Run a test with all that it needs; return why it says nothing, None where it passes, and the seconds."""
        started = own_s()
        reports = runtestprotocol(item, log=False, nextitem=copy.copy(item))
        seconds = own_s() - started
        return next((_why(report) for report in reports if not report.passed), None), seconds

    def _shown(self, item: Any) -> str:
        function, values = self._names[item.nodeid]
        return point(function, values.keys(), values.values())


def _why(report: Any) -> str:
    """Return why a test, or a file of tests, says nothing: how it fails, or that it is skipped."""
    if report.skipped:
        longrepr = report.longrepr[2] if isinstance(report.longrepr, tuple) else "it is expected to fail"
        return f"is skipped: {longrepr.removeprefix('Skipped: ')}".partition("\n")[0]
    errors = (line[1:].strip() for line in report.longreprtext.splitlines() if line.startswith("E "))
    return next(errors, f"its {getattr(report, 'when', 'import')} fails")


class _RunningTests:
    """Runs the tests of some functions: one of them, its function so many times, or all of them once."""

    def __init__(self, functions: Collection[str], given: Mapping[str, str] | None, calls: int) -> None:
        self._functions = functions
        self._given = given
        self._calls = calls
        self._left = 0  # calls of the test that is running
        self._is_called_again = True  # with the same fixtures
        self.marks = Marks()

    def call(self, _: Any, call: Callable[[], object]) -> None:
        """Call the function of the test as often as is left, until it cannot be called again with the same fixtures."""
        call()
        self._left -= 1
        while self._left > 0 and self._is_called_again:
            with Attempt() as again:
                call()
            self._is_called_again = again.failure is None
            self._left -= self._is_called_again

    def pytest_configure(self, config: Any) -> None:
        """Collect the functions' own files alone, whatever the selection names."""
        config.args[:] = [str(config.rootpath / function) for function in self._functions]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave all other tests out."""
        names = named(items)
        items[:] = [item for item in items if self._is_wanted(*names[item.nodeid])]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        """Mark where the first test begins."""
        self.marks.start()

    def _is_wanted(self, function: str, values: Mapping[str, Label]) -> bool:
        written = {name: str(value) for name, value in values.items()}
        return function in self._functions and (self._given is None or written == self._given)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> bool:
        """Run a test until its calls are made, or it fails."""
        if self.marks.is_over:
            return True
        self._left, self._is_called_again, has_failed = self._calls, True, False
        while self._left > 0 and not has_failed:
            left = self._left
            for report in runtestprotocol(item, log=False, nextitem=copy.copy(item)):
                item.ihook.pytest_runtest_logreport(report=report)
                has_failed |= report.failed
            self._left = min(self._left, left - 1)
        with Attempt() as ending:
            _tear_down(item, nextitem)
        self.marks.end(_function(item), has_passed=not has_failed and ending.failure is None)
        if ending.failure and not self.marks.are_wanted:
            raise RuntimeError(ending.failure)
        return True


def _tear_down(item: Any, nextitem: Any) -> None:
    """End the fixtures that the next test does not share: a copy of a test stands for the next one while the test itself is run again."""
    has_two = pytest.__version__.startswith("6.")
    item.session._setupstate.teardown_exact(*((item, nextitem) if has_two else (nextitem,)))


def try_all(report: Report, arguments: str, selection: str = "all") -> None:
    """Try the tests that pytest selects by some arguments, or benchmarks alone, which lie in any file where nothing is named."""
    files = [] if arguments.strip() or selection != "benchmarks" else [str(file) for file in benchmark_files(Path())]
    if selection == "benchmarks" and not arguments.strip() and not files:
        return
    trying = _Trying(report, arguments, selection)
    code = _run_pytest([*shlex.split(arguments), *files, *_ALL], trying)
    if code == pytest.ExitCode.USAGE_ERROR:
        sys.stderr.write("the project's own options of pytest count here; '-o addopts=' in the selection leaves them out\n")
    if code in _FAILURES:
        sys.exit(code)


def run(arguments: str, function: str, given: Mapping[str, str], calls: int) -> int:
    """Run the test of a function whose parameters have values of these names; return pytest's exit code."""
    return _run_pytest(shlex.split(arguments), _RunningTests([function], given, calls))


def run_batch(arguments: str, calls: str, *functions: str) -> int:
    """Run all tests of some functions, each `calls` times; return pytest's exit code."""
    running = _RunningTests(functions, None, int(calls))
    if not running.marks.are_wanted:
        return _run_pytest(shlex.split(arguments), running)
    code = _run_pytest([*shlex.split(arguments), *_ALL], running)
    return 0 if code == pytest.ExitCode.TESTS_FAILED else code


def _run_pytest(arguments: Sequence[str], plugin: _Trying | _RunningTests) -> int:
    """Run pytest, without the project's own options where it refuses them; return its exit code."""
    os.dup2(2, 1)  # what pytest prints holds times, and would differ in each run
    code = int(pytest.ExitCode.USAGE_ERROR)
    with tempfile.TemporaryDirectory() as storage:
        own = [option.format(storage=storage) for name, option in _PLAIN.items() if importlib.util.find_spec(name)]
        for less in ((), _WITHOUT_OWN):
            others = [] if importlib.util.find_spec("pytest_cov") else [_Unmeasured()]
            if code == pytest.ExitCode.USAGE_ERROR:
                code = int(pytest.main([*arguments, *_FIXED, *own, *less], plugins=[plugin, Repeating(plugin.call), *others]))
    return code


def named(items: Iterable[Any]) -> dict[str, tuple[str, dict[str, Label]]]:
    """Return the function that each test belongs to, and the names of its parameters' values, by the test's own name."""
    tests: dict[str, list[Any]] = {}
    for item in items:
        tests.setdefault(_function(item), []).append(item)
    by_item = {}
    for function, own in tests.items():
        names = list(own[0].callspec.params) if hasattr(own[0], "callspec") else []
        columns = [_column([item.callspec.params[name] for item in own]) for name in names]
        for index, item in enumerate(own):
            values = [column[index] for column in columns]
            by_item[item.nodeid] = function, dict(zip(identifiers(names), values, strict=True))
    return by_item


def _column(values: Sequence[object]) -> list[Label]:
    """Return the names of values that a parameter has in tests; equal numbers and texts are one value, and so is the same object."""
    keys = [(type(value), value) if isinstance(value, int | float | str) else id(value) for value in values]
    distinct = dict(zip(keys, values, strict=True))
    names = dict(zip(distinct, labels(list(distinct.values())), strict=True))
    return [names[key] for key in keys]


def _function(item: Any) -> str:
    """Return the name of a test without its parameters."""
    name: str = item.nodeid
    return name.removesuffix(f"[{item.callspec.id}]") if hasattr(item, "callspec") else name
