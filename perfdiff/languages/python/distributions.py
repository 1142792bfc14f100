"""Installed distributions, read from the folders they lie in: their versions, and what they require."""

from __future__ import annotations

import importlib.metadata
import json
import re
import urllib.parse
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath

from packaging.requirements import InvalidRequirement, Requirement

from perfdiff.languages.python.pyproject import normal


def versions(folders: Iterable[Path], tree: Path, place: Path) -> dict[str, str]:
    """Return the versions of the distributions in folders of packages by name, without the project's own.

    These come from the folder `place` of `tree`, from a folder above it, or lie in the tree as they are imported (editable); what was
    installed from another folder of the tree is a copy of somebody else's that the project keeps.
    Where several folders have one of a name, the first one counts, as it is what is imported.
    """
    by_name: dict[str, str] = {}
    for distribution in _all(folders):
        name = distribution.metadata["Name"]
        if name and not _is_own(distribution, tree, place):
            by_name.setdefault(normal(name), distribution.version)
    return by_name


def files(folders: Iterable[Path], names: Collection[str]) -> Iterator[tuple[str, Path]]:
    """Yield the Python files of distributions: their paths in the folder where they are installed, and where that is."""
    for distribution in _all(folders):
        if normal(distribution.metadata["Name"] or "") in names:
            for file in distribution.files or ():
                path = Path(str(distribution.locate_file(file)))
                if file.suffix == ".py" and ".." not in file.parts and path.is_file():
                    yield file.as_posix(), path


def used(folders: Iterable[Path], met: Collection[str]) -> set[str]:
    """Return the names of the distributions in folders that have a module or package of which a file is among the paths `met`."""
    names = set()
    for folder in folders:
        below = [Path(path).relative_to(folder.resolve()) for path in met if Path(path).is_relative_to(folder.resolve())]
        modules = {_module(path) for path in below} - {""}
        names |= {
            normal(distribution.metadata["Name"] or "")
            for distribution in _all([folder])
            if modules & set(map(_module, distribution.files or ()))
        }
    return names


def _module(path: PurePath) -> str:
    """Return the module or package at the top of a folder of packages that a file is of, "" of one that describes a distribution."""
    first = next((part for part in path.parts if part != "__pycache__"), "")
    return "" if first.endswith(".dist-info") else first.partition(".")[0]


def satisfy(folders: Iterable[Path], requirements: Iterable[str], setting: Mapping[str, str]) -> bool:
    """Return whether the distributions in folders meet the requirements, and the requirements of these in turn.

    `setting` are variables of markers (PEP 508) that the interpreter decides. What is no requirement by name is taken for missing.
    """
    installed = {normal(distribution.metadata["Name"] or ""): distribution for distribution in _all(folders)}
    pending, seen = [(text, "") for text in requirements], set[tuple[str, str]]()
    while pending:
        text, extra = asked = pending.pop()
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            return False
        if asked in seen or (requirement.marker and not requirement.marker.evaluate({**setting, "extra": extra})):
            continue
        seen.add(asked)
        distribution = installed.get(normal(requirement.name))
        if distribution is None or not requirement.specifier.contains(distribution.version, prereleases=True):
            return False
        pending.extend((further, name) for name in ("", *requirement.extras) for further in distribution.requires or ())
    return True


def is_installed(folder: Path, name: str, tree: Path) -> bool:
    """Return whether a folder of packages has the distribution of a name, or one whose sources lie in `tree`."""
    if next(folder.glob("*.egg-link"), None) is not None:  # as `setup.py develop` leaves it
        return True
    return any(
        normal(distribution.metadata["Name"] or "") == normal(name)
        or ((source := _source(distribution)) is not None and source[0].is_relative_to(tree))
        for distribution in _all([folder])
    )


def lies_in(folder: Path, tree: Path) -> bool:
    """Return whether a distribution in a folder of packages is imported from a tree as it lies there (editable)."""
    sources = filter(None, map(_source, _all([folder])))
    return any(is_editable and place.is_relative_to(tree) for place, is_editable in sources)


def otherwise_started(base: Iterable[Path], head: Iterable[Path], tree: Path, commands: Sequence[str]) -> tuple[str, ...]:
    """Return the commands that an installation offers whose code in head is another function than base's, which head still has.

    `base` and `head` are folders of packages. What `commands` of workloads run themselves is compared.
    """
    offered = [_commands(folders) for folders in (base, head)]
    moved = [name for name, start in offered[1].items() if offered[0].get(name, start) != start and _is_there(offered[0][name], tree)]
    return tuple(
        name for name in moved if not any(re.search(rf"(?<![\w-])(?<!-m ){re.escape(name)}(?![\w./-])", text) for text in commands)
    )


def _commands(folders: Iterable[Path]) -> dict[str, str]:
    """Return what starts each command, as `package.module:function`."""
    return {
        entry.name: entry.value
        for distribution in _all(folders)
        for entry in distribution.entry_points
        if entry.group in ("console_scripts", "gui_scripts")
    }


def _is_there(start: str, tree: Path) -> bool:
    """Return whether a tree has a module that defines the function, or imports it, by which a command started."""
    module, _, function = start.partition(":")
    defined = re.compile(
        rf"^(?:(?:async )?def {re.escape(function)}\b|{re.escape(function)}\s*=|(?:from|import)\b.*\b{re.escape(function)}\b)", re.MULTILINE
    )
    places = (tree / root / f"{module.replace('.', '/')}{end}" for root in ("", "src", "lib") for end in (".py", "/__init__.py"))
    return any(defined.search(place.read_text(errors="replace")) for place in places if place.is_file())


def _all(folders: Iterable[Path]) -> Iterable[importlib.metadata.Distribution]:
    return importlib.metadata.distributions(path=[str(folder) for folder in folders])


def _is_own(distribution: importlib.metadata.Distribution, tree: Path, place: Path) -> bool:
    source = _source(distribution)
    if source is None:
        return False
    folder, is_editable = source
    return folder.is_relative_to(tree) and (is_editable or place.is_relative_to(folder))


def _source(distribution: importlib.metadata.Distribution) -> tuple[Path, bool] | None:
    """Return the folder whose sources a distribution was installed from, and whether it is imported from there (PEP 610)."""
    try:
        document = json.loads(distribution.read_text("direct_url.json") or "{}")
        url = urllib.parse.urlsplit(document.get("url", ""))
        is_editable = bool(document.get("dir_info", {}).get("editable"))
    except (ValueError, AttributeError):
        return None
    return (Path(urllib.parse.unquote(url.path)), is_editable) if url.scheme == "file" else None
