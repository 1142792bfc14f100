"""Python behind the language protocol."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from perfdiff.config import DRIVER, Config
from perfdiff.languages.c import runtime_library
from perfdiff.languages.dependencies import DependencyChange, changes
from perfdiff.languages.interpreter_parts import InterpreterParts
from perfdiff.languages.line_counts import InterpretedPlaces
from perfdiff.languages.protocol import (
    CodeComparison,
    Counterpart,
    Language,
    PlaceReader,
    PlainBuild,
    Probe,
    ProbeCosts,
    Program,
    Surroundings,
    Workplace,
)
from perfdiff.languages.python import absent, distributions, environments, extension, foreign, pins, projects, sameness, sheet, start
from perfdiff.languages.python import places as counted_places
from perfdiff.languages.python.environments import Environments
from perfdiff.languages.python.index import index as index_program
from perfdiff.languages.python.matching import match as match_programs
from perfdiff.languages.python.places import PythonLineCounter
from perfdiff.languages.python.sources import source_files
from perfdiff.languages.python.traits import PythonConfig
from perfdiff.languages.tree_files import regular
from perfdiff.records.schema import Note, Phase
from perfdiff.records.uncompared import ComparisonGap, UncomparedReason

# Empty is as if unset. Whether runs leave byte code, and where, is the program's matter, not that of the shell that perfdiff is called in.
_LEAVING = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": ""}
_DRIVER = Path(__file__).parent / "benchmarks"
_MONITORED = (3, 12)  # the first version whose own monitoring the probes use; in older ones they are an evaluator of frames
# About twice what `scripts/bench python_probe` measures in a loop of its own, as it is in programs (docs/studies/probes.md).
_EVALUATED = ProbeCosts(timed_ns=90.0, counted_ns=35.0, passed_ns=4.0)
_FOLLOWED = ProbeCosts(timed_ns=170.0, counted_ns=120.0, passed_ns=100.0, branch_ns=80.0)

_COUNTED = 4.0  # times a plain run: 1.9 to 3.1, for jinja2, pyelftools and pygments under CPython 3.11 and 3.12
_FOLLOWING = 3.0  # times as long again where memory is followed to the end: for calls of JSON, 12 times a plain run


def made(config: Config, surroundings: Surroundings) -> Python:
    """Return the pack of Python for a project."""
    return Python(config, surroundings)


class Python(Language):
    """The language pack of Python."""

    name = "python"
    counts = True
    draws: tuple[str, ...] = ("PYTHONHASHSEED",)

    def __init__(self, config: Config, around: Surroundings) -> None:
        self._modules = around.cache / "modules"
        self._is_memory_asked = config.compare.memory is not None
        self.slowdown = _COUNTED * (_FOLLOWING if self._is_memory_asked else 1.0)
        self._parts = InterpreterParts.of(self.name, around)
        commands = tuple(command for workload in config.workloads for command in workload.commands)
        settings, hook, drivers = config.languages.get(self.name, PythonConfig()), start.hook(), {DRIVER: _DRIVER}
        assert isinstance(settings, PythonConfig), "the value of its own section"
        self.workplace: Workplace | None = Environments(
            settings, around.project, around.environment, around.cache / "python", hook, commands, drivers
        )

    def index(self, built: PlainBuild, *, depth: int, others: Sequence[PlainBuild] = ()) -> Program:
        """Parse the Python files of a tree and return their functions and declarations, and those of packages that are not the same."""
        environment = environments.read(built.beside)
        names = {change.name for other in others for change in self._changes(other, built)}
        foreign_files = foreign.sources(environment.folders, names) if names else ()
        return index_program(built.tree, depth=depth, cache=self._modules, foreign=foreign_files)

    def match(self, base: Program, head: Program) -> tuple[Counterpart, ...]:
        """Pair the functions of both revisions and say how each differs."""
        return match_programs(base, head)

    def _changes(self, base: PlainBuild, head: PlainBuild) -> tuple[DependencyChange, ...]:
        return changes(environments.read(base.beside).versions, environments.read(head.beside).versions)

    def probe_costs(self, built: PlainBuild) -> ProbeCosts:
        """Return what probes cost under a build's interpreter, beyond what each call costs there without one."""
        version = tuple(map(int, environments.read(built.beside).release.split(".")[:2]))
        return _FOLLOWED if version >= _MONITORED else _EVALUATED

    def runs_on(self, built: PlainBuild) -> tuple[str, ...]:
        """Return the interpreter and the packages of other projects."""
        environment = environments.read(built.beside)
        return (f"CPython {environment.release}", *(f"{name} {version}" for name, version in sorted(environment.versions.items())))

    def told(self, base: PlainBuild, head: PlainBuild) -> tuple[Note, ...]:
        """Return notes on packages of other projects whose versions differ."""
        return tuple(change.note for change in self._changes(base, head))

    def absent(self, base: PlainBuild, head: PlainBuild, differing: Mapping[str, Mapping[int, Path]]) -> tuple[str, ...]:
        """Return the packages that files which differ import, and that the user's interpreter has and the environments have not."""
        assert isinstance(self.workplace, Environments), "as it was made"
        folders = [folder for built in (base, head) for folder in environments.read(built.beside).folders]
        return absent.absent(differing, [base.tree, head.tree], folders, self.workplace.own_packages)

    def unfollowed(
        self, base: PlainBuild, head: PlainBuild, differing: Mapping[str, Mapping[int, Path]], met: Collection[str] | None
    ) -> tuple[ComparisonGap, ...]:
        """Return which files pin other versions or list other packages than environments have, or have installations hold other files."""
        assert isinstance(self.workplace, Environments), "as it was made"
        is_usual = self.workplace.config.interpreter == PythonConfig().interpreter
        both = [environments.read(built.beside) for built in (base, head)]
        is_in_tree = distributions.lies_in(both[1].layout.site_packages, head.tree)
        trees, folders = (base.tree, head.tree), [folder for environment in both for folder in environment.folders]
        sources = [tree / name for tree in trees for name in met or () if name.endswith(".py") and (tree / name).is_file()]
        names = {
            UncomparedReason.PINS: pins.unfollowed(differing, both, met),
            UncomparedReason.LISTED: absent.listed_otherwise(regular(differing), sources, trees, folders),
            UncomparedReason.INTERPRETER: pins.interpreters(regular(differing)) if is_usual else (),
            UncomparedReason.COMMANDS: distributions.otherwise_started(
                both[0].folders, both[1].folders, head.tree, self.workplace.commands
            ),
            UncomparedReason.HOLDINGS: projects.otherwise_installed(differing) if is_in_tree else (),
        }
        return tuple(ComparisonGap(why, files) for why, files in names.items() if files)

    def same_code(
        self, base: PlainBuild, head: PlainBuild, pairs: Sequence[Counterpart], differing: Mapping[str, Mapping[int, Path]]
    ) -> CodeComparison:
        """Compare the byte code of two builds, and the packages that they use."""
        python = environments.read(base.beside).layout.python
        comparison = sameness.same_code(pairs, differing, python)
        is_same = not self._changes(base, head) and environments.are_alike(base.beside, head.beside)
        return replace(comparison, in_tree=is_same)

    def variables(self, built: PlainBuild, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return what makes the environment of a build the active one."""
        return {**environments.variables(environments.read(built.beside).layout, environment), **_LEAVING}

    def byte_code(self, built: PlainBuild) -> tuple[str, ...]:
        """Return the byte code that was made of a tree beside what its build left."""
        return environments.read(built.beside).byte_code

    def attach(self, phase: Phase, built: PlainBuild, probes: Sequence[Probe], folder: Path) -> Mapping[str, str]:
        """Write the sheet of the probes, and return the variables by which each interpreter finds it, and our extension module."""
        if not probes:
            return {}
        environment = environments.read(built.beside)
        path = self._parts.sheet(phase, built, probes, folder, lambda path: _write(path, built, probes))
        python, compiler, cache = environment.layout.python, self._parts.compiler(built), self._parts.cache
        runtime = runtime_library.below(built, compiler, cache)
        if phase is not Phase.COUNTED:
            return start.environment(path, extension.build(python, runtime, compiler, cache))
        lines = self._parts.line_sheet(built, folder, lambda path: self._places(built, path))
        counting = start.counting(path, lines, extension.build_counting(python, runtime, compiler, cache))
        return {**counting, start.LASTING: "1"} if self._is_memory_asked else counting

    def places(self, built: PlainBuild) -> PlaceReader | None:
        """Return the reader of line counts, None if lines cannot be counted."""
        return self._places(built, built.beside / "lines.sheet")

    def _places(self, built: PlainBuild, lines: Path) -> InterpretedPlaces:
        """Return the lines of a tree, and write which they are to a sheet."""
        environment = environments.read(built.beside)
        module = extension.build_lines(environment.layout.python, self._parts.compiler(built), self._parts.cache)
        host = PythonLineCounter(environment.layout.python, module, foreign.copies(built.tree, environment.folders))
        modules = {file.file: file.module for file in source_files(built.tree)}
        return counted_places.places(built.tree, modules, host, lines)


def _write(path: Path, built: PlainBuild, probes: Sequence[Probe]) -> None:
    """Write the sheet of probes, with all places that their files may be loaded from."""
    folders = environments.read(built.beside).folders
    elsewhere = {probe.definition.file: foreign.place(probe.definition.file, folders) for probe in probes}
    places = foreign.copies(built.tree, folders) | {file: (place,) for file, place in elsewhere.items() if place}
    sheet.write(path, probes, places)
