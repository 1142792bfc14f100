"""Results of pytest-benchmark: `--benchmark-json=FILE --benchmark-save-data`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from perfdiff.records.results.series import BenchmarkSeries, ToolResults, Value, parameter, times

TOOL = "pytest-benchmark"


def read(data: Any) -> ToolResults | None:
    """Return the results in JSON of this tool, None where it is of another one; raise ValueError and the like where it is damaged."""
    if not (isinstance(data, dict) and isinstance(data.get("machine_info"), dict) and isinstance(data.get("benchmarks"), list)):
        return None
    unread = {entry["fullname"]: "it failed" for entry in data["benchmarks"] if not entry.get("stats")}
    series = tuple(_series(entry) for entry in data["benchmarks"] if entry.get("stats"))
    return ToolResults(TOOL, series, dict(_context(data["machine_info"])), unread=unread)


def _series(entry: Mapping[str, Any]) -> BenchmarkSeries:
    name, parameters = _parameters(entry)
    rounds = entry["stats"].get("data")
    if rounds:
        return BenchmarkSeries(name, parameters, (times(rounds, "s"),))
    lacks = "statistics alone: --benchmark-save-data keeps the rounds"
    return BenchmarkSeries(name, parameters, (times([entry["stats"]["mean"]], "s"),), lacks)


def _parameters(entry: Mapping[str, Any]) -> tuple[str, dict[str, Value]]:
    """Return the name of a test without its parameters, and these."""
    name, param, params = str(entry["fullname"]), entry.get("param"), entry.get("params")
    if not param:
        return name, {}
    values = params if isinstance(params, dict) else {"parameter": param}
    return name.removesuffix(f"[{param}]"), {str(key): parameter(value) for key, value in values.items()}


def _context(machine: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    processor = machine.get("cpu")
    if isinstance(processor, dict) and processor.get("brand_raw"):
        yield "CPU", str(processor["brand_raw"])
    if machine.get("python_implementation"):
        yield "interpreter", f"{machine['python_implementation']} {machine.get('python_implementation_version', '')}".strip()
