"""Whether the modules of a project can be imported as they lie in its tree, and from which folders.

That is so where an installation would hold the project's files and nothing else. An editable install by the back end would do the same, but
takes a second or more for each revision. Wherever a setting is not known to be harmless, the back end is left to decide.
"""

from __future__ import annotations

import ast
import configparser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from perfdiff.languages.python.pyproject import normal, table, text, texts

# Back ends whose wheels hold a project's files as they lie where nothing else is asked for, and what these need to be built with.
_COPYING: Mapping[str, frozenset[str]] = {
    "setuptools.build_meta": frozenset({"setuptools", "wheel"}),
    "flit_core.buildapi": frozenset({"flit-core"}),
    "hatchling.build": frozenset({"hatchling"}),
    "poetry.core.masonry.api": frozenset({"poetry-core"}),
    "pdm.backend": frozenset({"pdm-backend"}),
    "uv_build": frozenset({"uv-build"}),
}
_TOOLS: Mapping[str, str] = {
    "setuptools.build_meta": "setuptools",
    "flit_core.buildapi": "flit",
    "hatchling.build": "hatch",
    "poetry.core.masonry.api": "poetry",
    "pdm.backend": "pdm",
    "uv_build": "uv",
}
# Settings of these tools that do not decide which modules a wheel holds: of data, of other commands, of development.
_HARMLESS: Mapping[str, frozenset[str]] = {
    "setuptools": frozenset({"include-package-data", "package-data", "exclude-package-data", "zip-safe", "license-files", "platforms"}),
    "flit": frozenset({"sdist"}),
    "hatch": frozenset({"envs", "publish"}),
    "poetry": frozenset({"group", "dependencies", "dev-dependencies", "requires-poetry", "source"}),
    "pdm": frozenset({"dev-dependencies", "scripts", "source", "resolution", "options"}),
    "uv": frozenset({"sources", "dev-dependencies", "index", "index-url", "extra-index-url", "find-links", "pip", "environments"}),
}
_DATA = ("include_package_data", "package_data", "exclude_package_data", "data_files")  # of setuptools, in `setup.py` and `setup.cfg`
# Settings that decide which files a wheel holds beside modules, in whatever depth: a tree holds all.
_OF_FILES: Mapping[str, tuple[str, ...]] = {
    "setuptools": ("include-package-data", "package-data", "exclude-package-data"),
    "hatch": ("build",),
    "poetry": ("include", "exclude"),
    "pdm": ("build",),
    "uv": ("build-backend",),
}


def of_files(tools: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of tools that decide which of a project's files are installed."""
    settings = {tool: table(tools, tool) for tool in _OF_FILES}
    return {f"{tool}.{key}": settings[tool][key] for tool, keys in _OF_FILES.items() for key in keys if key in settings[tool]}


def of_files_by_setup(name: str, content: str) -> dict[str, Any]:
    """Return the same of a `setup.py` or `setup.cfg`, by its name; none where it cannot be parsed."""
    try:
        if name == "setup.py":
            keywords = (node for node in ast.walk(ast.parse(content)) if isinstance(node, ast.keyword) and node.arg in _DATA)
            return {str(keyword.arg): ast.unparse(keyword.value) for keyword in keywords}
        parser = configparser.RawConfigParser()
        parser.read_string(content)
    except (SyntaxError, ValueError, configparser.Error):
        return {}
    sections = {key: dict(parser.items(section)) for key in _DATA if parser.has_section(section := f"options.{key}")}
    return {**sections, **{key: parser.get("options", key) for key in _DATA if parser.has_option("options", key)}}


def roots(folder: Path, name: str, backend: str, build_requirements: Sequence[str], tools: Mapping[str, Any]) -> tuple[Path, ...] | None:
    """Return the folders from which the modules of a project can be imported as they lie; None where its back end has to decide."""
    if backend not in _COPYING or not {_required(requirement) for requirement in build_requirements} <= _COPYING[backend]:
        return None
    declared = _declared(backend, tools)
    if declared is None:
        return None
    folders = tuple(dict.fromkeys(folder / root for root in declared)) or _usual(folder, name)
    return folders if all(root.is_dir() and root.resolve().is_relative_to(folder.resolve()) for root in folders) else None


def module_name(name: str) -> str:
    """Return the name that the module of a distribution usually has."""
    return normal(name).replace("-", "_")


def _required(requirement: str) -> str:
    try:
        return normal(Requirement(requirement).name)
    except InvalidRequirement:
        return ""  # no back end's name


def _usual(folder: Path, name: str) -> tuple[Path, ...]:
    """Return `src`, or the folder itself, whichever has modules: the two layouts that all back ends find by themselves."""
    if any((folder / "src").glob("*/__init__.py")) or (folder / "src" / f"{module_name(name)}.py").is_file():
        return (folder / "src",)
    return (folder,)


def _declared(backend: str, tools: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the folders that the back end's settings name as those of modules; None where a setting is not known."""
    tool = _TOOLS[backend]
    settings = {key: value for key, value in table(tools, tool).items() if key not in _HARMLESS[tool]}
    match tool:
        case "setuptools":
            return _setuptools(settings)
        case "hatch":
            return _hatch(settings)
        case "poetry":
            return _poetry(settings)
        case _:
            return () if not settings else None


def _setuptools(settings: Mapping[str, Any]) -> tuple[str, ...] | None:
    where = table(settings, "package-dir")
    if not settings.keys() <= {"packages", "py-modules", "package-dir", "dynamic"} or not where.keys() <= {""}:
        return None
    searched = texts(table(settings, "packages", "find"), "where")
    named = text(where, "")
    return searched or ((named,) if named else ())


def _hatch(settings: Mapping[str, Any]) -> tuple[str, ...] | None:
    wheel = table(settings, "build", "targets", "wheel")
    unknown = (
        settings.keys() - {"build", "version", "metadata"},
        table(settings, "build").keys() - {"targets"},
        table(settings, "build", "targets").keys() - {"wheel", "sdist"},
        wheel.keys() - {"packages"},
        table(settings, "version").keys() - {"path"},
        table(settings, "metadata").keys() - {"allow-direct-references"},
    )
    return None if any(unknown) else tuple(str(Path(package).parent) for package in texts(wheel, "packages"))


def _poetry(settings: Mapping[str, Any]) -> tuple[str, ...] | None:
    packages = settings.get("packages", [])
    if not settings.keys() <= {"packages"} or not isinstance(packages, list) or not all(isinstance(package, dict) for package in packages):
        return None
    if any(not package.keys() <= {"include", "from"} for package in packages):
        return None
    return tuple(text(package, "from") or "." for package in packages)
