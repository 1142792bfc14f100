"""PHP projects, known by the files at the top of a source tree, and by what their workloads run."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path

from perfdiff.configuration import buildsystem, pythonproject, shellwords

_PROGRAMS = re.compile(r"php[0-9.]*|php-fpm[0-9.]*|phpunit|phpbench|.+\.php")
_COMPOSER = "composer.json"
_ENTRIES = ("index.php", "public/index.php", "web/index.php", "src/index.php")
_EXTENSION = "config.m4"  # of an extension in C, whose build PHP's own tools make
_MOST_FILES = 500  # that are looked at in search of a script


def recognise(folder: Path, commands: Sequence[str]) -> str | None:
    """Return what tells a PHP project in `folder`: a file's name, or one of the `commands` of its workloads; None where nothing does.

    Where the files of other languages are known too, a workload must start PHP: tools and pages in it lie beside many a program. Where no
    command is known, a script at the top tells a project as well.
    """
    command = next((command for command in commands if any(map(_PROGRAMS.fullmatch, shellwords.programs(command)))), None)
    if buildsystem.compiles(folder) or pythonproject.recognise(folder, ()) is not None or (folder / _EXTENSION).is_file():
        return command
    file = next((name for name in (_COMPOSER, *_ENTRIES) if (folder / name).is_file()), None)
    loose = None if commands else next((path.name for path in sorted(folder.glob("*.php"))), None)
    return file or command or loose


def script(folder: Path) -> str | None:
    """Return a program that may be a workload: one that Composer's file names, or a script in `bench`, `bin` or at the top."""
    named = _named(folder / _COMPOSER)
    if named is not None and (folder / named).is_file():
        return named
    for pattern in ("bench*/*.php", "bin/*", "*.php"):
        for path in itertools.islice(sorted(folder.glob(pattern)), _MOST_FILES):
            if path.is_file() and path.name not in ("index.php", "autoload.php"):
                return path.relative_to(folder).as_posix()
    return None


def _named(file: Path) -> str | None:
    try:
        programs = json.loads(file.read_text(encoding="utf-8")).get("bin", [])
    except (OSError, ValueError, AttributeError):
        return None
    found = programs if isinstance(programs, list) else [programs]
    return next((name for name in found if isinstance(name, str)), None)
