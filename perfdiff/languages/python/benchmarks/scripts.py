"""Scripts of pyperf: run with a runner in the place of its own, which calls their benchmarks in the script's process.

What a runner does is written down in pyperf's documentation, "API". Where pyperf is not installed, a module of the same name has what
scripts use beside runners.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import platform
import runpy
import shlex
import subprocess
import sys
import textwrap
import time
import types
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from .reporting import Report
from .scanning import pyperf_scripts
from .trials import Attempt, described, took

_WITHIN = "::"  # between a script and its benchmark

_TIMEIT = """
def _perfdiff_calls(_perfdiff_number):
{setup}
    for _ in range(_perfdiff_number):
{stmt}
{teardown}
"""

Calls = Callable[[int], object]  # makes so many calls of a benchmark
Handling = Callable[[str, Calls], None]  # does what is to be done with a benchmark, by its name


class Runner:
    """Takes the place of `pyperf.Runner`: hands benchmarks to `handle`, and takes a script's own options with their defaults."""

    handle: ClassVar[Handling]

    def __init__(self, *_: object, **options: Any) -> None:
        self.metadata: dict[str, object] = dict(options.get("metadata") or {})
        self.argparser = argparse.ArgumentParser()
        self.args = argparse.Namespace()

    def parse_args(self, args: Sequence[str] | None = None) -> argparse.Namespace:
        """Return the values of the script's own options; raise RuntimeError where one has no default."""
        try:
            return self.argparser.parse_args([] if args is None else args, self.args)
        except SystemExit as end:
            raise RuntimeError("the script needs arguments") from end

    def bench_func(self, name: str, func: Callable[..., object], *args: object, **_: object) -> None:
        """Call a function."""

        def call(calls: int) -> None:
            for _ in range(calls):
                func(*args)

        self._hand(name, call)

    def bench_async_func(self, name: str, func: Callable[..., Any], *args: object, **options: Any) -> None:
        """Await a coroutine function, in one event loop."""

        async def awaited(calls: int) -> None:
            for _ in range(calls):
                await func(*args)

        def call(calls: int) -> None:
            loop = (options.get("loop_factory") or asyncio.new_event_loop)()
            try:
                asyncio.set_event_loop(loop)
                loop.run_until_complete(awaited(calls))
            finally:
                asyncio.set_event_loop(None)
                loop.close()

        self._hand(name, call)

    def bench_time_func(self, name: str, time_func: Callable[..., float], *args: object, **_: object) -> None:
        """Call a function that is told how often to do something."""
        self._hand(name, lambda calls: time_func(calls, *args))

    def timeit(self, name: str, stmt: Any = None, setup: Any = "pass", teardown: Any = "pass", **options: Any) -> None:
        """Execute a statement, or a function, between a setup and a teardown, as the module `timeit` does."""
        names = dict(options.get("globals") or {})
        parts = {"setup": setup, "stmt": name if stmt is None else stmt, "teardown": teardown}
        lines = {part: _statement(part, code, names) for part, code in parts.items()}
        exec(_TIMEIT.format(**lines), names)
        self._hand(name, names["_perfdiff_calls"])

    def bench_command(self, name: str, command: Sequence[str], **_: object) -> None:
        """Run a command."""

        def call(calls: int) -> None:
            for _ in range(calls):
                subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

        self._hand(name, call)

    def _hand(self, name: str, calls: Calls) -> None:
        self.parse_args()
        type(self).handle(name, calls)


def _statement(part: str, code: Any, names: dict[str, Any]) -> str:
    """Return the lines of a part, as they stand in `_TIMEIT`; a function is called by a name in `names`."""
    if callable(code):
        names[f"_perfdiff_{part}"] = code
        code = f"_perfdiff_{part}()"
    return textwrap.indent(code if isinstance(code, str) else "\n".join(code), "        " if part == "stmt" else "    ")


def _execute(script: str, handle: Handling) -> None:
    """Execute a script without arguments, whose benchmarks go to `handle`; raise RuntimeError where it ends in an error of its own."""
    try:
        module: Any = importlib.import_module("pyperf")
    except ImportError:
        module = types.ModuleType("pyperf")
        module.perf_counter = time.perf_counter
        module.python_implementation = lambda: platform.python_implementation().lower()
        module.python_has_jit = lambda: False
        sys.modules["pyperf"] = module
    module.Runner = type("Runner", (Runner,), {"handle": staticmethod(handle)})
    sys.argv[:] = [script]
    sys.path.insert(0, str(Path(script).resolve().parent))
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"the script exits with {end.code}") from end
    finally:
        del sys.path[0]


def try_all(report: Report, what: str) -> None:
    """Try the benchmarks of the scripts that are named, or of all."""
    for script in shlex.split(what) or map(str, pyperf_scripts(Path())):
        if report.enter(script):
            with Attempt() as attempt:
                _execute(script, partial(_try, report, script))
            if attempt.failure:
                report.fail(script, attempt.failure)


def _try(report: Report, script: str, name: str, calls: Calls) -> None:
    report.start()
    shown = f"{script}{_WITHIN}{name}"
    if not report.begin(shown):
        return
    with Attempt() as attempt:
        try:
            seconds, again = took(partial(calls, 1))
        except SystemExit as end:
            raise RuntimeError(f"it exits with {end.code}") from end
        report.point(described(shown, "pyperf", script, name), (), seconds, again=again)
    if attempt.failure:
        report.fail(shown, attempt.failure)


def run(script: str, name: str, _: Mapping[str, str], calls: int) -> int:
    """Run a script, and call one of its benchmarks `calls` times."""
    called: list[str] = []

    def handle(named: str, call: Calls) -> None:
        if named == name and not called:
            called.append(named)
            call(calls)

    _execute(script, handle)
    if not called:
        sys.stderr.write(f"{script} has no benchmark {name}\n")
    return 0 if called else 1
