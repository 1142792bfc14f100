"""Build back ends (PEP 517): installed apart from what a project runs with, and asked for what its files do not say."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packaging.markers import InvalidMarker, Marker
from packaging.requirements import InvalidRequirement, Requirement

from perfdiff import temporary
from perfdiff.languages.answers import answer
from perfdiff.languages.python import packages
from perfdiff.languages.python.interpreters import Interpreter
from perfdiff.languages.python.layout import Layout
from perfdiff.languages.python.projects import Project
from perfdiff.languages.python.pyproject import normal
from perfdiff.languages.python.requirements import Requirements

_ASKING = Path(__file__).parent / "scripts" / "asking_backend.py"
_TIMEOUT_S = 600.0  # some configure the whole build before they answer
# Back ends that compile in a folder that they remove in the end, unless they are told which to take.
_COMPILING = frozenset({"mesonpy", "scikit_build_core.build"})
_BUILD_FOLDER = "build/perfdiff"
_REBUILDING = frozenset({"mesonpy"})  # what they install in editable mode is built again whenever a program starts


@dataclass(frozen=True, slots=True)
class Backend:
    """The build back end of a project, in an environment of its own."""

    layout: Layout
    project: Project

    def variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return what lets a build in an environment find the back end and its programs."""
        return {
            "PYTHONPATH": str(self.layout.site_packages),
            "PATH": os.pathsep.join([str(self.layout.programs), environment.get("PATH", "")]),
        }


def installation(project: Project, *, is_prepared: bool, is_editable: bool | None) -> str:
    """Return the command that installs the project in its folder; where it `is_prepared`, all that it needs is there.

    Code is compiled within the tree, and stays there. Where nobody says whether the project is to be editable, it is, if its back end
    leaves programs alone then.
    """
    prepared = "--no-deps --no-build-isolation " if is_prepared else ""
    folder = f"--config-settings=build-dir={_BUILD_FOLDER} " if project.backend in _COMPILING else ""
    as_lies = project.backend not in _REBUILDING if is_editable is None else is_editable
    return f"python -m pip install {prepared}{folder}{'--editable .' if as_lies else '.'}"


def ask(project: Project, place: Path, interpreter: Interpreter, environment: Mapping[str, str], cache: Path) -> Backend | None:
    """Return the back end of the project in the folder `place`; None where neither it nor the project's files can tell what that is.

    BuildError (`python-dependency`) where it cannot be installed.
    """
    needed = project.build_requirements
    while True:
        layout = packages.obtain(Requirements(needed), interpreter, environment, cache)
        answer = _answer(project, place, layout, environment)
        missing = tuple(requirement for requirement in (answer or {}).get("missing", ()) if requirement not in needed)
        if not missing:
            break
        needed = (*needed, *missing)
    if answer is None:
        return None
    if "name" in answer:
        return Backend(layout, _told(project, answer, interpreter))
    return Backend(layout, project) if project.name and project.requirements is not None else None


def _answer(project: Project, place: Path, layout: Layout, environment: Mapping[str, str]) -> dict[str, Any] | None:
    command = [str(layout.python), str(_ASKING), project.backend or "", *(str(place / path) for path in project.backend_path)]
    surroundings = {
        **environment,
        "PATH": os.pathsep.join([str(layout.programs), environment.get("PATH", "")]),
        "PYTHONPATH": "",
        "PYTHONHOME": "",
    }
    try:
        with temporary.folder() as room:
            surroundings["TMPDIR"] = str(room)
            ended = answer(command, environment=surroundings, folder=place, within_s=_TIMEOUT_S)
        ended.check_returncode()
        return dict(json.loads(ended.stdout))
    except (OSError, subprocess.SubprocessError, ValueError):  # what builds the project will say why
        return None


def _told(project: Project, answer: Mapping[str, Any], interpreter: Interpreter) -> Project:
    """Return the project with what its metadata says of it."""
    always: list[str] = []
    extras: dict[str, tuple[str, ...]] = {}
    for text in answer["requirements"]:
        required, marker = _divided(text)
        setting = {**interpreter.markers, "extra": ""}
        if marker is None or marker.evaluate(setting):
            always.append(required)
            continue
        for extra in set(re.findall(r"""extra\s*==\s*["']([^"']+)["']""", str(marker))):
            if marker.evaluate({**setting, "extra": extra}):
                extras[normal(extra)] = (*extras.get(normal(extra), ()), required)
    return replace(project, name=answer["name"], version=answer["version"], requirements=tuple(always), extras=extras)


def _divided(text: str) -> tuple[str, Marker | None]:
    """Return a requirement without its marker, and the marker.

    Poetry's `>=1,<2 || >=3` is no version that others read. Where its marker lets it apply, pip says so.
    """
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        required, _, condition = text.partition(" ; ")
        try:
            return required, Marker(condition) if condition else None
        except InvalidMarker:
            return text, None
    marker, requirement.marker = requirement.marker, None
    return str(requirement), marker
