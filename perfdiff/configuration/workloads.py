"""The workloads: those of the file, of a suite or of the command line, with all that their commands have places for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfdiff.config import FEATURES_OF_INPUTS, INPUT, PLACE, ServiceConfig, WorkloadConfig, program
from perfdiff.configuration import inputs, requests, services, settings, suites, tomlfile
from perfdiff.configuration.checking import COMMAND_LINE, check_keys, checked, checked_table, nearest, tables
from perfdiff.configuration.overrides import Overrides
from perfdiff.configuration.tomlfile import Keys, TomlFile
from perfdiff.errors import ConfigError


def configured(  # noqa: PLR0913, PLR0917 (all that may name workloads, or bears on a guess)
    source: TomlFile | None,
    overrides: Overrides,
    environment: Mapping[str, str],
    place: Path,
    offered: Sequence[ServiceConfig],
    changed: Callable[[], Collection[str]],
) -> tuple[WorkloadConfig, ...]:
    """Return the workloads of a project in the folder `place`, with the `offered` services; none where nobody names one.

    Guesses go by the files that `changed`.
    """
    if overrides.command is not None:
        workloads: tuple[WorkloadConfig, ...] = (_given(overrides, offered),)
    else:
        workloads = (tuple(_of_file(source, offered)) if source else ()) or suites.guessed(place, changed())
        if workloads:
            workloads = _with_parameters(_selected(workloads, overrides.workloads), overrides.parameters)
            workloads = tuple(replace(workload, **_chores(overrides)) for workload in workloads)
            for workload in workloads:
                _check_places(workload, COMMAND_LINE, "list its values in 'parameters'", offered)
    runs = _runs(overrides, environment)
    return tuple(replace(workload, runs=runs) for workload in workloads) if runs else workloads


def with_inputs(workload: WorkloadConfig, source: TomlFile | None, overrides: Overrides, folder: Path) -> WorkloadConfig:
    """Return a workload with the files that its patterns mean, or those of the command line, which take their place."""
    if not workload.inputs or source is None:
        return workload
    if INPUT in overrides.parameters:
        return replace(workload, inputs=inputs.matching(map(str, overrides.parameters[INPUT]), folder, f"--param {INPUT}"))
    names = [table.get("name") for table in source.table["workload"]]
    place = source.place(("workload", names.index(workload.name), "inputs"))
    return replace(workload, inputs=inputs.matching(workload.inputs, folder, f"{place}: 'inputs'"))


def _chores(overrides: Overrides) -> dict[str, Any]:
    """Return what the command line says of preparing runs, by the keys of a workload."""
    given = {
        "setup": (overrides.setup, settings.SETUP),
        "prepare": (overrides.prepare, settings.PREPARE),
        "warmup": (overrides.warmup, settings.WARMUP),
    }
    return {key: checked(value, setting, COMMAND_LINE, f"--{key}") for key, (value, setting) in given.items() if value is not None}


def _runs(overrides: Overrides, environment: Mapping[str, str]) -> int | None:
    variable = settings.variable("runs")
    if overrides.runs is not None:
        return int(checked(overrides.runs, settings.RUNS, COMMAND_LINE, "--runs"))
    if variable in environment:
        return int(checked(settings.parse(settings.RUNS, environment[variable]), settings.RUNS, "environment", variable))
    return None


def _given(overrides: Overrides, offered: Sequence[ServiceConfig]) -> WorkloadConfig:
    command = overrides.command or ""
    if overrides.workloads:
        raise ConfigError(
            "--workload chooses from the file's workloads, a command behind `--` replaces them: give one", slug="config-workload"
        )
    workload = WorkloadConfig(name=_program(command), command=command, parameters=overrides.parameters, **_chores(overrides))
    _check_places(workload, COMMAND_LINE, "give each with --param NAME=VALUE,VALUE", offered)
    return workload


def _program(command: str) -> str:
    try:
        executable = program(command)
    except ValueError as error:
        raise ConfigError(f"the command behind `--` cannot be read: {error}", slug="config-workload") from error
    if not executable:
        raise ConfigError("the command behind `--` names no program", slug="config-workload")
    return Path(executable).name


def _of_file(source: TomlFile, offered: Sequence[ServiceConfig]) -> Iterator[WorkloadConfig]:
    names: set[str] = set()
    for index, table in enumerate(tables(source, "workload")):
        keys: Keys = ("workload", index)
        values = suites.taken(checked_table(source, table, settings.WORKLOAD, keys), source.place(keys))
        if isinstance(values.get("requests"), str):
            values |= _requests(source, values, keys)
        for key in ("name", "command"):
            if key not in values and "suite" not in values:
                raise ConfigError(f"{source.place(keys)}: this [[workload]] has no '{key}'", slug="config-workload")
        if values["name"] in names:
            raise ConfigError(
                f"{source.place((*keys, 'name'))}: '{values['name']}' is the name of a workload above", slug="config-workload"
            )
        names.add(values["name"])
        workload = WorkloadConfig(**values)
        _check_names(workload, source, keys)
        _check_patterns(workload, source, keys)
        _check_places(workload, source.place((*keys, "command")), "list its values in 'parameters'", offered)
        yield workload


def _requests(source: TomlFile, values: Mapping[str, Any], keys: Keys) -> dict[str, Any]:
    """Return the requests of a workload, and the command by which reports name it; raise ConfigError where they cannot be followed."""
    if "command" in values or "suite" in values:
        raise ConfigError(f"{source.place(keys)}: this [[workload]] has both 'requests' and a command; give one", slug="config-workload")
    name = values["requests"]
    file = tomlfile.read(source.path.parent / name)
    check_keys(file, file.table, (*settings.REQUESTS, "request"), ())
    own = {key: value for key, value in file.table.items() if key != "request"}
    kinds = [checked_table(file, table, settings.REQUEST, ("request", number)) for number, table in enumerate(tables(file, "request"))]
    mix = requests.mix_of(file, checked_table(file, own, settings.REQUESTS, ()), kinds, name)
    requests.require_places(mix, values.get("parameters", {}), file, values.get("name", ""))
    return {"requests": mix, "command": f"python -m perfdiff.load {name} {mix.url}"}


def _check_names(workload: WorkloadConfig, source: TomlFile, keys: Keys) -> None:
    """Raise ConfigError where a parameter or a feature has a name that something else has."""
    taken = dict.fromkeys(FEATURES_OF_INPUTS, "inputs") if workload.inputs else {}
    for key in ("parameters", "features"):
        for name in getattr(workload, key):
            if name in taken:
                raise ConfigError(
                    f"{source.place((*keys, key))}: '{name}' in '{key}' is a name that '{taken[name]}' has; give it another",
                    slug="config-parameter",
                )
            taken[name] = key


def _check_patterns(workload: WorkloadConfig, source: TomlFile, keys: Keys) -> None:
    """Raise ConfigError where a feature is not given by a regular expression with one group."""
    for name, text in workload.features.items():
        place = f"{source.place((*keys, 'features', name))}: the pattern of feature '{name}', {json.dumps(text)},"
        try:
            groups = re.compile(text.encode()).groups
        except (re.error, ValueError, OverflowError, RecursionError) as error:
            raise ConfigError(f"{place} is no regular expression: {error}", slug="config-feature") from error
        if groups != 1:
            raise ConfigError(
                f"{place} has {groups} groups; put the number that is meant, and nothing else, in parentheses: 'nodes: ([0-9]+)'",
                slug="config-feature",
            )


def _check_places(workload: WorkloadConfig, place: str, remedy: str, offered: Sequence[ServiceConfig]) -> None:
    command, commands, parameters = workload.command, workload.commands, workload.values
    places = {name: command for command in commands for name in PLACE.findall(command)}
    for text in (*services.texts(workload, offered), *(requests.texts(workload.requests) if workload.requests else ())):
        places |= {name: text for name in PLACE.findall(text) if name in parameters}
    for name in sorted(places.keys() - set(parameters)):
        files = ", or its files in 'inputs'" if name == INPUT else ""
        raise ConfigError(
            f"{place}: '{{{name}}}' in '{places[name]}' has no parameter; {remedy}{files}{nearest(name, parameters)}",
            slug="config-parameter",
        )
    for name in sorted(set(parameters) - places.keys()) if workload.suite is None else ():
        raise ConfigError(
            f"{place}: parameter '{name}' has no place in '{command}'; write {{{name}}} where its value goes{nearest(name, places)}",
            slug="config-parameter",
        )


def _selected(workloads: tuple[WorkloadConfig, ...], names: tuple[str, ...]) -> tuple[WorkloadConfig, ...]:
    there = [workload.name for workload in workloads]
    for name in names:
        if name not in there:
            raise ConfigError(f"no workload is named '{name}'; there are {', '.join(there)}{nearest(name, there)}", slug="config-workload")
    return tuple(workload for workload in workloads if not names or workload.name in names)


def _with_parameters(workloads: tuple[WorkloadConfig, ...], given: Mapping[str, tuple[float | str, ...]]) -> tuple[WorkloadConfig, ...]:
    names = {name for workload in workloads for name in workload.values}
    for name in given:
        if name not in names:
            there = f"there are {', '.join(sorted(names))}" if names else f"write {{{name}}} in a command where its value goes"
            raise ConfigError(f"--param {name}: no workload has this parameter; {there}{nearest(name, names)}", slug="config-parameter")
    return tuple(
        replace(workload, parameters={name: given.get(name, values) for name, values in workload.parameters.items()})
        for workload in workloads
    )
