"""How projects in C and C++ are tested: the commands for it, and how tests call the built programs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from perfdiff import processes
from perfdiff.languages.c.suites.attempts import Attempts

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_TARGETS = re.compile(rb"^(check|tests?)[ \t]*::?(?!=)", re.MULTILINE)
_AUTOMAKE = re.compile(rb"^(TESTS[ \t]*\+?=|check-local[ \t]*:)", re.MULTILINE)
_FOLDERS = ("", "test", "tests", "t")
_SCRIPTS = ("*.sh", "run*test*", "*test*.sh")
_MOST_SCRIPTS = 5
_LOG = Path(__file__).with_name("call_log.c")
_COMPILERS = ("cc", "gcc", "clang")
_SHARE = 0.5  # of a listing's time that tests may take: what they called has to be tried behind them


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """How a test called a program of the built tree: its `words` without the name, in a folder, with a file as standard input or none."""

    program: Path
    folder: Path
    standard_input: Path | None
    words: tuple[str, ...]


def commands(place: Path) -> tuple[str, ...]:
    """Return the shell commands that run the tests of a project, in a checkout or a built tree; what was built tells more."""
    of_build_systems = (*_of_make(place), *_of_build_folders(place))
    return of_build_systems or tuple(_scripts(place))


def _of_make(place: Path) -> Iterator[str]:
    for name in (*_MAKEFILES, "Makefile.am", "Makefile.in"):
        text = _text(place / name)
        targets = [target.decode() for target in _TARGETS.findall(text)]
        if not targets and _AUTOMAKE.search(text):
            targets = ["check"]
        if targets:
            yield f"make {min(targets)}"
            return


def _of_build_folders(place: Path) -> Iterator[str]:
    for folder in sorted(path for path in place.iterdir() if path.is_dir()):
        name = folder.relative_to(place).as_posix()
        if (folder / "CTestTestfile.cmake").is_file():
            yield f"ctest --test-dir '{name}'"
        elif (folder / "meson-info").is_dir():
            yield f"meson test -C '{name}' --no-rebuild"


def _scripts(place: Path) -> Iterator[str]:
    for folder in _FOLDERS:
        paths = sorted({path for pattern in _SCRIPTS for path in (place / folder).glob(pattern) if path.is_file()})
        named = [path for path in paths if folder or "test" in path.name or "check" in path.name]
        yield from (f"sh '{path.relative_to(place).as_posix()}'" for path in named[:_MOST_SCRIPTS] if _text(path).startswith(b"#!"))


def _text(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def calls(command: str, attempts: Attempts) -> list[ProgramCall]:
    """Run tests in the current folder, and return how they called programs in it, as far as time allows; none without a compiler."""
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None:
        return []
    with tempfile.TemporaryDirectory() as room:
        library, log = Path(room, "calls.so"), Path(room, "calls")
        log.touch()
        if attempts.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(_LOG)]).code != 0:
            return []
        loaded = " ".join(filter(None, (os.environ.get("LD_PRELOAD"), str(library))))
        steering = {"LD_PRELOAD": loaded, "PERFDIFF_CALLS_OF": f"{Path.cwd()}/", "PERFDIFF_CALLS_TO": str(log)}
        with processes.running(
            command, Path.cwd(), {**os.environ, **steering}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as tests:
            any(True for _ in processes.ends([tests], _SHARE * attempts.left_s))
        return list(_read(log.read_bytes()))


def _read(content: bytes) -> Iterator[ProgramCall]:
    fields = iter([os.fsdecode(field) for field in content.split(b"\0")])
    for count in fields:
        if not count.isdigit():
            return
        program, folder, standard_input, *words = (next(fields, "") for _ in range(3 + int(count)))
        yield ProgramCall(Path(program), Path(folder), Path(standard_input) if standard_input.startswith("/") else None, tuple(words[1:]))
