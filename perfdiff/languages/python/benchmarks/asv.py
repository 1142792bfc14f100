"""Suites of asv: found and run as asv does it, without asv.

What follows of a suite's rules is written down in its documentation, "Writing benchmarks" and "Benchmark types and attributes".
"""

from __future__ import annotations

import importlib
import itertools
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .reporting import Report
from .trials import Attempt, Label, command, described, identifiers, labels, point, took

_SKIPPED = "NotImplementedError"  # what a setup raises where a benchmark does not exist at some values
_CACHE = ".perfdiff-setup-cache"  # what the `setup_cache` of a benchmark returned, in the project's folder

_TIMED = re.compile(r"Time[A-Z_].+|time_.+")
_UNTIMED = re.compile(r"(?:Timeraw|Track|Mem|PeakMem)[A-Z_].+|(?:timeraw|track|mem|peakmem)_.+")


class AsvBenchmark:
    """A benchmark as asv finds it: a function, or a method of an instance, with what stands around it."""

    def __init__(self, module: Any, path: str) -> None:
        owner, _, name = path.rpartition(".")
        self.instance = getattr(module, owner)() if owner else None
        self.function = getattr(module if self.instance is None else self.instance, name)
        self.path = path
        self.module = module
        self.sources = [source for source in (self.function, self.instance, module) if source is not None]

    @property
    def name(self) -> str:
        """Return the name by which its users know it."""
        inside = self.module.__name__.partition(".")[2]
        return str(getattr(self.function, "benchmark_name", f"{inside}.{self.path}" if inside else self.path))

    def first(self, name: str, default: Any = None) -> Any:
        """Return an attribute of the nearest of what stands around the benchmark."""
        return next((value for source in self.sources if (value := getattr(source, name, None)) is not None), default)

    @property
    def parameters(self) -> dict[str, list[Any]]:
        """Return the values of its parameters, by name."""
        given, names = self.first("params", ()), list(self.first("param_names", ()))
        if isinstance(given, Mapping):
            names, given = list(given), given.values()
        lists = list(given)
        if lists and not isinstance(lists[0], tuple | list):
            lists = [lists]
        names += [f"param{number}" for number in range(len(names) + 1, len(lists) + 1)]
        return dict(zip(identifiers(names), map(list, lists), strict=False))

    def points(self) -> Iterator[tuple[Mapping[str, Sequence[Label]], tuple[Label, ...], tuple[object, ...]]]:
        """Yield the names of all values by parameter, and the names and values of each point that is not to be skipped."""
        parameters, skipped = self.parameters, [tuple(values) for values in self.first("skip_params", ())]
        shown = {name: labels(values) for name, values in parameters.items()}
        for names, values in zip(itertools.product(*shown.values()), itertools.product(*parameters.values()), strict=True):
            if values not in skipped:
                yield shown, names, values

    @property
    def setup_cache(self) -> Callable[[], object] | None:
        """Return what makes something once that all benchmarks of its class or module are given."""
        setup: Callable[[], object] | None = self.first("setup_cache")
        return setup

    def run(self, values: Sequence[object], calls: int) -> None:
        """Call the benchmark `calls` times between its setup and teardown, which are repeated as often as it says."""
        for number in self._portions(values, calls):
            for _ in range(number):
                self.function(*values)

    def trial(self, values: Sequence[object], trial_s: float) -> tuple[float, bool]:
        """Return the seconds of a call, and whether it can be made again."""
        if self.first("number", 0) > 0:
            return took(lambda: self.run(values, 1), trial_s)
        for _ in self._portions(values, 1):
            outcome = took(lambda: self.function(*values), trial_s)
        return outcome

    def _portions(self, values: Sequence[object], calls: int) -> Iterator[int]:
        setups, teardowns = ([getattr(source, name) for source in self.sources if hasattr(source, name)] for name in ("setup", "teardown"))
        portion = self.first("number", 0) or calls
        for done in range(0, calls, portion):
            for setup in reversed(setups):
                setup(*values)
            yield min(portion, calls - done)
            for teardown in teardowns:
                teardown(*values)


def suite_package(folder: str) -> str:
    """Return the name of the package in a folder of benchmarks, which can be imported from now on."""
    root = Path(folder).resolve()
    sys.path.insert(0, str(root.parent))
    return root.name


def try_all(report: Report, folder: str, pattern: str, *variables: str) -> None:
    """Try the benchmarks of a suite that take time, and whose names match a regular expression.

    They run with the values that `variables` have now.
    """
    before = "".join(f"{name}={shlex.quote(os.environ[name])} " for name in variables)
    chosen: list[AsvBenchmark] = []
    for module in modules(suite_package(folder), report):
        for path, is_timed in benchmarks(module):
            with Attempt() as attempt:
                benchmark = AsvBenchmark(module, path)
                if re.search(pattern, benchmark.name):
                    chosen += [benchmark] if is_timed else []
                    if not is_timed:
                        report.fail(benchmark.name, "is no benchmark whose calls are timed")
            if attempt.failure:
                report.fail(f"{module.__name__}.{path}", attempt.failure)
    report.start()
    points = [(benchmark, shown, values) for benchmark in chosen for shown, values, _ in benchmark.points()]
    report.plan(point(benchmark.name, shown, values) for benchmark, shown, values in points)
    caches: dict[object, object] = {}
    for benchmark in chosen:
        _try(report, benchmark, folder, before, caches)


def modules(name: str, report: Report) -> Iterator[Any]:
    """Import a package and all that is in it, and report what cannot be imported."""
    import pkgutil

    if not report.enter(name):
        return
    with Attempt() as attempt:
        module = importlib.import_module(name)
    if attempt.failure:
        report.fail(name, attempt.failure)
        return
    yield module
    for _, inner, _ in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{name}."):
        yield from modules(inner, report)


def benchmarks(module: Any) -> Iterator[tuple[str, bool]]:
    """Yield the functions of a module, and the methods of its classes, that are benchmarks, and whether their calls are timed."""
    import inspect

    for name, value in list(vars(module).items()):
        if name.startswith("_"):
            continue
        if inspect.isclass(value) and not inspect.isabstract(value):
            functions = [(f"{name}.{inner}", inner, function) for inner, function in inspect.getmembers(value, inspect.isfunction)]
        else:
            functions = [(name, name, value)] if inspect.isfunction(value) else []
        for path, inner, function in functions:
            known_as = getattr(function, "benchmark_name", inner).rpartition(".")[2]
            is_timed = _TIMED.match(known_as) is not None
            if (is_timed or _UNTIMED.match(known_as)) and not getattr(function, "skip_benchmark", False):
                yield path, is_timed


def _try(report: Report, benchmark: AsvBenchmark, folder: str, before: str, caches: dict[object, Any]) -> None:
    """Try a benchmark at its points, whose commands stand behind `before`; `caches` are those made so far, by what made them."""
    inside = benchmark.module.__name__.partition(".")[2]
    what = (folder, f"{inside}:{benchmark.path}")
    setup = f"{before}{command('cache', 'asv', *what)}" if benchmark.setup_cache else ""
    description = described(benchmark.name, "asv", *what, places=list(benchmark.parameters), setup=setup)
    description["command"] = f"{before}{description['command']}"
    for shown, names, values in benchmark.points():
        name = point(benchmark.name, shown, names)
        if not report.begin(name):
            continue
        with Attempt() as attempt:
            cached = [_cached(report, benchmark, caches)] if benchmark.setup_cache else []
            seconds, again = benchmark.trial([*cached, *values], report.trial_s)
            report.point(description, names, seconds, again=again)
        if attempt.failure and not attempt.failure.startswith(_SKIPPED):
            report.fail(name, attempt.failure)


def _cached(report: Report, benchmark: AsvBenchmark, caches: dict[object, Any]) -> object:
    """Return what the `setup_cache` of a benchmark makes, which is called once for all that share it, even where it fails."""
    make = benchmark.setup_cache
    assert make is not None, "is asked only where there is one"
    maker = getattr(make, "__func__", make)
    if maker not in caches:
        caches[maker] = None, "its setup_cache hangs"
        if report.enter(f"{maker.__module__}.{maker.__qualname__}"):
            with Attempt() as attempt:
                content = make()
            caches[maker] = (None, f"its setup_cache fails: {attempt.failure}") if attempt.failure else (content, None)
    content, failure = caches[maker]
    if failure:
        raise RuntimeError(failure)
    return content


def _benchmark(folder: str, name: str) -> AsvBenchmark:
    package = suite_package(folder)
    inside, _, path = name.partition(":")
    return AsvBenchmark(importlib.import_module(f"{package}.{inside}" if inside else package), path)


def keep_cache(folder: str, name: str) -> int:
    """Keep what the `setup_cache` of a benchmark returns for its runs."""
    import pickle

    setup = _benchmark(folder, name).setup_cache
    Path(_CACHE).write_bytes(pickle.dumps(setup() if setup else None, protocol=pickle.HIGHEST_PROTOCOL))
    return 0


def run(folder: str, name: str, given: Mapping[str, str], calls: int) -> int:
    """Run a benchmark at the values of its parameters that are given by their names."""
    benchmark = _benchmark(folder, name)
    values = [
        values[list(map(str, labels(values))).index(text)]
        for text, values in zip(given.values(), benchmark.parameters.values(), strict=True)
    ]
    if benchmark.setup_cache:
        import pickle

        values.insert(0, pickle.loads(Path(_CACHE).read_bytes()))
    benchmark.run(values, calls)
    return 0
