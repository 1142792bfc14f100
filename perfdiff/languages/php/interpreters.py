"""The PHP that a project's programs run under: found by name or path, asked once what it is."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from perfdiff.errors import BuildError
from perfdiff.languages.answers import answer

DEFAULT = "php"
SUPPORTED = ((8, 1), (8, 4))  # the first and the last version whose engine the probes know

# Without ini files: what a project's own say is nothing that a build depends on, and extensions of theirs take time to load.
_ASKING = ("-n", "-d", "display_errors=0", "-r")
_QUESTION = """
ob_start();
phpinfo(INFO_GENERAL);
$build = preg_match('/^PHP Extension Build => (.*)$/m', ob_get_clean(), $found) ? $found[1] : '';
echo json_encode([PHP_BINARY, PHP_VERSION, PHP_MAJOR_VERSION, PHP_MINOR_VERSION, (bool) PHP_ZTS, $build]);
"""


@dataclass(frozen=True, slots=True)
class PhpInterpreter:
    """A PHP interpreter, as it describes itself.

    `config` is the `php-config` of the same build, None where its headers are not installed. `api` is what an extension must have been
    compiled for: the number of the engine's interface, threads or none, debug or not.
    """

    executable: Path
    release: str
    version: tuple[int, int]
    is_threaded: bool
    api: str
    config: Path | None

    @property
    def identity(self) -> str:
        """Return the part of a build's key that this PHP determines."""
        return f"{self.executable} {self.release} {self.api}"


def find(named: str | None, project: Path, environment: Mapping[str, str]) -> PhpInterpreter:
    """Return the PHP of a name or path; of `php` on PATH where none is named, as somebody finds it who stands in `project`.

    Raises BuildError: `no-php` where there is none, `php-unsupported` where it is one whose calls cannot be measured.
    """
    command = named or DEFAULT
    path = environment.get("PATH", "")
    program = shutil.which(command if os.sep not in command else str(project / Path(command).expanduser()), path=path)
    if program is None:
        raise BuildError(
            f"no PHP '{command}' was found{'' if os.sep in command else ' on PATH'}; install it (Debian and Ubuntu: php-cli), or name "
            "another one in [php] interpreter",
            slug="no-php",
        )
    return _described(program, path)


@functools.lru_cache
def _described(program: str, path: str) -> PhpInterpreter:
    try:
        ended = answer([program, *_ASKING, _QUESTION], environment={"PATH": path})
        binary, release, major, minor, is_threaded, api = json.loads(ended.stdout)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{program} cannot be run: {error}", slug="no-php") from error
    except ValueError as error:
        raise BuildError(
            f"{program} does not say what it is (exit code {ended.returncode}), as every PHP does from the command line; name another one "
            "in [php] interpreter",
            slug="no-php",
            detail=ended.stderr,
        ) from error
    executable = Path(binary or program).resolve()
    php = PhpInterpreter(
        executable, release, (major, minor), is_threaded, api, _config(Path(program), executable, release, (major, minor), path)
    )
    _check(program, php)
    return php


def _config(program: Path, executable: Path, release: str, version: tuple[int, int], path: str) -> Path | None:
    """Return the `php-config` that tells of the same release: beside the program, then on PATH."""
    number = ".".join(map(str, version))
    names = [
        executable.name.replace("php", "php-config", 1),
        f"php-config{number}",
        f"php-config{number.replace('.', '')}",
        "php-config",
    ]
    folders = [program.parent, executable.parent]
    for candidate in _candidates(names, folders, path):
        try:
            answered = answer([candidate, "--version"])
        except (OSError, subprocess.TimeoutExpired):
            continue
        if answered.stdout.strip() == release:
            return candidate
    return None


def _candidates(names: list[str], folders: list[Path], path: str) -> Iterator[Path]:
    seen = dict.fromkeys([*map(str, folders), *path.split(os.pathsep)])
    for name in names:
        for folder in filter(None, seen):
            path_of_program = shutil.which(name, path=folder)
            if path_of_program:
                yield Path(path_of_program)


def _check(program: str, php: PhpInterpreter) -> None:
    first, last = (".".join(map(str, version)) for version in SUPPORTED)
    if not SUPPORTED[0] <= php.version <= SUPPORTED[1]:
        what = f"PHP {php.release}"
    elif php.is_threaded:
        what = f"a PHP {php.release} for several threads in one process (ZTS)"
    else:
        return
    raise BuildError(
        f"{program} is {what}; what is measured yet are programs under PHP {first} to {last} without threads (NTS), as most systems have "
        "them: name one in [php] interpreter",
        slug="php-unsupported",
    )
