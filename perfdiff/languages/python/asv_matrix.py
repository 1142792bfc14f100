"""The environments that a configuration of asv asks for: combinations of its `matrix`, without those of `exclude`, and those of `include`.

As asv's manual has it (Configuration reference, `matrix`, `exclude`, `include`): a rule is a table of regular expressions that must match
whole values, or null for what is not to be there.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfdiff.errors import ConfigError

Name = tuple[str, str]  # what an environment has: its kind, and its name, "" where the kind has one value

_KINDS = _REQUIREMENT, *_VARIABLES = ("req", "env", "env_nobuild")
_PYTHON, _TOOL, _PLATFORM = _BARE = ("python", "environment_type", "sys_platform")
_BY_PIP = "virtualenv"  # the tool of asv whose environments are most like those made here
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPERATOR = re.compile(r"[<>=!~]")
_ADDRESS = re.compile(r"(?:\w+\+)?\w+://")


@dataclass(frozen=True, slots=True)
class AsvEnvironment:
    """What an environment has: requirements, and variables that are set when benchmarks run."""

    requirements: tuple[str, ...]
    variables: Mapping[str, str]


def first(table: Mapping[str, Any], file: Path) -> AsvEnvironment:
    """Return the first environment of a configuration in which something is installed, else the first; raise ConfigError: `config-asv`.

    Benchmarks that need nothing run in either.
    """
    bare = None
    try:
        for environment in map(_environment, _environments(table)):
            if environment.requirements:
                return environment
            bare = bare or environment
    except (ValueError, re.error) as error:
        raise ConfigError(f"{file}: {error}", slug="config-asv") from error
    if bare is None:
        raise ConfigError(
            f"{file}: 'exclude' leaves no environment of the matrix, and 'include' adds none for {sys.platform}; correct one of them",
            slug="config-asv",
        )
    return bare


def _environments(table: Mapping[str, Any]) -> Iterator[dict[Name, str]]:
    here = {(_TOOL, ""): str(table.get(_TOOL) or _BY_PIP), (_PLATFORM, ""): sys.platform}
    pythons = _values(table.get("pythons") or [f"{sys.version_info[0]}.{sys.version_info[1]}"])
    matrix = {(_PYTHON, ""): pythons} | {name: _values(values) for name, values in _named(table.get("matrix") or {}, "matrix").items()}
    excluded = [_named(rule, "exclude") for rule in _rules(table, "exclude")]
    for values in itertools.product(*matrix.values()):
        combination = {name: value for name, value in zip(matrix, values, strict=True) if value is not None}
        if not any(_matches(combination | here, rule) for rule in excluded):
            yield combination
    for entry in _rules(table, "include"):
        added = _named(entry, "include")
        if added.get((_PYTHON, "")) is None:
            raise ValueError(f"the entry {entry} of 'include' does not say which 'python' it is for")
        conditions = {name: value for name, value in added.items() if name in here}
        if _matches(here, conditions):
            yield {name: str(value) for name, value in added.items() if name not in here and value is not None}


def _rules(table: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    rules = table.get(key) or []
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        raise ValueError(f"'{key}' must be a list of objects")
    return rules


def _named(entry: Any, key: str) -> dict[Name, Any]:
    """Return the values of a matrix or a rule by what they are of; without any of the kinds, as in old files, all are requirements."""
    if not isinstance(entry, dict):
        raise ValueError(f"'{key}' must be an object")  # noqa: TRY004 (a file's content, as what JSON finds wrong)
    bare = {(kind, ""): entry[kind] for kind in _BARE if kind in entry and key != "matrix"}
    others = {name: value for name, value in entry.items() if (name, "") not in bare}
    by_kind = others if set(others) & set(_KINDS) else {_REQUIREMENT: others}
    for kind, values in by_kind.items():
        if kind not in _KINDS or not isinstance(values, dict):
            raise ValueError(f"'{kind}' in '{key}' must be one of {', '.join(_KINDS)}, with an object of names and values")
    return bare | {(kind, name): value for kind, values in by_kind.items() for name, value in values.items()}


def _values(values: Any) -> tuple[str | None, ...]:
    """Return the values of a name in the matrix; none that is listed is the newest version."""
    listed = values if isinstance(values, list) else [values]
    return tuple(None if value is None else str(value) for value in listed) or ("",)


def _matches(combination: Mapping[Name, str], rule: Mapping[Name, Any]) -> bool:
    return all(
        name not in combination if value is None else name in combination and re.fullmatch(str(value), combination[name])
        for name, value in rule.items()
    )


def _environment(combination: Mapping[Name, str]) -> AsvEnvironment:
    required = (_requirement(name.removeprefix("pip+"), value) for (kind, name), value in combination.items() if kind == _REQUIREMENT)
    variables = {name: value for (kind, name), value in combination.items() if kind in _VARIABLES}
    for name in variables:
        if not _VARIABLE.fullmatch(name):
            raise ValueError(f"'{name}' is no name of a variable")
    return AsvEnvironment(tuple(required), variables)


def _requirement(name: str, version: str) -> str:
    """Return the line of a requirement; a version may be a number, a comparison, or the address of a source."""
    if not version or _OPERATOR.match(version):
        return f"{name}{version}"
    return f"{name} @ {version}" if _ADDRESS.match(version) else f"{name}=={version}"
