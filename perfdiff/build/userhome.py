"""A home for each build and its runs: by links it has what the user's has, and what is new there stays with the build.

In one home for both sides, head would use what base's build or runs have put into a cache there. What the user's home had before the
build is the same for both, and is never copied: it may be large.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping
from pathlib import Path

from perfdiff.languages.installed import installed

NAME = "home"  # of the folder, beside a build's tree
COPY = f"{NAME}.pristine"  # of what stands in it while commands run there (`collect/pristine.py`)
# In these programs make entries of their own (XDG Base Directory Specification): they are folders, and hold links.
_SHARED = ("", ".cache", ".config", ".local", ".local/share", ".local/state")
_XDG = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
# What package managers have loaded is the same whoever asks for it, and not loaded anew by each build. These build parts of projects in
# languages that have no pack.
_PACKAGES = {"npm_config_cache": ".npm", "CARGO_HOME": ".cargo", "GOMODCACHE": "go/pkg/mod"}


def lay_out(beside: Path, environment: Mapping[str, str]) -> None:
    """Make the home in a build's folder, or link what the user's has got since; nothing where the user has none. Raise OSError."""
    user = _user(environment)
    if user is None:
        return
    (beside / NAME).mkdir(exist_ok=True)
    for home in (beside / NAME, beside / COPY):
        for folder in _SHARED if home.is_dir() else ():
            _link(user, home, folder)


def variables(home: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return by which variables commands find the home of a build, none where it has none."""
    user = _user(environment)
    if user is None or not home.is_dir():
        return {}
    moved = {name: str(home / Path(value).relative_to(user)) for name in _XDG if (value := _below(environment.get(name), user))}
    packages = itertools.chain(_PACKAGES.items(), *(traits.building.packages.items() for traits in installed()))
    shared = {name: str(user / folder) for name, folder in packages if name not in environment}
    return {"HOME": str(home), **moved, **shared}


def is_untouched(beside: Path) -> bool:
    """Return whether nothing stands in the home of a build but links, and folders that hold such."""
    holders = {beside / NAME / folder for folder in _SHARED}
    entries = (entry for holder in holders if holder.is_dir() and not holder.is_symlink() for entry in holder.iterdir())
    return all(entry.is_symlink() or entry in holders for entry in entries)


def _user(environment: Mapping[str, str]) -> Path | None:
    home = Path(environment.get("HOME", ""))
    return home if home.is_absolute() and home != Path("/") and home.is_dir() else None


def _below(path: str | None, folder: Path) -> str | None:
    return path if path and Path(path).is_relative_to(folder) else None


def _link(user: Path, home: Path, folder: str) -> None:
    """Link in a folder of a home what that of the user's has, but for the folders that hold links; what denies listing has none."""
    theirs, own = user / folder, home / folder
    if not theirs.is_dir() or own.is_symlink():
        return
    own.mkdir(exist_ok=True)
    holders = {user / name for name in _SHARED}
    with contextlib.suppress(PermissionError):
        for entry in theirs.iterdir():
            place = own / entry.name
            if not (entry in holders and entry.is_dir()) and not place.is_symlink() and not place.exists():
                place.symlink_to(entry)
