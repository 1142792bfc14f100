"""Tests that pytest collects, and among them benchmarks of pytest-benchmark.

A test that has the fixture `benchmark` is called as often as is asked for where it hands a function to that; any other one is called again
with the same fixtures. pytest's parameters are those of the benchmark.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from .trials import Label, command, identifiers, labels, listed, point, took

# Options of plugins that a project may have: runs are alike, in one process and in the order of the files, and nothing traces them.
_PLAIN = {"xdist": "-n0", "pytest_cov": "--no-cov"}
_FAILURES = (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)  # of pytest, not of a test
# Assertions are as Python has them: rewritten modules would be compiled in each run, and written into the tree.
_FIXED = ("-p", "no:cacheprovider", "-p", "no:randomly", "--assert=plain", "-q")

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
        """Put a fixture over the one that pytest-benchmark has, which is there by now."""
        if session.config.pluginmanager.hasplugin("benchmark"):
            session.config.pluginmanager.register(_Fixtures(self._calling))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: Any) -> Iterator[None]:
        """Call a test that is no benchmark of pytest-benchmark, and nothing that other plugins have to run."""
        if type(pyfuncitem) is pytest.Function and not _is_benchmark(pyfuncitem) and not inspect.iscoroutinefunction(pyfuncitem.obj):
            pyfuncitem.obj = _repeated(pyfuncitem.obj, lambda call: self._calling(pyfuncitem, call))
        yield


class _Fixtures:
    def __init__(self, calling: Calling) -> None:
        self._calling = calling

    @pytest.fixture
    def benchmark(self, benchmark: Any, request: Any) -> Any:
        """Have functions called as often as is asked for, in place of rounds that each run would choose for itself."""
        benchmark.disabled = True
        benchmark.__class__ = _counted(type(benchmark), lambda call: self._calling(request.node, call))
        return benchmark


def _counted(kind: Any, calling: Callable[[Callable[[], object]], None]) -> Any:
    """Return the class of the fixture `benchmark` as a class that calls functions as `calling` says; the plugin asks for its own class."""

    class Counted(kind):  # type: ignore[misc]
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

    return Counted


def _is_benchmark(item: Any) -> bool:
    return "benchmark" in item.fixturenames and item.config.pluginmanager.hasplugin("benchmark")


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


class _Listing:
    """Tries each test, and keeps what there is to tell of it."""

    def __init__(self) -> None:
        self.names: dict[str, tuple[str, dict[str, Label]]] = {}
        self.seconds: dict[str, tuple[float, bool]] = {}
        self.failures: dict[str, str] = {}
        self.start_s = 0.0
        self._skipped: set[str] = set()

    def call(self, item: Any, call: Callable[[], object]) -> None:
        """Time the calls of a test's function."""
        self.seconds[item.nodeid] = took(call)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Name the values of all tests, before some of them are left out."""
        self.names = named(items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        """Keep how long all took until the first test began."""
        self.start_s = time.process_time()

    def pytest_collectreport(self, report: Any) -> None:
        """Keep which file cannot be imported."""
        if report.failed:
            self.pytest_runtest_logreport(report)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep which test failed, and how long one took whose function is called in other ways."""
        if report.failed:
            errors = (line[1:].strip() for line in report.longreprtext.splitlines() if line.startswith("E "))
            self.failures[report.nodeid] = next(errors, f"its {report.when} fails")
        elif report.skipped:
            self._skipped.add(report.nodeid)
        elif report.when == "call":
            self.seconds.setdefault(report.nodeid, (report.duration, False))

    def benchmarks(self, arguments: str) -> Iterator[dict[str, object]]:
        """Yield what is told of each function that has tests which pass."""
        passed: dict[str, list[str]] = {}
        for test in self.seconds.keys() - self.failures.keys() - self._skipped:
            passed.setdefault(self.names[test][0], []).append(test)
        ordered = list(self.names)
        for function, tests in sorted(passed.items(), key=lambda each: min(map(ordered.index, each[1]))):
            tests.sort(key=ordered.index)
            own = [self.names[test][1] for test in tests]
            parameters = {name: list(dict.fromkeys(values[name] for values in own)) for name in own[0]}
            points = [[list(self.names[test][1].values()), *self.seconds[test]] for test in tests]
            yield listed(function, command("run", "pytest", arguments, function, places=list(parameters)), parameters, points)


class _One:
    """Runs one test, its function so many times."""

    def __init__(self, function: str, given: Mapping[str, str], calls: int) -> None:
        self._function = function
        self._given = dict(given)
        self._calls = calls

    def call(self, _: Any, call: Callable[[], object]) -> None:
        """Call the function of the test."""
        for _ in range(self._calls):
            call()

    def pytest_configure(self, config: Any) -> None:
        """Collect the function's own file alone, whatever the selection names."""
        config.args[:] = [str(config.rootpath / self._function)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave all tests out but the one."""
        names = named(items)
        wanted = (self._function, self._given)
        items[:] = [item for item in items if (names[item.nodeid][0], _written(names[item.nodeid][1])) == wanted]


def list_selection(arguments: str) -> dict[str, object]:
    """Return what there is to tell of the tests that pytest selects by some arguments."""
    listing = _Listing()
    code = _run_pytest(arguments, listing)
    if code == pytest.ExitCode.USAGE_ERROR:
        sys.stderr.write("the project's own options of pytest count here; '-o addopts=' in the selection leaves them out\n")
    if code in _FAILURES:
        sys.exit(code)
    failures = {point(*_called(test, listing.names)): failure for test, failure in listing.failures.items()}
    return {"benchmarks": list(listing.benchmarks(arguments)), "failures": failures, "start_s": listing.start_s}


def run(arguments: str, function: str, given: Mapping[str, str], calls: int) -> int:
    """Run the test of a function whose parameters have values of these names; return pytest's exit code."""
    return _run_pytest(arguments, _One(function, given, calls))


def _run_pytest(arguments: str, plugin: _Listing | _One) -> int:
    os.dup2(2, 1)  # what pytest prints holds times, and would differ in each run
    own = [option for name, option in _PLAIN.items() if importlib.util.find_spec(name)]
    others = [] if importlib.util.find_spec("pytest_cov") else [_Unmeasured()]
    return int(pytest.main([*shlex.split(arguments), *_FIXED, *own], plugins=[plugin, Repeating(plugin.call), *others]))


def named(items: Iterable[Any]) -> dict[str, tuple[str, dict[str, Label]]]:
    """Return the function that each test belongs to, and the names of its parameters' values, by the test's own name."""
    tests: dict[str, list[Any]] = {}
    for item in items:
        tests.setdefault(_function(item), []).append(item)
    found = {}
    for function, own in tests.items():
        names = list(own[0].callspec.params) if hasattr(own[0], "callspec") else []
        columns = [_column([item.callspec.params[name] for item in own]) for name in names]
        for index, item in enumerate(own):
            values = [column[index] for column in columns]
            found[item.nodeid] = function, dict(zip(identifiers(names), values, strict=True))
    return found


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


def _written(values: Mapping[str, Label]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items()}


def _called(test: str, names: Mapping[str, tuple[str, Mapping[str, Label]]]) -> tuple[str, Iterable[str], Iterable[Label]]:
    """Return a test's function with its parameters and their values; what failed before there were tests goes by its file."""
    function, values = names.get(test, (test, {}))
    return function, values.keys(), values.values()
