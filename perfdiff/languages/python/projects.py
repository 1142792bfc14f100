"""What a Python project says of itself: its name, what it requires, what builds it, and whether it can be imported as it lies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from perfdiff.languages.python import importable, pyproject
from perfdiff.languages.python.pyproject import normal, table, text, texts

LEGACY_BACKEND = "setuptools.build_meta:__legacy__"  # what PEP 517 asks of projects that name none
LEGACY_REQUIREMENTS = ("setuptools>=40.8.0",)

# What else a back end may find out by itself does not decide what is imported.
_HARMLESS_DYNAMIC = {"version", "description", "readme", "classifiers", "urls", "keywords", "authors", "maintainers", "license"}
_ASSIGNED_VERSION = re.compile(r"""^(?:__version__|VERSION|version)\s*(?::\s*\w+\s*)?=\s*["']([^"'\n]+)["']""", re.MULTILINE)
_MANIFEST = "MANIFEST.in"  # of setuptools: which files of packages are data of theirs
_SCRIPT_GROUPS = {"scripts": "console_scripts", "gui-scripts": "gui_scripts"}


@dataclass(frozen=True, slots=True)
class Project:
    """The project in a folder, by what its files say; what is None, its back end alone can tell.

    `roots` are the folders from which its modules can be imported as they lie. A plain folder of scripts has neither name nor back end.
    """

    name: str | None
    version: str | None
    requirements: tuple[str, ...] | None
    roots: tuple[Path, ...] | None
    extras: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    backend: str | None = None
    backend_path: tuple[str, ...] = ()
    build_requirements: tuple[str, ...] = ()
    entry_points: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by group: objects by name

    @property
    def lies_ready(self) -> bool:
        """Return whether nothing has to be built: its modules can be imported as they lie, and all that is to be known of it is known."""
        return self.roots is not None and self.requirements is not None

    @property
    def is_packaged(self) -> bool:
        """Return whether it is something that can be installed."""
        return self.backend is not None


def read(folder: Path) -> Project:
    """Return what the project in `folder` says of itself; BuildError (`python-project`) where its `pyproject.toml` cannot be read."""
    tables = pyproject.read(folder)
    own, system = table(tables, "project"), table(tables, "build-system")
    if not own and not system and not table(tables, "tool", "poetry") and not has_setup(folder):
        return Project(name=None, version=None, requirements=(), roots=())
    dynamic = texts(own, "dynamic")
    project = Project(
        name=text(own, "name"),
        version=text(own, "version"),
        requirements=texts(own, "dependencies") if own and "dependencies" not in dynamic else None,
        roots=None,
        extras={normal(extra): texts(table(own, "optional-dependencies"), extra) for extra in table(own, "optional-dependencies")},
        backend=text(system, "build-backend") or LEGACY_BACKEND,
        backend_path=texts(system, "backend-path"),
        build_requirements=texts(system, "requires") if "requires" in system else LEGACY_REQUIREMENTS,
        entry_points=_entry_points(own),
    )
    if project.name is None or not set(dynamic) <= _HARMLESS_DYNAMIC or project.backend_path or has_setup(folder):
        return project
    roots = importable.roots(folder, project.name, project.backend or "", project.build_requirements, table(tables, "tool"))
    version = project.version or _assigned_version(folder, project.name, roots or (), table(tables, "tool"))
    return replace(project, version=version, roots=roots if version else None)


def otherwise_installed(differing: Mapping[str, Mapping[int, Path]]) -> tuple[str, ...]:
    """Return which of the files at the top of a project that differ have installations hold other files in head than in base."""
    files = ((name, differing[name]) for name in (pyproject.FILE, "setup.py", "setup.cfg") if name in differing)
    names = [name for name, places in files if _of_files(places.get(0)) != _of_files(places.get(1))]
    return (*names, *(name for name in (_MANIFEST,) if name in differing))


def _of_files(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    if file.name == pyproject.FILE:
        return importable.of_files(table(pyproject.read(file.parent), "tool"))
    return importable.of_files_by_setup(file.name, file.read_text(errors="replace"))


def has_setup(folder: Path) -> bool:
    """Return whether setuptools is told by `setup.py` or `setup.cfg` what the project is."""
    settings = folder / "setup.cfg"
    return (folder / "setup.py").is_file() or (
        settings.is_file() and re.search(r"^\[(metadata|options)\]", settings.read_text(errors="replace"), re.MULTILINE) is not None
    )


def _entry_points(own: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    groups = {group: table(own, "entry-points", group) for group in table(own, "entry-points")}
    groups |= {group: table(own, key) for key, group in _SCRIPT_GROUPS.items()}
    return {group: {name: value for name, value in points.items() if isinstance(value, str)} for group, points in groups.items() if points}


def _assigned_version(folder: Path, name: str, roots: tuple[Path, ...], tools: Mapping[str, Any]) -> str | None:
    """Return the version that a file of the project assigns to `__version__`, where the back end reads it; None where no file does."""
    for file in _version_files(folder, name, roots, tools):
        if file.is_file() and (version := _ASSIGNED_VERSION.search(file.read_text(encoding="utf-8", errors="replace"))):
            return version[1]
    return None


def _version_files(folder: Path, name: str, roots: tuple[Path, ...], tools: Mapping[str, Any]) -> Iterator[Path]:
    named = text(table(tools, "hatch", "version"), "path")
    if named:
        yield folder / named
    attribute = text(table(tools, "setuptools", "dynamic", "version"), "attr")
    modules = [attribute.rpartition(".")[0].replace(".", "/")] if attribute else []
    for root in roots:
        for module in (*modules, importable.module_name(name)):
            yield from (root / module / file_name for file_name in ("__init__.py", "__about__.py", "_version.py", "version.py"))
            yield root / f"{module}.py"
