"""All studies by name: each module here has one, and so has each folder of fixture programs of which perfdiff is asked."""

from __future__ import annotations

import ast
from functools import partial
from pathlib import Path

from programs import HIDDEN, JAVA, LESS, PHP, PYTHON, SERVER
from studies.support import family_verdicts, fixture_verdicts

FOLDERS = {
    "hidden": partial(family_verdicts.compare, "Programs whose change hides outside of functions", HIDDEN),
    "less": partial(family_verdicts.compare, "Programs that do less, and improvements", LESS),
    "java": partial(fixture_verdicts.compare, "Fixture programs in Java", JAVA, "java"),
    "php": partial(fixture_verdicts.compare, "Fixture programs in PHP", PHP, "php"),
    "python": partial(fixture_verdicts.compare, "Fixture programs in Python", PYTHON, "python"),
    "server": partial(fixture_verdicts.compare, "Fixture programs behind a server", SERVER, "server"),
}
_STUDIES = Path(__file__).parent.parent


def names() -> dict[str, str]:
    """Return the names of all studies, each with the line that says what it measures."""
    modules = {file.stem: file for file in _STUDIES.glob("*.py") if not file.name.startswith("__")}
    packages = {file.parent.name: file for file in _STUDIES.glob("*/__init__.py") if file.parent != Path(__file__).parent}
    lines = {name: _first_line(file) for name, file in {**modules, **packages}.items()}
    return dict(sorted({**lines, **{name: f"{compare.args[0]}." for name, compare in FOLDERS.items()}}.items()))


def _first_line(file: Path) -> str:
    return (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").partition("\n")[0]
