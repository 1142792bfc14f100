"""Results of asv: `results/MACHINE/COMMIT-ENVIRONMENT.json`, with `asv run --record-samples`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from perfdiff.records.results.series import BenchmarkSeries, ToolResults, positional, times

TOOL = "asv"
_LACKS = "a median alone: `asv run --record-samples` keeps the samples"


def read(data: Any) -> ToolResults | None:
    """Return the results in JSON of this tool, None where it is of another one; raise ValueError and the like where it is damaged."""
    if not (isinstance(data, dict) and isinstance(data.get("result_columns"), list) and isinstance(data.get("results"), dict)):
        return None
    columns: list[str] = data["result_columns"]
    series: list[BenchmarkSeries] = []
    unread: dict[str, str] = {}
    for name, row in data["results"].items():
        entry = dict(zip(columns, row, strict=False))
        if not name.rpartition(".")[2].startswith("time") or not isinstance(entry.get("result"), list):
            unread[name] = "it holds no times"
        else:
            series += _series(name, entry)
    return ToolResults(TOOL, tuple(series), dict(_context(data)), unread=unread)


def _series(name: str, entry: Mapping[str, Any]) -> Iterator[BenchmarkSeries]:
    results, samples = entry["result"], entry.get("samples") or ()
    for place, choice in enumerate(itertools.islice(itertools.product(*(entry.get("params") or ())), len(results))):
        own = samples[place] if place < len(samples) else None
        if own:
            yield BenchmarkSeries(name, positional(map(_unquoted, choice)), (times(own, "s"),))
        elif results[place] is not None and results[place] == results[place]:  # neither failed nor skipped
            yield BenchmarkSeries(name, positional(map(_unquoted, choice)), (times([results[place]], "s"),), _LACKS)


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] == "'" else value


def _context(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    params = data.get("params")
    names = {"cpu": "CPU", "num_cpu": "CPUs"}
    yield from ((says, str(params[key])) for key, says in names.items() if isinstance(params, dict) and params.get(key))
    if data.get("env_name"):
        yield "environment", str(data["env_name"])
