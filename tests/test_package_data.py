"""That an installed perfdiff has all files which it compiles, runs and renders, not its modules alone."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_file_that_is_no_module_goes_with_its_package() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    packaged = {found for package, patterns in listed.items() for pattern in patterns for found in _matching(package, pattern)}
    there = {path for path in (ROOT / "perfdiff").rglob("*") if path.is_file() and not _is_module(path)}
    assert sorted(path.relative_to(ROOT) for path in there - packaged) == []


def test_every_pattern_of_files_finds_some() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    assert [(package, pattern) for package, patterns in listed.items() for pattern in patterns if not _matching(package, pattern)] == []


def _is_module(path: Path) -> bool:
    return path.suffix == ".pyc" or (path.suffix == ".py" and (path.parent / "__init__.py").is_file())


def _matching(package: str, pattern: str) -> list[Path]:
    return [path for path in ROOT.joinpath(*package.split(".")).glob(pattern) if path.is_file()]
