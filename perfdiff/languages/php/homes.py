"""The PHP of a revision: workloads find the same one on both sides, and it is kept beside the tree which one that was."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfdiff.errors import store_errors
from perfdiff.languages.dependencies import keep, kept
from perfdiff.languages.php import interpreters, packages
from perfdiff.languages.php.interpreters import PhpInterpreter
from perfdiff.languages.php.traits import PhpConfig
from perfdiff.languages.protocol import Prepared
from perfdiff.records.schema import Note

SUITES = "PERFDIFF_PHP_SUITES"  # names the folder of the drivers by which suites of benchmarks and tests run

_RECORD = "php.json"
_DRIVERS = Path(__file__).parent / "suites" / "drivers"
_PROGRAMS = "php-programs"  # beside the tree: the folder in which `php` is the one that the configuration names


@dataclass(frozen=True, slots=True)
class PhpHome:
    """What a built revision runs under: the program, its release, and `versions` of packages of others."""

    executable: Path
    release: str
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PhpHomes:
    """Gives the revisions of a project their PHP. `project` is its folder in the user's checkout, `environment` the user's."""

    config: PhpConfig
    project: Path
    environment: Mapping[str, str]

    @property
    def php(self) -> PhpInterpreter:
        """Return the PHP of all revisions; raise BuildError (`no-php`, `php-unsupported`)."""
        return interpreters.find(self.config.interpreter, self.project, self.environment)

    @property
    def identity(self) -> str:
        """Return the part of a build's key that its PHP determines."""
        return self.php.identity

    def prepare(self, beside: Path, tree: Path, place: Path, environment: Mapping[str, str]) -> Prepared:
        """Return the variables by which the build finds PHP; raise BuildError."""
        php = self.php
        if self.config.interpreter is None:
            return Prepared({})
        with store_errors(beside):
            (beside / _PROGRAMS).mkdir(exist_ok=True)
            (beside / _PROGRAMS / interpreters.DEFAULT).symlink_to(php.executable)
        return Prepared(_path(beside, environment))

    def broken(self, beside: Path) -> str | None:
        """Return why a kept build cannot run: its PHP is gone."""
        executable = read(beside).executable
        return None if executable.is_file() else f"{executable} is gone"

    def finish(self, beside: Path, tree: Path, place: Path, environment: Mapping[str, str]) -> tuple[Note, ...]:
        """Store the PHP of a build, and the packages that the revision has."""
        php = self.php
        with store_errors(beside):
            keep(beside / _RECORD, PhpHome(php.executable, php.release, packages.versions(place)))
        return ()


def read(beside: Path) -> PhpHome:
    """Return what the build in a folder runs under; raise StoreError (`damaged-build`) where that cannot be read."""
    return kept(PhpHome, beside / _RECORD, "what is kept of PHP in")


def variables(beside: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return what makes commands find the PHP that a configuration names, if it names one, and the drivers of suites."""
    return {**_path(beside, environment), SUITES: str(_DRIVERS)}


def _path(beside: Path, environment: Mapping[str, str]) -> dict[str, str]:
    folder = beside / _PROGRAMS
    return {"PATH": os.pathsep.join([str(folder), *filter(None, [environment.get("PATH", "")])])} if folder.is_dir() else {}
