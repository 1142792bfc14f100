"""PHP behind the language protocol."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from perfdiff.config import Config
from perfdiff.languages.c import runtime_library
from perfdiff.languages.dependencies import DependencyChange, changes
from perfdiff.languages.interpreter_parts import InterpreterParts
from perfdiff.languages.line_counts import InterpretedPlaces
from perfdiff.languages.php import engines, extension, homes, owners, packages, sameness, sheet, start
from perfdiff.languages.php import places as counted_places
from perfdiff.languages.php.engines import PhpEngine
from perfdiff.languages.php.homes import PhpHomes
from perfdiff.languages.php.index import index as index_program
from perfdiff.languages.php.matching import match as match_programs
from perfdiff.languages.php.places import PhpLineCounter
from perfdiff.languages.php.sources import aliases_in, source_files
from perfdiff.languages.php.traits import PhpConfig
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
from perfdiff.records.schema import Note, Phase
from perfdiff.records.uncompared import ComparisonGap, UncomparedReason

# Half as much again as `scripts/bench php_probe` measures in a loop of its own.
_COSTS = ProbeCosts(timed_ns=95.0, counted_ns=45.0, passed_ns=25.0, branch_ns=15.0)


def made(config: Config, surroundings: Surroundings) -> Php:
    """Return the pack of PHP for a project."""
    settings = config.languages[Php.name]
    assert isinstance(settings, PhpConfig), "the value of its own section"
    return Php(settings, surroundings)


class Php(Language):
    """The language pack of PHP."""

    name = "php"
    counts = True
    slowdown = 3.0  # a counted call costs three times one that is timed (`scripts/bench php_probe`)

    def __init__(self, config: PhpConfig, around: Surroundings) -> None:
        self._environment, self._scripts = around.environment, around.cache / "scripts"
        self._parts = InterpreterParts.of(self.name, around)
        self._homes = PhpHomes(config, around.project, around.environment)
        self.workplace: Workplace | None = self._homes

    def index(self, built: PlainBuild, *, depth: int, others: Sequence[PlainBuild] = ()) -> Program:
        """Parse the PHP files of a tree and return their functions and declarations, and those of packages that are not the same."""
        packages = {change.name for other in others for change in self._changes(other, built)}
        return index_program(built.tree, depth=depth, cache=self._scripts, packages=packages)

    def match(self, base: Program, head: Program) -> tuple[Counterpart, ...]:
        """Pair the functions of both revisions and say how each differs."""
        return match_programs(base, head)

    def _changes(self, base: PlainBuild, head: PlainBuild) -> tuple[DependencyChange, ...]:
        return changes(homes.read(base.beside).versions, homes.read(head.beside).versions)

    def probe_costs(self, built: PlainBuild) -> ProbeCosts:
        """Return what probes cost, beyond what each call costs without one."""
        return _COSTS

    def runs_on(self, built: PlainBuild) -> tuple[str, ...]:
        """Return the PHP, what its engine caches and compiles, and the packages of others that the revision has."""
        home, engine = homes.read(built.beside), self._engine(built)
        packages = (f"{name} {version}" for name, version in home.versions.items())
        return (f"PHP {home.release} ({engine.says})", *packages)

    def unfollowed(
        self, base: PlainBuild, head: PlainBuild, differing: Mapping[str, Mapping[int, Path]], met: Collection[str] | None
    ) -> tuple[ComparisonGap, ...]:
        """Return the lock file, if it locks other versions in head, and both revisions have the same packages."""
        names = packages.unfollowed(differing, [homes.read(built.beside).versions for built in (base, head)])
        return (ComparisonGap(UncomparedReason.PINS, names),) if names else ()

    def told(self, base: PlainBuild, head: PlainBuild) -> tuple[Note, ...]:
        """Return which packages of others differ, and what watches the calls."""
        watching = self._engine(head).watching
        watched = (
            [Note("php-watched", f"PHP loads {', '.join(watching)}, which may make every call slower, on both sides")] if watching else []
        )
        return (*(change.note for change in self._changes(base, head)), *watched)

    def same_code(
        self, base: PlainBuild, head: PlainBuild, pairs: Sequence[Counterpart], differing: Mapping[str, Mapping[int, Path]]
    ) -> CodeComparison:
        """Compare the scripts of two builds, and the packages that they use."""
        comparison = sameness.same_code(differing, homes.read(head.beside).executable, self._given(head))
        return replace(comparison, in_tree=not self._changes(base, head))

    def variables(self, built: PlainBuild, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return what makes the PHP of the configuration the one that workloads find."""
        return homes.variables(built.beside, environment)

    def attach(self, phase: Phase, built: PlainBuild, probes: Sequence[Probe], folder: Path) -> Mapping[str, str]:
        """Write the sheet of the probes, and return the variables by which each PHP finds it, and our extension."""
        if not probes:
            return {}
        path = self._parts.sheet(phase, built, probes, folder, lambda path: self._write(path, built, probes))
        php, compiler, cache = self._homes.php, self._parts.compiler(built), self._parts.cache
        runtime, given = runtime_library.below(built, compiler, cache), self._given(built)
        if phase is not Phase.COUNTED:
            return start.environment(path, extension.build(php, runtime, compiler, cache), given)
        lines = self._parts.line_sheet(built, folder, lambda path: self._places(built, path))
        return start.counting(path, lines, extension.build_counting(php, runtime, compiler, cache), given)

    def _write(self, path: Path, built: PlainBuild, probes: Sequence[Probe]) -> None:
        places = {file: (built.tree / file,) for file in {probe.definition.file for probe in probes}}
        sheet.write(path, probes, places, aliases_in(built.tree, places))

    def places(self, built: PlainBuild) -> PlaceReader | None:
        """Return the reader of line counts, None if lines cannot be counted."""
        places = self._places(built, built.beside / "lines.sheet")
        return replace(places, places=owners.named(places.places, self.index(built, depth=0).functions.values()))

    def _places(self, built: PlainBuild, lines: Path) -> InterpretedPlaces:
        """Return the lines of a tree, and write which they are to a sheet."""
        php = self._homes.php
        module = extension.build_lines(php, self._parts.compiler(built), self._parts.cache)
        host = PhpLineCounter(php.executable, module, self._given(built))
        return counted_places.places(built.tree, [source.file for source in source_files(built.tree)], host, lines)

    def _given(self, built: PlainBuild) -> dict[str, str]:
        """Return the variables that runs of a build have without us."""
        return {**self._environment, **self.variables(built, self._environment)}

    def _engine(self, built: PlainBuild) -> PhpEngine:
        return engines.ask(homes.read(built.beside).executable, self._given(built))
