"""Results of JMH: `-rf json -rff FILE`. Each fork is a process; what it measures a second is turned into what an operation takes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfdiff.records.results.series import NANOSECONDS, BenchmarkSeries, ToolResults, Value, number, parameter, times

TOOL = "JMH"


def read(data: Any) -> ToolResults | None:
    """Return the results in JSON of this tool, None where it is of another one; raise ValueError and the like where it is damaged."""
    if not (isinstance(data, list) and data and all(isinstance(entry, dict) and "primaryMetric" in entry for entry in data)):
        return None
    modes: dict[str, set[str]] = {}
    for entry in data:
        modes.setdefault(entry["benchmark"], set()).add(entry["mode"])
    series = [_series(entry, f" ({entry['mode']})" if len(modes[entry["benchmark"]]) > 1 else "") for entry in data]
    return ToolResults(TOOL, tuple(series), dict(_context(data[0])))


def _series(entry: Mapping[str, Any], mode: str) -> BenchmarkSeries:
    metric: Mapping[str, Any] = entry["primaryMetric"]
    parameters: dict[str, Value] = {str(name): parameter(value) for name, value in (entry.get("params") or {}).items()}
    if entry.get("threads", 1) != 1:
        parameters["threads"] = parameter(entry["threads"])
    name, unit = f"{entry['benchmark']}{mode}", str(metric["scoreUnit"])
    if metric.get("rawData"):
        return BenchmarkSeries(name, parameters, tuple(_ns(fork, unit) for fork in metric["rawData"] if fork))
    if metric.get("rawDataHistogram"):
        return BenchmarkSeries(name, parameters, tuple(_means(fork, unit) for fork in metric["rawDataHistogram"] if fork))
    return BenchmarkSeries(name, parameters, (_ns([metric["score"]], unit),), "a score alone, without raw data")


def _means(fork: Sequence[Any], unit: str) -> tuple[float, ...]:
    """Return the mean of each iteration of a fork, of histograms with values and how often each occurred."""
    weighed = ([(number(value), number(count)) for value, count in iteration] for iteration in fork)
    means = [sum(value * count for value, count in pairs) / sum(count for _, count in pairs) for pairs in weighed if pairs]
    return _ns(means, unit)


def _ns(values: Sequence[object], unit: str) -> tuple[float, ...]:
    """Return ns an operation: of a unit such as `ns/op`, or `ops/s`, where more is better."""
    counted, _, of = unit.partition("/")
    if counted != "ops":
        return times(values, counted)
    if of not in NANOSECONDS or any(number(value) <= 0 for value in values):
        raise ValueError(f"'{unit[:40]}' of operations is no throughput")
    return tuple(NANOSECONDS[of] / number(value) for value in values)


def _context(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    machine = " ".join(str(entry[key]) for key in ("vmName", "vmVersion") if entry.get(key))
    if machine or entry.get("jdkVersion"):
        yield "virtual machine", machine or str(entry["jdkVersion"])
    arguments: Sequence[Any] = entry.get("jvmArgs") or ()
    yield "arguments of the virtual machine", " ".join(map(str, itertools.islice(arguments, 20)))
