"""Reading the configuration: the command line over `PERFDIFF_*` over the file over the defaults of `config`."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from perfdiff.config import (
    FEATURES_OF_INPUTS,
    INPUT,
    PLACE,
    BuildConfig,
    CompareConfig,
    Config,
    CountersConfig,
    JavaConfig,
    MeasureConfig,
    PhpConfig,
    ProbeConfig,
    PythonConfig,
    ServiceConfig,
    WorkloadConfig,
    program,
)
from perfdiff.configuration import (
    asv,
    buildsystem,
    inputs,
    javaproject,
    phpproject,
    pythonproject,
    requests,
    services,
    settings,
    suites,
    tomlfile,
)
from perfdiff.configuration.links import Worse, made_worse
from perfdiff.configuration.settings import Setting
from perfdiff.configuration.tomlfile import Keys, TomlFile
from perfdiff.errors import ConfigError

FILE = "perfdiff.toml"
PYPROJECT = "pyproject.toml"
PREFIX = "PERFDIFF_"

_COMMAND_LINE = "command line"


@dataclass(frozen=True, slots=True)
class Overrides:
    """What the command line says; None and empty leave the word to environment, file and defaults."""

    file: Path | None = None
    build: str | None = None
    command: str | None = None  # a workload of its own, in place of the file's
    workloads: tuple[str, ...] = ()  # names: only these run
    parameters: Mapping[str, tuple[float | str, ...]] = field(default_factory=dict)
    runs: int | None = None
    seed: int | None = None
    thorough: bool = False
    setup: str | None = None
    prepare: str | None = None
    warmup: int | None = None
    worse: Worse = field(default_factory=Worse)  # how services are made worse to reach


def load(directory: Path, *, overrides: Overrides | None = None, environment: Mapping[str, str], measuring: bool = True) -> Config:
    """Return the configuration that holds in `directory`, a folder of a checkout.

    The file is the nearest `perfdiff.toml`, or `pyproject.toml` with a table `[tool.perfdiff]`, from `directory` up to the top of the
    checkout. Only for `measuring` must it say what to build and to run, and are input files looked for; else `inputs` stay patterns.
    Raises `ConfigError` with file, line and key.
    """
    overrides = overrides or Overrides()
    path = overrides.file or _find(directory)
    source = _read(path) if path else None
    if source:
        check_keys(source, source.table, (*settings.SECTIONS, "service", "workload"), ())
    _check_variables(environment)
    values = {section: _section(section, source, environment) for section in settings.SECTIONS}
    if overrides.build is not None:
        values["build"]["command"] = _checked(overrides.build, settings.BUILD_COMMAND, _COMMAND_LINE, "--build")
    if overrides.seed is not None:
        values["compare"]["seed"] = _checked(overrides.seed, settings.SEED, _COMMAND_LINE, "--seed")
    if overrides.thorough:
        values["measure"]["thorough"] = True
    place = project(directory, overrides.file)
    offered = tuple(_services(source)) if source else ()
    workloads, suite = _workloads(source, overrides, environment, place, offered), None
    if source and (offered or any(workload.services or workload.requests for workload in workloads)):
        services.require_places(offered, workloads, lambda kind, number: source.place((kind, number)))
        workloads = services.served(workloads, offered)
    far, workloads = made_worse(overrides.worse, offered, workloads)
    if measuring:
        if any(workload.suite and workload.suite.kind == suites.ASV for workload in workloads):
            suite = asv.find(place)
        values = suites.asked(values, suite) if suite else values
        workloads = tuple(suites.with_command(_with_inputs(workload, source, overrides, place), suite, place) for workload in workloads)
    if measuring and not workloads:
        raise ConfigError(_no_workload(source), slug="config-no-workload")
    commands = [
        *(workload.command for workload in workloads if not workload.requests),
        *(service.command.removeprefix("exec ") for service in offered if not service.outside),
    ]
    sign = pythonproject.recognise(place, commands)
    is_python = sign is not None or bool(values["python"]) or (source is not None and "python" in source.table)
    is_python = is_python or any(workload.suite for workload in workloads)
    is_java = bool(values["java"]) or (source is not None and "java" in source.table)
    is_java = is_java or javaproject.recognise(place, commands) is not None
    php = phpproject.recognise(place, commands)
    is_php = php is not None or bool(values["php"]) or (source is not None and "php" in source.table)
    guessed = None  # a Python project is installed without any command, and PHP runs as it lies
    if measuring and not _is_ready(place, is_python=is_python and not (is_java and sign in commands), is_php=is_php, is_java=is_java):
        guessed = None if "command" in values["build"] else _guess(place, source, is_java=is_java)
    sign = sign or php
    values["build"].setdefault("command", guessed.command if guessed else "")
    return Config(
        build=BuildConfig(**values["build"]),
        workloads=workloads,
        probes=ProbeConfig(**values["probes"]),
        compare=CompareConfig(**values["compare"]),
        counters=CountersConfig(**values["counters"]),
        measure=MeasureConfig(**values["measure"]),
        source=str(source.path) if source else None,
        python=PythonConfig(**values["python"]) if is_python else None,
        java=JavaConfig(**values["java"]) if is_java else None,
        php=PhpConfig(**values["php"]) if is_php else None,
        services=offered,
        links=far,
        build_guessed_from=guessed.file if guessed else sign if measuring and not values["build"]["command"] else None,
        suite_guessed_from=suite.file if suite and not (source and "workload" in source.table) else None,
    )


def project(directory: Path, file: Path | None = None) -> Path:
    """Return the folder that builds and workloads run in.

    That is the configuration's own, or the top of the checkout where there is none. A `file` that the user named may lie anywhere;
    then it is `directory`.
    """
    if file:
        return directory
    found = _find(directory)
    return found.parent if found else _top(directory)


def _top(directory: Path) -> Path:
    return next((folder for folder in (directory, *directory.parents) if (folder / ".git").exists()), directory)


def _find(directory: Path) -> Path | None:
    top = _top(directory)
    for folder in (directory, *directory.parents):
        own, shared = folder / FILE, folder / PYPROJECT
        if own.is_file():
            return own
        if shared.is_file() and "[tool.perfdiff" in shared.read_text(encoding="utf-8", errors="replace"):
            return shared
        if folder == top:
            break
    return None


def _read(path: Path) -> TomlFile:
    """Return the file, with `[tool.perfdiff]` of a `pyproject.toml` as if it were all of it."""
    source = tomlfile.read(path)
    if path.name != PYPROJECT:
        return source
    table = source.table.get("tool", {}).get("perfdiff", {})
    return TomlFile(path, table, {keys[2:]: line for keys, line in source.lines.items() if keys[:2] == ("tool", "perfdiff")})


def _section(section: str, source: TomlFile | None, environment: Mapping[str, str]) -> dict[str, Any]:
    known = settings.SECTIONS[section]
    values = checked_table(source, source.table.get(section, {}), known, (section,)) if source else {}
    for key, setting in known.items():
        variable = _variable(section, key)
        if variable in environment:
            values[key] = _checked(settings.parse(setting, environment[variable]), setting, "environment", variable)
    return values


def _variable(section: str, key: str) -> str:
    return f"{PREFIX}{section}_{key}".upper()


def _check_variables(environment: Mapping[str, str]) -> None:
    known = [_variable(section, key) for section, keys in settings.SECTIONS.items() for key in keys]
    for name in environment:
        if name not in known and name.startswith(tuple(_variable(section, "") for section in settings.SECTIONS)):
            raise ConfigError(f"environment: unknown variable {name}{nearest(name, known)}", slug="config-key")


def checked_table(source: TomlFile, table: object, known: Mapping[str, Setting], keys: Keys) -> dict[str, Any]:
    """Return the values of a table of `source` at `keys`; raise ConfigError where one is unknown or not of its kind."""
    if not isinstance(table, dict):
        raise ConfigError(f"{source.place(keys)}: '{keys[0]}' must be a table: write [{keys[0]}] above its keys", slug="config-value")
    check_keys(source, table, known, keys)
    return {key: _checked(found, known[key], source.place((*keys, key)), key) for key, found in table.items()}


def check_keys(source: TomlFile, table: Mapping[str, Any], known: Iterable[str], keys: Keys) -> None:
    """Raise ConfigError where a table of `source` at `keys` has a key that is not known."""
    for key in table:
        if key not in known:
            where = f"in [{keys[0]}]" if keys else "at the top"
            raise ConfigError(
                f"{source.place((*keys, key))}: unknown key '{key}'; {where} there are {', '.join(known)}{nearest(key, known)}",
                slug="config-key",
            )


def nearest(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean …?` with the nearest of the known words, or nothing where none is near.

    Neither case nor the scope of a function in C++ makes a difference.
    """
    spelled: dict[str, str] = {}
    for each in known:
        plain = each.partition("(")[0]
        for form in (each, plain.rpartition("::")[2], plain.rpartition("\\")[2]):
            spelled.setdefault(form.casefold(), each)
    near = difflib.get_close_matches(word.casefold(), spelled, n=1)
    return f"; did you mean '{spelled[near[0]]}'?" if near else ""


def _checked(found: object, setting: Setting, place: str, key: str) -> Any:
    value = setting.read(found)
    if value is None:
        where = key if place == _COMMAND_LINE else f"{place}: '{key}'"
        raise ConfigError(f"{where} is {json.dumps(found, default=str)}; it must be {setting.wanted}", slug="config-value")
    return value


def _is_ready(tree: Path, *, is_python: bool, is_php: bool, is_java: bool) -> bool:
    """Return whether programs run without a build command: what a project has in C or Java beside its PHP is built all the same."""
    if is_python:
        return True
    return is_php and buildsystem.detect(tree) is None and not (is_java and javaproject.build_system(tree) is not None)


def _guess(tree: Path, source: TomlFile | None, *, is_java: bool) -> buildsystem.BuildSystem:
    """Return the build system of a tree; that of Java's own goes first where programs are Java's, a compiler of loose sources last."""
    system = javaproject.named_build_system(tree) if is_java else None
    system = system or buildsystem.detect(tree) or (javaproject.build_system(tree) if is_java else None)
    if system is None:
        raise ConfigError(
            f"no build command is configured, and no build system is known by its files in {tree}; "
            f"write in {source.path if source else tree / FILE} what builds the program in a fresh tree, such as:\n\n"
            '[build]\ncommand = "make"',
            slug="config-build",
        )
    return system


def _services(source: TomlFile) -> Iterator[ServiceConfig]:
    known: list[ServiceConfig] = []
    for index, table in enumerate(_tables(source, "service")):
        keys: Keys = ("service", index)
        known.append(services.checked(checked_table(source, table, settings.SERVICE, keys), source.place(keys), known))
        yield known[-1]


def _tables(source: TomlFile, name: str) -> list[Any]:
    found = source.table.get(name, [])
    if not isinstance(found, list):
        raise ConfigError(f"{source.place((name,))}: {name}s are a list: write [[{name}]] above each one", slug="config-value")
    return found


def _workloads(
    source: TomlFile | None, overrides: Overrides, environment: Mapping[str, str], place: Path, offered: Sequence[ServiceConfig]
) -> tuple[WorkloadConfig, ...]:
    if overrides.command is not None:
        workloads: tuple[WorkloadConfig, ...] = (_given(overrides, offered),)
    else:
        workloads = (tuple(_configured(source, offered)) if source else ()) or suites.guessed(place)
        if workloads:
            workloads = _with_parameters(_selected(workloads, overrides.workloads), overrides.parameters)
            workloads = tuple(replace(workload, **_chores(overrides)) for workload in workloads)
            for workload in workloads:
                _check_places(workload, _COMMAND_LINE, "list its values in 'parameters'", offered)
    runs = _runs(overrides, environment)
    return tuple(replace(workload, runs=runs) for workload in workloads) if runs else workloads


def _chores(overrides: Overrides) -> dict[str, Any]:
    """Return what the command line says of preparing runs, by the keys of a workload."""
    given = {
        "setup": (overrides.setup, settings.SETUP),
        "prepare": (overrides.prepare, settings.PREPARE),
        "warmup": (overrides.warmup, settings.WARMUP),
    }
    return {key: _checked(value, setting, _COMMAND_LINE, f"--{key}") for key, (value, setting) in given.items() if value is not None}


def _no_workload(source: TomlFile | None) -> str:
    missing = f"{source.path}: no [[workload]] is configured" if source else f"no {FILE} was found, so there is no workload to run"
    given = "perfdiff BASE HEAD --param n=1000,3000,10000 -- ./program {n}"
    return f"{missing}; give a command behind `--`, as in `{given}`, or run `perfdiff init` and fill it in"


def _runs(overrides: Overrides, environment: Mapping[str, str]) -> int | None:
    variable = f"{PREFIX}RUNS"
    if overrides.runs is not None:
        return int(_checked(overrides.runs, settings.RUNS, _COMMAND_LINE, "--runs"))
    if variable in environment:
        return int(_checked(settings.parse(settings.RUNS, environment[variable]), settings.RUNS, "environment", variable))
    return None


def _given(overrides: Overrides, offered: Sequence[ServiceConfig]) -> WorkloadConfig:
    command = overrides.command or ""
    if overrides.workloads:
        raise ConfigError(
            "--workload chooses from the file's workloads, a command behind `--` replaces them: give one", slug="config-workload"
        )
    workload = WorkloadConfig(name=_program(command), command=command, parameters=overrides.parameters, **_chores(overrides))
    _check_places(workload, _COMMAND_LINE, "give each with --param NAME=VALUE,VALUE", offered)
    return workload


def _program(command: str) -> str:
    try:
        found = program(command)
    except ValueError as error:
        raise ConfigError(f"the command behind `--` cannot be read: {error}", slug="config-workload") from error
    if not found:
        raise ConfigError("the command behind `--` names no program", slug="config-workload")
    return Path(found).name


def _configured(source: TomlFile, offered: Sequence[ServiceConfig]) -> Iterator[WorkloadConfig]:
    names: set[str] = set()
    for index, table in enumerate(_tables(source, "workload")):
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
    found = tomlfile.read(source.path.parent / name)
    check_keys(found, found.table, (*settings.REQUESTS, "request"), ())
    own = {key: value for key, value in found.table.items() if key != "request"}
    kinds = [checked_table(found, table, settings.REQUEST, ("request", number)) for number, table in enumerate(_tables(found, "request"))]
    mix = requests.mix_of(found, checked_table(found, own, settings.REQUESTS, ()), kinds, name)
    requests.require_places(mix, values.get("parameters", {}), found, values.get("name", ""))
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


def _with_inputs(workload: WorkloadConfig, source: TomlFile | None, overrides: Overrides, folder: Path) -> WorkloadConfig:
    """Return a workload with the files that its patterns mean, or those of the command line, which take their place."""
    if not workload.inputs or source is None:
        return workload
    if INPUT in overrides.parameters:
        return replace(workload, inputs=inputs.matching(map(str, overrides.parameters[INPUT]), folder, f"--param {INPUT}"))
    names = [table.get("name") for table in source.table["workload"]]
    place = source.place(("workload", names.index(workload.name), "inputs"))
    return replace(workload, inputs=inputs.matching(workload.inputs, folder, f"{place}: 'inputs'"))


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
    known = [workload.name for workload in workloads]
    for name in names:
        if name not in known:
            raise ConfigError(f"no workload is named '{name}'; there are {', '.join(known)}{nearest(name, known)}", slug="config-workload")
    return tuple(workload for workload in workloads if not names or workload.name in names)


def _with_parameters(workloads: tuple[WorkloadConfig, ...], given: Mapping[str, tuple[float | str, ...]]) -> tuple[WorkloadConfig, ...]:
    known = {name for workload in workloads for name in workload.values}
    for name in given:
        if name not in known:
            there = f"there are {', '.join(sorted(known))}" if known else f"write {{{name}}} in a command where its value goes"
            raise ConfigError(f"--param {name}: no workload has this parameter; {there}{nearest(name, known)}", slug="config-parameter")
    return tuple(
        replace(workload, parameters={name: given.get(name, values) for name, values in workload.parameters.items()})
        for workload in workloads
    )
