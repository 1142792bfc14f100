"""Results of hyperfine: `--export-json FILE`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from perfdiff.records.results.series import BenchmarkSeries, ToolResults, Value, parameter, times

TOOL = "hyperfine"


def read(data: Any) -> ToolResults | None:
    """Return the results in JSON of this tool, None where it is of another one; raise ValueError and the like where it is damaged."""
    if not (isinstance(data, dict) and isinstance(data.get("results"), list) and all("command" in entry for entry in data["results"])):
        return None
    failing = [str(entry["command"]) for entry in data["results"] if any(entry.get("exit_codes") or ())]
    remarks = (f"runs of '{failing[0]}' did not exit 0",) if failing else ()
    return ToolResults(TOOL, tuple(map(_series, data["results"])), remarks=remarks, names_are_commands=True)


def _series(entry: Mapping[str, Any]) -> BenchmarkSeries:
    values: Mapping[str, Any] = entry.get("parameters") or {}
    parameters = {str(name): parameter(value) for name, value in values.items()}
    name = _template(str(entry["command"]), values)
    if entry.get("times"):
        return BenchmarkSeries(name, parameters, tuple((ns,) for ns in times(entry["times"], "s")))
    return BenchmarkSeries(
        name, parameters, (times([entry["mean"]], "s"),), "a mean alone: --export-json of later versions keeps the times"
    )


def _template(command: str, parameters: Mapping[str, Value]) -> str:
    """Return a command with the names of parameters in the places of their values, as far as these can be told."""
    for name, value in parameters.items():
        command = re.sub(rf"(?<![\w.]){re.escape(str(value))}(?![\w.])", lambda _, name=name: f"{{{name}}}", command)  # type: ignore[misc]
    return command
