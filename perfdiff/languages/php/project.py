"""PHP projects, known by the files at the top of a source tree, and by what their workloads run."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path

from perfdiff.configuration import buildsystem, shellwords
from perfdiff.configuration.buildsystem import BuildSystem
from perfdiff.configuration.recognition import Draft, ProjectKind

_PROGRAMS = re.compile(r"php[0-9.]*|php-fpm[0-9.]*|phpunit|phpbench|.+\.php")
_COMPOSER = "composer.json"
_ENTRIES = ("index.php", "public/index.php", "web/index.php", "src/index.php")
_EXTENSION = "config.m4"  # of an extension in C, whose build PHP's own tools make
_MOST_FILES = 500  # that are looked at in search of a script


_COMMAND = "php {script} {{n}}"
_AS_IT_LIES = "{file} was found. Each revision runs as it lies, with the `vendor` that it has. What builds more of it, if anything:"
_SECTION = """\
[php]
# interpreter = "php8.2"       # by name or path: its release, headers and ini files; else `php` on PATH

"""


class PhpProject:
    """How PHP projects are recognised. They need no build."""

    leads = False
    needs_build = False

    def recognise(self, folder: Path, commands: Sequence[str], *, is_led: bool) -> str | None:
        """Return what tells a PHP project in `folder`: a file's name, or one of the `commands` of its workloads.

        Where the files of other languages are known too, a workload must start PHP: tools and pages in it lie beside many a program. Where
        no command is known, a script at the top tells a project as well.
        """
        command = next((command for command in commands if any(map(_PROGRAMS.fullmatch, shellwords.programs(command)))), None)
        if buildsystem.compiles(folder) or is_led or (folder / _EXTENSION).is_file():
            return command
        file = next((name for name in (_COMPOSER, *_ENTRIES) if (folder / name).is_file()), None)
        loose = None if commands else next((path.name for path in sorted(folder.glob("*.php"))), None)
        return file or command or loose

    def is_ready(self, folder: Path, sign: str | None, commands: Sequence[str], others: Sequence[ProjectKind]) -> bool:
        """Return whether nothing is compiled: what a project has of other languages beside its PHP is built all the same."""
        return not buildsystem.compiles(folder) and all(other.build_system(folder) is None for other in others)

    def build_system(self, folder: Path, *, named: bool = False) -> BuildSystem | None:
        """Return None: a project runs as it lies."""
        return None

    def draft(self, folder: Path, sign: str) -> Draft:
        """Return the start of a configuration: the section `[php]`, and a workload that runs a script of the project."""
        own = script(folder)
        unbuilt = _AS_IT_LIES.format(file=sign), '# command = "composer install --no-dev"'
        return Draft(_SECTION, _COMMAND.format(script=own or "benchmark.php"), unbuilt, is_guessed=own is not None)


def script(folder: Path) -> str | None:
    """Return a program that may be a workload: one that Composer's file names, or a script in `bench`, `bin` or at the top."""
    named = _named(folder / _COMPOSER)
    if named is not None and (folder / named).is_file():
        return named
    for pattern in ("bench*/*.php", "bin/*", "*.php"):
        for path in itertools.islice(sorted(folder.glob(pattern)), _MOST_FILES):
            if path.is_file() and path.name not in ("index.php", "autoload.php") and _runs(path):
                return path.relative_to(folder).as_posix()
    return None


def _runs(path: Path) -> bool:
    """Return whether a file does something when it is run: benchmarks and tests of frameworks only declare classes."""
    from perfdiff.languages.php import syntax

    try:
        return not syntax.declares(syntax.parse(path.read_bytes()))
    except OSError:
        return False


def _named(file: Path) -> str | None:
    try:
        programs = json.loads(file.read_text(encoding="utf-8")).get("bin", [])
    except (OSError, ValueError, AttributeError):
        return None
    names = programs if isinstance(programs, list) else [programs]
    return next((name for name in names if isinstance(name, str)), None)
