"""Suites of benchmarks that a project has: how they are written in the configuration, and which command lists their benchmarks."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfdiff.config import DRIVER, Suite, WorkloadConfig
from perfdiff.configuration import asv
from perfdiff.configuration.asv import AsvSuite
from perfdiff.errors import ConfigError

PYTEST, ASV, CALLABLE = KINDS = ("pytest", "asv", "callable")


def taken(values: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return the values of a workload with its suite, if it has one, as such; raise ConfigError where it says twice what is run."""
    kinds = [kind for kind in KINDS if kind in values]
    if not kinds:
        return dict(values)
    if len(kinds) > 1 or "command" in values:
        given = " and ".join(f"'{key}'" for key in ("command", *KINDS) if key in values)
        raise ConfigError(f"{place}: this [[workload]] has {given}; give one of them", slug="config-workload")
    kind = kinds[0]
    for key in ("inputs", *(("parameters",) if kind != CALLABLE else ())):
        if key in values:
            raise ConfigError(
                f"{place}: '{key}' of '{kind}' are not for the configuration to say: benchmarks have their own", slug="config-workload"
            )
    own = {key: value for key, value in values.items() if key != kind}
    return {"name": values[kind] if kind == CALLABLE else kind, **own, "suite": Suite(kind, values[kind])}


def guessed(project: Path) -> tuple[WorkloadConfig, ...]:
    """Return the suite of asv that a project has, as a workload; nothing where there is none."""
    return (WorkloadConfig(ASV, suite=Suite(ASV, "")),) if asv.find(project) else ()


def with_command(workload: WorkloadConfig, found: AsvSuite | None, project: Path) -> WorkloadConfig:
    """Return a workload whose command lists the benchmarks of its suite; raise ConfigError where asv is not configured."""
    if workload.suite is None:
        return workload
    kind, what = workload.suite.kind, workload.suite.what
    if kind == ASV and found is None:
        raise ConfigError(f"workload {workload.name}: there is no {asv.FILE} in {project}, nor in a folder within it", slug="config-asv")
    words, variables = [what], []
    if kind == CALLABLE:
        words = [what, json.dumps(workload.parameters)]
    elif found is not None and kind == ASV:
        words = [found.folder, what, *found.variables]
        variables = [f"{name}={shlex.quote(value)}" for name, value in found.variables.items()]
    return replace(workload, command=" ".join([*variables, "python", "-m", DRIVER, "list", kind, *map(shlex.quote, words)]))


def asked(sections: Mapping[str, dict[str, Any]], found: AsvSuite) -> dict[str, dict[str, Any]]:
    """Return sections of the configuration with what a suite of asv asks for.

    Both revisions run the checkout's benchmarks, as they do with asv. What its environments require is installed, unless the configuration
    says what is.
    """
    build, python = dict(sections["build"]), dict(sections["python"])
    if found.folder != ".":
        build["overlay"] = tuple(dict.fromkeys((*build.get("overlay", ()), found.folder)))
    if found.requirements:
        python.setdefault("requirements", found.requirements)
    return {**sections, "build": build, "python": python}
