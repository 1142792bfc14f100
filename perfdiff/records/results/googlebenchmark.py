"""Results of Google Benchmark: `--benchmark_out=FILE --benchmark_out_format=json`, with `--benchmark_repetitions=N`."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfdiff.records.results.series import BenchmarkSeries, ToolResults, Value, parameter, positional, times

TOOL = "Google Benchmark"
_SETTING = re.compile(r"real_time|process_time|manual_time|(?:min_time|min_warmup_time|iterations|repeats):.*")
_NAMED = re.compile(r"([^/:]+):([^/:]+)")
_BY_THE_CLOCK = re.compile(r"/(?:real_time|manual_time)(?=/|$)")
# Where a repetition takes so many times its CPU time, either it waits, which counts, or the machine was busy, which does not.
_APART = 1.5
_OVERVIEWS = frozenset(("BigO", "RMS"))


def read(data: Any) -> ToolResults | None:
    """Return the results in JSON of this tool, None where it is of another one; raise ValueError and the like where it is damaged."""
    if not (isinstance(data, dict) and isinstance(data.get("context"), dict) and isinstance(data.get("benchmarks"), list)):
        return None
    entries: dict[str, list[Mapping[str, Any]]] = {}
    unread: dict[str, str] = {}
    for entry in data["benchmarks"]:
        name = str(entry.get("run_name", entry["name"]))
        if entry.get("error_occurred") or entry.get("skipped"):
            unread[name] = str(entry.get("error_message") or entry.get("skip_message") or "it was skipped")
        elif entry.get("aggregate_name") not in _OVERVIEWS:
            entries.setdefault(name, []).append(entry)
    series = tuple(_series(name, of_one) for name, of_one in entries.items() if name not in unread)
    return ToolResults(TOOL, series, _context(data["context"]), tuple(_remarks(data["context"])), unread)


def _series(name: str, entries: Sequence[Mapping[str, Any]]) -> BenchmarkSeries:
    base, parameters = _split(name)
    repetitions = [entry for entry in entries if entry.get("run_type", "iteration") == "iteration"]
    cost = "real_time" if _BY_THE_CLOCK.search(name) else "cpu_time"
    if not repetitions:
        means = [entry for entry in entries if entry.get("aggregate_name") in ("mean", "median")] or list(entries)
        lacks = "aggregates alone, as --benchmark_report_aggregates_only leaves them"
        return BenchmarkSeries(base, parameters, (_times(means[:1], cost),), lacks)
    own = _times(repetitions, cost)
    ratio = statistics.median(_times(repetitions, "real_time")) / max(statistics.median(_times(repetitions, "cpu_time")), 1e-3)
    if cost == "cpu_time" and ratio > _APART:
        lacks = f"CPU times, and ×{ratio:.2g} as much real time: UseRealTime() would say which counts"
        return BenchmarkSeries(base, parameters, ((statistics.fmean(own),),), lacks)
    return BenchmarkSeries(base, parameters, (own,))


def _times(entries: Sequence[Mapping[str, Any]], cost: str) -> tuple[float, ...]:
    return tuple(ns for entry in entries for ns in times([entry[cost]], entry.get("time_unit", "ns")))


def _split(name: str) -> tuple[str, dict[str, Value]]:
    """Return a benchmark's name without its arguments, and these by their names."""
    first, *parts = name.split("/")
    stem, arguments, parameters = [first], list[str](), dict[str, Value]()
    for part in parts:
        named = _NAMED.fullmatch(part)
        if _SETTING.fullmatch(part):
            continue
        if named:
            parameters[named[1]] = parameter(named[2])
        elif isinstance(parameter(part), int):
            arguments.append(part)
        else:
            stem.append(part)
    return "/".join(stem), {**positional(arguments), **parameters}


def _context(context: Mapping[str, Any]) -> dict[str, str]:
    caches = ", ".join(f"L{cache.get('level')} {cache.get('size')}" for cache in context.get("caches", ()))
    settings = {"CPUs": context.get("num_cpus"), "MHz of a CPU": context.get("mhz_per_cpu"), "caches": caches or None}
    return {name: str(value) for name, value in settings.items() if value is not None}


def _remarks(context: Mapping[str, Any]) -> Iterator[str]:
    if context.get("library_build_type") == "debug":
        yield "its library was built for debugging"
    if context.get("cpu_scaling_enabled") is True:
        yield "CPU frequency scaling was on"
