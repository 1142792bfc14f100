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
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .trials import Attempt, command, identifiers, labels, listed, point, took

_SKIPPED = "NotImplementedError"  # what a setup raises where a benchmark does not exist at some values
_CACHE = ".perfdiff-setup-cache"  # what the `setup_cache` of a benchmark returned, in the project's folder

_TIMED = re.compile(r"Time[A-Z_].+|time_.+")


class Benchmark:
    """A benchmark as asv finds it: a function, or a method of an instance, with what stands around it."""

    def __init__(self, module: Any, path: str) -> None:
        owner, _, name = path.rpartition(".")
        self.instance = getattr(module, owner)() if owner else None
        self.function = getattr(module if self.instance is None else self.instance, name)
        self.path = path
        self.module = module
        self.sources = [each for each in (self.function, self.instance, module) if each is not None]

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

    @property
    def setup_cache(self) -> Callable[[], object] | None:
        """Return what makes something once that all benchmarks of its class or module are given."""
        found: Callable[[], object] | None = self.first("setup_cache")
        return found

    def run(self, values: Sequence[object], calls: int) -> None:
        """Call it so many times between its setups and teardowns, which are made again where it says after how many calls."""
        for number in self._portions(values, calls):
            for _ in range(number):
                self.function(*values)

    def trial(self, values: Sequence[object]) -> tuple[float, bool]:
        """Return the seconds of a call, and whether it can be made again."""
        if self.first("number", 0) > 0:
            return took(lambda: self.run(values, 1))
        for _ in self._portions(values, 1):
            found = took(lambda: self.function(*values))
        return found

    def _portions(self, values: Sequence[object], calls: int) -> Iterator[int]:
        setups, teardowns = ([getattr(each, name) for each in self.sources if hasattr(each, name)] for name in ("setup", "teardown"))
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


def list_suite(folder: str, pattern: str, *variables: str) -> dict[str, object]:
    """Return what there is to tell of the benchmarks of a suite that take time, and whose names match a regular expression.

    They run with the values that `variables` have now.
    """
    given = "".join(f"{name}={shlex.quote(os.environ[name])} " for name in variables)
    benchmarks: list[dict[str, object]] = []
    failures: dict[str, str] = {}
    caches: dict[object, object] = {}
    found = [(module, path) for module in modules(suite_package(folder), failures) for path in timed(module)]
    start_s = time.process_time()
    for module, path in found:
        with Attempt() as attempt:
            benchmark = Benchmark(module, path)
            if re.search(pattern, benchmark.name):
                benchmarks.extend(_listed(benchmark, folder, given, caches, failures))
        if attempt.failure:
            failures[f"{module.__name__}.{path}"] = attempt.failure
    return {"benchmarks": benchmarks, "failures": failures, "start_s": start_s}


def modules(name: str, failures: dict[str, str]) -> Iterator[Any]:
    """Import a package and all that is in it; what cannot be imported goes to `failures`."""
    import pkgutil

    with Attempt() as attempt:
        module = importlib.import_module(name)
    if attempt.failure:
        failures[name] = attempt.failure
        return
    yield module
    for _, inner, _ in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{name}."):
        yield from modules(inner, failures)


def timed(module: Any) -> Iterator[str]:
    """Yield the functions of a module, and the methods of its classes, that are benchmarks of time."""
    import inspect

    for name, value in list(vars(module).items()):
        if name.startswith("_"):
            continue
        if inspect.isclass(value) and not inspect.isabstract(value):
            for inner, function in inspect.getmembers(value, inspect.isfunction):
                if _is_timed(inner, function):
                    yield f"{name}.{inner}"
        elif inspect.isfunction(value) and _is_timed(name, value):
            yield name


def _is_timed(name: str, function: Any) -> bool:
    named = getattr(function, "benchmark_name", name).rpartition(".")[2]
    return _TIMED.match(named) is not None and not getattr(function, "skip_benchmark", False)


def _listed(
    benchmark: Benchmark, folder: str, variables: str, caches: dict[object, object], failures: dict[str, str]
) -> Iterator[dict[str, object]]:
    """Yield what is told of a benchmark that runs at some point at least; `caches` are those made so far, by what made them.

    Commands set `variables`, which are written as a shell has them.
    """
    parameters, cached = benchmark.parameters, []
    shown = {name: labels(values) for name, values in parameters.items()}
    if benchmark.setup_cache:
        made_by = getattr(benchmark.setup_cache, "__func__", benchmark.setup_cache)
        cached = [caches[made_by] if made_by in caches else caches.setdefault(made_by, benchmark.setup_cache())]
    points = []
    for values, chosen in zip(itertools.product(*shown.values()), itertools.product(*parameters.values()), strict=True):
        with Attempt() as attempt:
            points.append([values, *benchmark.trial([*cached, *chosen])])
        if attempt.failure and not attempt.failure.startswith(_SKIPPED):
            failures[point(benchmark.name, shown, values)] = attempt.failure
    inside = benchmark.module.__name__.partition(".")[2]
    what = (folder, f"{inside}:{benchmark.path}")
    setup = f"{variables}{command('cache', 'asv', *what)}" if cached else ""
    if points:
        yield listed(benchmark.name, f"{variables}{command('run', 'asv', *what, places=list(shown))}", shown, points, setup)


def _benchmark(folder: str, name: str) -> Benchmark:
    package = suite_package(folder)
    inside, _, path = name.partition(":")
    return Benchmark(importlib.import_module(f"{package}.{inside}" if inside else package), path)


def keep_cache(folder: str, name: str) -> int:
    """Keep what the `setup_cache` of a benchmark returns for its runs."""
    import pickle

    made = _benchmark(folder, name).setup_cache
    Path(_CACHE).write_bytes(pickle.dumps(made() if made else None, protocol=pickle.HIGHEST_PROTOCOL))
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
