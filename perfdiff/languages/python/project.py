"""Python projects, known by the files at the top of a source tree, and by what their workloads run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePath

from perfdiff.config import program
from perfdiff.configuration import buildsystem
from perfdiff.configuration.buildsystem import BuildSystem
from perfdiff.configuration.recognition import Draft, ProjectKind

# Top-level tables that a file has where it describes something that can be installed; tools alone use others.
_DESCRIBING = {
    "pyproject.toml": re.compile(r"^\[(project|build-system|tool\.poetry)\]", re.MULTILINE),
    "setup.py": re.compile(""),
    "setup.cfg": re.compile(r"^\[(metadata|options)\]", re.MULTILINE),
}
_PROGRAMS = re.compile(r"(python|pypy)[0-9.]*|pytest|py\.test|asv|.+\.py")


_COMMAND = "python benchmark.py {n}"
_INSTALLED = "{file} was found. Each revision is installed into an environment of its own; a command takes the place of that:"
_SECTION = """\
[python]
# interpreter = "python3"      # by name or path; all revisions run under it
# requirements = [".[bench]", "bench/requirements.txt"]   # of workloads, besides what the project requires
# editable = true              # installed by its build back end, even where it can be imported as it lies

"""


class PythonProject:
    """How Python projects are recognised. They are installed without any command."""

    leads = True
    needs_build = False

    def recognise(self, folder: Path, commands: Sequence[str], *, is_led: bool) -> str | None:
        """Return what tells a Python project in `folder`: a file's name, or one of the `commands` of its workloads.

        Where a build system of other languages is known by its files too, both must tell it: bindings lie beside many a C library, and many
        a C program is driven by a script. Where no command is known, a makefile may be what developers of Python use, and a list of
        requirements tells a project as well.
        """
        file = next((name for name, describing in _DESCRIBING.items() if _has(folder / name, describing)), None)
        command = next((command for command in commands if _runs_python(command)), None)
        system = buildsystem.detect(folder)
        if system is not None and (commands or system.name != "make"):
            return file if command else None
        listed = None if commands else next((path.name for path in sorted(folder.glob("requirements*.txt"))), None)
        return file or command or listed

    def is_ready(self, folder: Path, sign: str | None, commands: Sequence[str], others: Sequence[ProjectKind]) -> bool:
        """Return whether files say what is installed, or nothing else in the project needs a build."""
        return sign not in commands or not any(other.needs_build for other in others)

    def build_system(self, folder: Path, *, named: bool = False) -> BuildSystem | None:
        """Return None: a project is installed by its own back end."""
        return None

    def draft(self, folder: Path, sign: str) -> Draft:
        """Return the section of an interpreter, and a script as workload."""
        return Draft(_SECTION, _COMMAND, (_INSTALLED.format(file=sign), '# command = "python -m pip install -e ."'))


def _has(file: Path, describing: re.Pattern[str]) -> bool:
    return file.is_file() and describing.search(file.read_text(encoding="utf-8", errors="replace")) is not None


def _runs_python(command: str) -> bool:
    try:
        return _PROGRAMS.fullmatch(PurePath(program(command)).name) is not None
    except ValueError:  # a quotation is not closed, as the shell will say
        return False
