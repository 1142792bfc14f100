"""The packages of others that a revision uses, as Composer laid or locked them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

_INSTALLED = "vendor/composer/installed.json"
_LOCKED = "composer.lock"


def versions(folder: Path) -> dict[str, str]:
    """Return the versions of packages by their names (`vendor/name`): those installed in a project's folder, else those locked there."""
    for name in (_INSTALLED, _LOCKED):
        versions_by_name = dict(_versions(_read(folder / name)))
        if versions_by_name:
            return dict(sorted(versions_by_name.items()))
    return {}


def unfollowed(differing: Mapping[str, Mapping[int, Path]], installed: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """Return the lock file at the top of a project, if base and head lock other versions in it of what both have `installed` alike."""
    places = differing.get(_LOCKED, {})
    base, head = (dict(_versions(_read(places[side]))) if side in places else {} for side in range(2))
    alike = {name for name, version in installed[0].items() if installed[1].get(name) == version}
    return (_LOCKED,) if any(base[name] != head[name] for name in alike & base.keys() & head.keys()) else ()


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def _versions(document: Any) -> Iterator[tuple[str, str]]:
    """Yield names and versions; Composer 1 wrote a plain list of packages, and tools of developers are locked apart."""
    packages = document.get("packages") if isinstance(document, dict) else document
    for package in packages if isinstance(packages, list) else ():
        if isinstance(package, dict) and isinstance(package.get("name"), str) and isinstance(package.get("version"), str):
            commit = _commit(package) if package["version"].startswith("dev-") else ""
            yield package["name"], f"{package['version']}{commit}"


def _commit(package: dict[str, Any]) -> str:
    """Return which commit of a branch a package is."""
    for name in ("source", "dist"):
        place = package.get(name)
        if isinstance(place, dict) and isinstance(place.get("reference"), str):
            return f" {place['reference'][:7]}"
    return ""
