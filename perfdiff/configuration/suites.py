"""Suites that a project has: how they are written in the configuration, and which there are where none is written."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfdiff.config import Suite, WorkloadConfig
from perfdiff.configuration import recognition
from perfdiff.errors import ConfigError
from perfdiff.languages.frameworks import frameworks
from perfdiff.languages.installed import installed


def taken(values: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return a workload's keys with its suite under `suite`, if it has one; raise ConfigError if it says twice what is run."""
    kinds = [kind for kind in frameworks() if kind in values]
    if not kinds:
        return dict(values)
    if len(kinds) > 1 or "command" in values:
        given = " and ".join(f"'{key}'" for key in ("command", *kinds) if key in values)
        raise ConfigError(f"{place}: this [[workload]] has {given}; give one of them", slug="config-workload")
    kind = kinds[0]
    takes_parameters = frameworks()[kind].framework.takes_parameters
    for key in ("inputs", *(() if takes_parameters else ("parameters",))):
        if key in values:
            raise ConfigError(
                f"{place}: '{key}' of '{kind}' are not for the configuration to say: benchmarks have their own", slug="config-workload"
            )
    own = {key: value for key, value in values.items() if key != kind}
    return {"name": values[kind] if takes_parameters else kind, **own, "suite": Suite(kind, values[kind])}


def guessed(project: Path, changed: Collection[str] = ()) -> tuple[WorkloadConfig, ...]:
    """Return the suites that a project seems to have, as workloads, language by language; of one, what tells most first.

    The language comes first that leads the project, then one whose files are among those that `changed`, then the one with the most telling
    suites, and then one that the project is told to be written in: another's are those of its bindings.
    """
    suites = [
        (offer, Suite(offer.framework.name, what, guessed=True))
        for offer in sorted(frameworks().values(), key=lambda offer: offer.framework.material)
        for what in offer.framework.find(project)
    ]
    leading, of_files = recognition.leading(project), recognition.languages_of_files(project)
    of_changes = {traits.name for traits in installed() if any(file.endswith(tuple(traits.files.sources)) for file in changed)}
    most_telling = {offer.language: offer.framework.material for offer, _ in reversed(suites)}
    languages = sorted(
        most_telling,
        key=lambda name: (name not in leading, name not in of_changes, most_telling[name], name not in of_files, name),
    )
    kinds = [suite.kind for _, suite in suites]
    return tuple(
        WorkloadConfig(suite.kind if kinds.count(suite.kind) == 1 else f"{suite.kind} {suite.what}".strip(), suite=suite)
        for language in languages
        for offer, suite in suites
        if offer.language == language
    )


def by_language(workloads: Sequence[WorkloadConfig]) -> tuple[tuple[WorkloadConfig, ...], ...]:
    """Return guessed workloads apart by their languages, each of which has builds of its own; configured ones all together."""
    if not any(workload.suite and workload.suite.guessed for workload in workloads):
        return (tuple(workloads),)
    apart = itertools.groupby(workloads, key=lambda workload: languages([workload]))
    return tuple(tuple(of_language) for _, of_language in apart)


def with_command(workload: WorkloadConfig, project: Path) -> WorkloadConfig:
    """Return a workload with the command that lists its suite's cases; raise ConfigError if the project has no such suite."""
    if workload.suite is None:
        return workload
    return replace(workload, command=frameworks()[workload.suite.kind].framework.command(project, workload.suite, workload))


def languages(workloads: Collection[WorkloadConfig]) -> frozenset[str]:
    """Return the names of the languages whose frameworks run workloads."""
    return frozenset(frameworks()[workload.suite.kind].language for workload in workloads if workload.suite)


def asked(sections: Mapping[str, dict[str, Any]], workloads: Collection[WorkloadConfig], project: Path) -> dict[str, dict[str, Any]]:
    """Return sections of the configuration with what suites need."""
    values = {section: dict(keys) for section, keys in sections.items()}
    suites = [workload.suite for workload in workloads if workload.suite]
    for kind in dict.fromkeys(suite.kind for suite in suites):
        offered = frameworks()[kind]
        needs = offered.framework.needs(project, [suite.what for suite in suites if suite.kind == kind])
        if needs.overlay:
            values["build"]["overlay"] = tuple(dict.fromkeys((*values["build"].get("overlay", ()), *needs.overlay)))
        for key, value in needs.settings.items():
            values[offered.language].setdefault(key, value)
        for key, value in needs.build.items():
            values["build"].setdefault(key, value)
    return values
