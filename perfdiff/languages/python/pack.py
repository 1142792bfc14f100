"""Python behind the language protocol."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from perfdiff.config import DRIVER, Config, PythonConfig
from perfdiff.languages.c import runtime_library
from perfdiff.languages.protocol import CodeComparison, Counterpart, PlaceReader, PlainBuild, Probe, Program, Workplace
from perfdiff.languages.python import copies, distributions, environments, extension, sheet, start
from perfdiff.languages.python import places as counted_places
from perfdiff.languages.python.environments import Environments
from perfdiff.languages.python.index import index as index_program
from perfdiff.languages.python.matching import match as match_programs
from perfdiff.languages.python.places import Host
from perfdiff.languages.python.same_code import same_code
from perfdiff.languages.python.sources import source_files
from perfdiff.records.schema import Note, Phase

_DRIVER = Path(__file__).parent / "benchmarks"
_COMPILERS = ("cc", "gcc", "clang")


class Python:
    """The language pack of Python.

    `project` is the folder of the user's checkout, with its configuration, `environment` the user's; `cache` keeps what several revisions
    share.
    """

    name = "python"
    counts = False
    draws: tuple[str, ...] = ("PYTHONHASHSEED",)

    def __init__(self, config: Config, project: Path, environment: Mapping[str, str], cache: Path) -> None:
        self._cache = cache
        self._compiler = next((name for name in _COMPILERS if shutil.which(name, path=environment.get("PATH"))), _COMPILERS[0])
        commands = tuple(command for workload in config.workloads for command in workload.commands)
        python, drivers = config.python or PythonConfig(), {DRIVER: _DRIVER}
        self.workplace: Workplace | None = Environments(python, project, environment, cache, start.hook(), commands, drivers)

    def index(self, built: PlainBuild, *, depth: int) -> Program:
        """Parse the Python files of a tree and return their functions and declarations."""
        return index_program(built.tree, depth=depth)

    def match(self, base: Program, head: Program) -> tuple[Counterpart, ...]:
        """Pair the functions of both revisions and say how each differs."""
        return match_programs(base, head)

    def runs_on(self, built: PlainBuild) -> tuple[str, ...]:
        """Return the interpreter and the packages of other projects."""
        made = environments.read(built.beside)
        return (f"CPython {made.release}", *(f"{name} {version}" for name, version in sorted(made.versions.items())))

    def told(self, base: PlainBuild, head: PlainBuild) -> tuple[Note, ...]:
        """Return which packages of other projects differ."""
        before, after = (environments.read(built.beside).versions for built in (base, head))
        return tuple(Note("dependency-changed", f"head {change.says}") for change in distributions.changes(before, after))

    def same_code(self, base: PlainBuild, head: PlainBuild, pairs: Sequence[Counterpart]) -> CodeComparison:
        """Compare the syntax trees of two builds, and the packages that they use."""
        return same_code(base, head, pairs)

    def variables(self, built: PlainBuild, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return what makes the environment of a build the active one."""
        return environments.variables(environments.read(built.beside).layout, environment)

    def attach(self, phase: Phase, built: PlainBuild, probes: Sequence[Probe], folder: Path) -> Mapping[str, str]:
        """Write the sheet of the probes, and return the variables by which each interpreter finds it, and our extension module."""
        if not probes:
            return {}
        made, compiler = environments.read(built.beside), self._compiler_of(built)
        runtime = runtime_library.build(compiler, self._cache / "runtime")
        module = extension.build(made.layout.python, runtime, compiler, self._cache / "runtime")
        path = folder / f"python-{phase}-{_digest(built, probes)}.sheet"
        if not path.exists():
            sheet.write(path, probes, copies.places(built.tree, made.layout.site_packages))
        return start.environment(path, module)

    def places(self, built: PlainBuild) -> PlaceReader | None:
        """Return what reads the counts of lines, which are written beside the tree."""
        made = environments.read(built.beside)
        module = extension.build_lines(made.layout.python, self._compiler_of(built), self._cache / "runtime")
        host = Host(made.layout.python, module, copies.places(built.tree, made.layout.site_packages))
        modules = {file.file: file.module for file in source_files(built.tree)}
        return counted_places.places(built.tree, modules, host, built.beside / "lines.sheet")

    def _compiler_of(self, built: PlainBuild) -> str:
        """Return what our module is compiled with: that of the project's own modules, so that all find the same runtime in a process."""
        return built.commands[0].compiler if built.commands else self._compiler


def _digest(built: PlainBuild, probes: Sequence[Probe]) -> str:
    rows = [str(built.tree), *(repr((probe.id, probe.definition.key, probe.features)) for probe in probes)]
    return hashlib.blake2b("\n".join(rows).encode(errors="surrogateescape"), digest_size=8).hexdigest()
