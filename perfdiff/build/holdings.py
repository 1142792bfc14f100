"""Where the cache is, and what lies in it, by its names: all else in its folders is somebody else's, and is left alone."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from perfdiff.languages.installed import installed
from perfdiff.languages.traits import DRAFT, KEY, Holding

HOLDINGS: Mapping[str, Holding] = {
    "trees": Holding("builds", (KEY,), holds_folders=True, ageing=False),  # by their own locks
    "experiments": Holding("recordings of comparisons", (KEY + DRAFT,), holds_folders=True),
    "findings": Holding("findings of comparisons", (rf"{KEY}\.json{DRAFT}",), holds_folders=False),
    "places": Holding("counts of places", (KEY + DRAFT,), holds_folders=True),
    **{folder: holding for traits in installed() for folder, holding in traits.building.holdings.items()},
    "snapshots": Holding(
        "copies of working trees", ("objects", "[0-9a-f]{2}|pack|info", ".+"), holds_folders=False, beside=r"\.gitignore|tmp\w+"
    ),
    "repositories": Holding("repositories of others that are measured here", (KEY,), holds_folders=True),
    "runtime": Holding("runtime libraries", (r"[a-z]+-[\w.-]+",), holds_folders=True),
    "callmaps": Holding("what benchmarks and tests call", (rf"{KEY}\.json",), holds_folders=False),
    "bisects": Holding("states of bisects", (r"[0-9a-f]+\.(?:json|writing)",), holds_folders=False),
    "logs": Holding("build logs", (rf"{KEY}\.log|service-.+\.log",), holds_folders=False, ageing=False),
    "locks": Holding("other", (rf"{KEY}|in-use|at-work|station",), holds_folders=False, ageing=False),
    "stations": Holding("builds of recordings", (r"[1-9]\d*",), holds_folders=True, ageing=False),
}
SOURCE, BUILD, OUTCOME = "source", "build", "outcome.json"  # within a build's folder
# What else stands beside such folders.
_BESIDE = r"\.gitignore|room|removed|(?:last|names)-[0-9a-f]{32}"


def folder(environment: Mapping[str, str]) -> Path:
    """Return the cache where none is given: `$PERFDIFF_CACHE`, else `perfdiff` in the user's cache folder."""
    if own := environment.get("PERFDIFF_CACHE"):
        return Path(own).absolute()
    # The specification says that a relative path in XDG_CACHE_HOME is to be ignored.
    user = Path(environment.get("XDG_CACHE_HOME", ""))
    return (user if user.is_absolute() else Path.home() / ".cache") / "perfdiff"


def entries(cache: Path, folder: str) -> tuple[Path, ...]:
    """Return what perfdiff keeps in a folder of a cache, in the order of the names; what cannot be read counts as absent."""
    holding = HOLDINGS[folder]
    above = [cache / folder]
    for level, name in enumerate(holding.names):
        is_folder = holding.holds_folders or level + 1 < len(holding.names)
        above = [path for place in above for path in _listed(place) if re.fullmatch(name, path.name) and _is_kind(path, is_folder)]
    return tuple(above)


def strangers(cache: Path) -> Iterator[Path]:
    """Yield what lies in a cache, or in its folders, that perfdiff has not laid there or cannot read, the topmost of each."""
    for path in _listed(cache):
        if path.name in HOLDINGS and _is_kind(path, is_folder=True):
            yield from _strangers_below(path, HOLDINGS[path.name])
        elif not re.fullmatch(_BESIDE, path.name):
            yield path


def _strangers_below(folder: Path, holding: Holding) -> Iterator[Path]:
    own, places = holding.beside, [folder]
    for level, name in enumerate(holding.names):
        is_last = level + 1 == len(holding.names)
        below: list[Path] = []
        for place in places:
            if not os.access(place, os.R_OK | os.X_OK):
                yield place
            for path in _listed(place):
                if re.fullmatch(name, path.name) and _is_kind(path, holding.holds_folders or not is_last):
                    below.append(path)
                elif own is None or level or not re.fullmatch(own, path.name):
                    yield path
        places = below
    if holding.holds_folders:
        yield from (place for place in places if not os.access(place, os.R_OK | os.X_OK))


def _listed(folder: Path) -> list[Path]:
    """Return what lies in a folder in the order of the names, nothing where it cannot be read."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _is_kind(path: Path, is_folder: bool) -> bool:
    """Return whether something is a folder, or a file, itself and not by a link."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return stat.S_ISDIR(mode) if is_folder else stat.S_ISREG(mode)
