"""One answer of the doctor."""

from __future__ import annotations

import importlib
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from perfdiff.errors import PerfdiffError
from perfdiff.languages.answers import answer

_COMPILERS = ("cc", "gcc", "clang")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing a comparison needs or profits from. `says` is what was found; `remedy` what to do where `found` is false."""

    name: str
    needed: bool  # whether no comparison is possible without it
    found: bool
    says: str
    remedy: str = ""


def refused(name: str, error: PerfdiffError, otherwise: str, *, is_needed: bool) -> Check:
    """Return what a message says as a check: what is the matter, and what to do, or else what is told here."""
    says, _, remedy = str(error).partition("; ")
    return Check(name, needed=is_needed, found=False, says=says, remedy=remedy or otherwise)


def told(name: str, tell: Callable[[], object], otherwise: str, *, is_needed: bool) -> Check:
    """Return a passed check with what `tell` returns as its text, or a failed one with the message that `tell` raises."""
    try:
        says = str(tell())
    except PerfdiffError as error:
        return refused(name, error, otherwise, is_needed=is_needed)
    return Check(name, needed=is_needed, found=True, says=says)


def loads_ours(name: str, machine: str, start: Callable[[], tuple[Sequence[str], Mapping[str, str]]], otherwise: str) -> Check:
    """Return whether a `machine`, such as the JVM, loads what we compile: `start` does that, and returns a command and its environment."""
    try:
        command, environment = start()
        ended = answer(command, environment=environment)
    except PerfdiffError as error:
        return refused(name, error, otherwise, is_needed=True)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check(name, needed=True, found=False, says=f"{machine} cannot be started: {error}", remedy=otherwise)
    says = f"{machine} does not load it: {(ended.stderr or ended.stdout).strip().splitlines()[-1:]}"
    is_done = ended.returncode == 0
    return Check(name, True, is_done, *((f"compiles, and {machine} loads it",) if is_done else (says, otherwise)))


def loads(name: str, package: str, *, is_needed: bool) -> Check:
    """Return whether a parser loads that a package of the package index brings."""
    remedy = f"reinstall the Python packages: pip install --force-reinstall tree-sitter {package}"
    try:
        importlib.import_module(package.replace("-", "_"))
    except ImportError as error:
        return Check(name, needed=is_needed, found=False, says=f"cannot be loaded: {error}", remedy=remedy)
    return Check(name, needed=is_needed, found=True, says="loads")


def compiler(variables: Mapping[str, str]) -> str:
    """Return the name of a C compiler on the path of these variables; where there is none, of one that would be taken."""
    return next((name for name in _COMPILERS if shutil.which(name, path=variables.get("PATH"))), _COMPILERS[0])
