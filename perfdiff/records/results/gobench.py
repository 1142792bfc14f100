"""Results of Go's benchmarks as text: `go test -bench . -count=N`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from perfdiff.records.results.series import BenchmarkSeries, ToolResults, Value, parameter, positional, times

TOOL = "Go"
_LINE = re.compile(r"^(Benchmark\S*)\s+\d{1,18}\s+([\d.]{1,40}(?:e[+-]?\d{1,3})?) ns/op(?=\s|$)", re.MULTILINE)
_PROCESSORS = re.compile(r"-(\d{1,5})$")
_SETTING = re.compile(r"^(goos|goarch|cpu|pkg): (.+)$", re.MULTILINE)
_CONTEXT = {"cpu": "CPU", "goos": "system", "goarch": "architecture"}


def read(text: str) -> ToolResults | None:
    """Return the results in such a text, None where it has none; raise ValueError and the like where one is damaged."""
    if not _LINE.search(text):
        return None
    package, context = "", dict[str, str]()
    values: dict[tuple[str, str], list[float]] = {}
    for line in text.splitlines():
        if setting := _SETTING.match(line):
            package = setting[2].strip() if setting[1] == "pkg" else package
            context |= {_CONTEXT[setting[1]]: setting[2].strip()} if setting[1] in _CONTEXT else {}
        elif measured := _LINE.match(line):
            values.setdefault((package, measured[1]), []).append(float(measured[2]))
    processors = {ending[1] if (ending := _PROCESSORS.search(name)) else "" for _, name in values}
    shared = f"-{processors.pop()}" if len(processors) == 1 else ""  # else it is a part of the names of some
    if shared != "-":
        context["GOMAXPROCS"] = shared[1:]
    series = tuple(_series(of, name.removesuffix(shared), taken) for (of, name), taken in values.items())
    return ToolResults(TOOL, series, {name: value for name, value in context.items() if value})


def _series(package: str, name: str, taken: list[float]) -> BenchmarkSeries:
    stem, parameters = _split(name)
    return BenchmarkSeries(f"{package}.{stem}" if package else stem, parameters, (times(taken, "ns"),))


def _split(name: str) -> tuple[str, Mapping[str, Value]]:
    """Return a benchmark's name without its parameters, `n=100` and plain numbers, and these."""
    first, *parts = name.split("/")
    stem, arguments, parameters = [first], list[str](), dict[str, Value]()
    for part in parts:
        key, equals, value = part.partition("=")
        if equals and key:
            parameters[key] = parameter(value)
        elif isinstance(parameter(part), int | float):
            arguments.append(part)
        else:
            stem.append(part)
    return "/".join(stem), {**positional(arguments), **parameters}
