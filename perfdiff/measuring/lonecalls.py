"""A function as what a search runs: its calls are recorded in runs of the workloads, and made alone with other values."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfdiff import temporary, units
from perfdiff.collect.execution import forking
from perfdiff.collect.execution.executor import Command, Executor
from perfdiff.collect.execution.forking import ForkedProgram
from perfdiff.collect.runs import workloads
from perfdiff.collect.runs.inputs import InputFiles
from perfdiff.collect.runs.targets import Target
from perfdiff.collect.trees.upkeep import Chores, Upkeep
from perfdiff.config import INPUT, WorkloadConfig
from perfdiff.errors import UsageError, WorkloadError, store_errors
from perfdiff.fuzzing.families import InputFamily, plain
from perfdiff.measuring.seeds import DIAL_SPAN, Seeds
from perfdiff.records.places import Place

_MOST_POINTS = 8  # of a workload, at which calls are recorded
_MOST_CALLS, _ENOUGH_CALLS = 8, 50  # that others are made from, of all sizes, and of which these are taken
_MOST_PLACES = 6  # of a call
_DIAL = "n"
_OTHER_EXITS = tuple(range(256))
_BRACE, _ESCAPED_BRACE = re.compile(r"\{(?=\w+\})"), r"\\u007b"  # in a text, where it would be the place of a parameter


@dataclass(frozen=True, slots=True)
class LoneFunction:
    """A function by the `name` that its users write, and the name within its file."""

    name: str
    file: str
    inner: str


@dataclass(frozen=True, slots=True)
class ArgumentRecorder:
    """Records calls in the built tree of a side, which is put back behind each run."""

    target: Target
    environment: Mapping[str, str]
    executor: Executor
    upkeep: Upkeep
    room: Path
    project: Path

    def seeds(self, function: LoneFunction, configs: Sequence[WorkloadConfig]) -> Seeds:
        """Return the calls of a function, each with a place for another value; raise UsageError where none can be made alone."""
        families: list[InputFamily] = []
        own: dict[str, WorkloadConfig] = {}
        calls: dict[str, tuple[WorkloadConfig, list[str]]] = {}
        refused: Counter[str] = Counter()
        for config, program, recording in self._recordings(function, configs):
            refused.update(recording["refused"])
            words = [*program.server[:-1], *program.caller, "call", *(recording[key] for key in ("folder", "target") if recording["calls"])]
            calls = dict.fromkeys(recording["calls"], (config, words)) | calls
            if len(calls) >= _ENOUGH_CALLS:
                break
        for call, place, value in _places(calls):
            (config, words), name = calls[call], f"{function.name}-{len(own) + 1}"
            family = _family(name, place, value)
            command = f"{_BRACE.sub(_ESCAPED_BRACE, shlex.join([*words, call, place]))} {{{family.dial or INPUT}}}"
            parameters = {family.dial: (value,)} if family.dial else {}
            families.append(family)
            own[name] = replace(config, name=name, command=command, parameters=parameters, inputs=(), check=None, features={})
        if not families:
            raise UsageError(_why(function, refused), slug="not-alone")
        return Seeds(tuple(families), own, dict.fromkeys(own, ""))

    def _recordings(
        self, function: LoneFunction, configs: Sequence[WorkloadConfig]
    ) -> Iterator[tuple[WorkloadConfig, ForkedProgram, dict[str, Any]]]:
        """Yield what is recorded in runs of workloads, with the program that ran."""
        for config in configs:
            inputs = InputFiles.seen(self.project, [config])
            for point in workloads.points([config])[:_MOST_POINTS]:
                command = Command(
                    text=workloads.filled(config.command, inputs.located(point)),
                    directory=self.target.directory,
                    environment=self.target.surroundings(self.environment),
                    timeout_s=config.timeout_s,
                    exit_codes=_OTHER_EXITS,
                    where=f"calls of {function.name}, {point.label}",
                )
                program = forking.program_of(command)
                if config.setup is None and program is not None:
                    with temporary.folder(within=self.room) as folder:
                        yield config, program, self._recording(function, config, command, program, folder / "calls.json")

    def _recording(
        self, function: LoneFunction, config: WorkloadConfig, command: Command, program: ForkedProgram, out: Path
    ) -> dict[str, Any]:
        """Return the calls of a run that can be made alone, and why others cannot."""
        assert self.target.tree is not None, "calls are recorded in a built tree"
        started = [*program.server[:-1], *program.caller]
        file = str(self.target.tree / function.file)
        runs = shlex.join([*started, "record", file, function.inner, str(out), *program.words])
        read = "" if program.input == os.devnull else f" < {shlex.quote(program.input)}"
        try:
            for text in (runs + read, shlex.join([*started, "again", str(out)])):
                own = replace(command, text=text)
                with self.upkeep.around(self.target.tree, own, Chores(config.name, 0), self.executor, self.target.home):
                    self.executor.execute(own)
        except WorkloadError as error:
            return {"calls": [], "refused": {str(error): 1}}
        with store_errors(out):
            recording: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {"calls": [], "refused": {}}
        is_tried = isinstance(recording["calls"], list)
        return recording if is_tried else {"calls": [], "refused": {"alone its file cannot be imported": 1}}


def resolved(name: str, sides: Sequence[Sequence[Place]]) -> LoneFunction:
    """Return the function that a name means among the lines of both sides; raise UsageError where that is none, or several."""
    of_sides = [{(place.file, place.function) for place in places if _is_named(place.function, name)} for places in sides]
    common = sorted(set.intersection(*of_sides))
    exact = [(file, function) for file, function in common if function == name]
    if not common:
        raise UsageError(f"no function '{name}' has lines in all revisions; name one as reports write it", slug="unknown-function")
    if len(exact or common) > 1:
        names = units.listed([f"{function} ({file})" for file, function in common], len(common))
        raise UsageError(f"'{name}' is the name of several functions: {names}", slug="unknown-function")
    [(file, function)] = exact or common
    parts, stem = function.split("."), Path(file).parent.name if Path(file).stem == "__init__" else Path(file).stem
    inner = parts[parts.index(stem) + 1 :] if stem in parts[:-1] else parts
    return LoneFunction(function, file, ".".join(inner))


def _is_named(function: str, name: str) -> bool:
    return function == name or function.endswith((f".{name}", f"::{name}"))


def _places(calls: Collection[str]) -> Iterator[tuple[str, str, Any]]:
    """Yield some of the calls, of all sizes, with the ways to places in which another value may stand, and the value there."""
    ordered = sorted(calls, key=lambda call: (len(call), call))
    step = max(1, len(ordered) // _MOST_CALLS)
    for call in ordered[::-step][:_MOST_CALLS]:
        places = (place for number, arguments in enumerate(json.loads(call)) for place in _within(arguments, (str(number),)))
        # Longer texts have more parts that others are made of.
        foremost = sorted(places, key=lambda place: (len(place[0]), -len(str(place[1]))))[:_MOST_PLACES]
        yield from ((call, "/".join(way), value) for way, value in foremost)


def _within(values: Any, way: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the ways to what may be another value within lists and tables, and what is there."""
    for key, value in enumerate(values) if isinstance(values, list) else values.items():
        is_number = isinstance(value, int) and not isinstance(value, bool) and value >= 1
        if is_number or (isinstance(value, str | list | dict) and value and list(value) != ["bytes"]):
            yield (*way, str(key)), value
        if isinstance(value, list | dict):
            yield from _within(value, (*way, str(key)))


def _family(name: str, way: str, value: Any) -> InputFamily:
    """Return the family that begins with a value: texts and bytes themselves, a list line by line, all else as JSON."""
    if isinstance(value, int):
        return InputFamily(name, dial=_DIAL, most=DIAL_SPAN * value)
    if isinstance(value, str):
        return plain(name, value.encode("latin-1" if way.endswith("/bytes") else "utf-8", errors="replace"), {})
    lines = map(json.dumps, value) if isinstance(value, list) else [json.dumps(value)]
    return plain(name, "".join(f"{line}\n" for line in lines).encode(), {})


def _why(function: LoneFunction, refused: Mapping[str, int]) -> str:
    """Say why no call of a function can be made alone."""
    if not refused:
        return f"no workload calls `{function.name}` where calls can be recorded"
    reasons = [f"{reason} ({count:,} times)" for reason, count in sorted(refused.items(), key=lambda item: -item[1])]
    return f"`{function.name}` cannot be called alone: {'; '.join(reasons[:3])}"
