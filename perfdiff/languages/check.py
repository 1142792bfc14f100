"""One answer of the doctor."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from perfdiff.errors import PerfdiffError

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
