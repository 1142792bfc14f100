"""Java behind the language protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from perfdiff.config import Config
from perfdiff.languages.c import runtime_library
from perfdiff.languages.check import compiler
from perfdiff.languages.dependencies import DependencyChange, changes
from perfdiff.languages.java import agent, calibrating, counting, homes, jvms, sameness, start, weaving
from perfdiff.languages.java import places as counted_places
from perfdiff.languages.java.homes import JdkHomes
from perfdiff.languages.java.index import index as index_program
from perfdiff.languages.java.matching import match as match_programs
from perfdiff.languages.java.places import JvmLineCounter
from perfdiff.languages.java.suites import launchers
from perfdiff.languages.java.traits import JavaConfig
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

# Half as much again as `scripts/bench java_probe` measures in a loop of its own, as a method with a probe may no longer be inlined in
# programs, and the caches are theirs (docs/studies/probes.md).
_COSTS = ProbeCosts(timed_ns=100.0, counted_ns=50.0, passed_ns=21.0)


def made(config: Config, surroundings: Surroundings) -> Java:
    """Return the pack of Java for a project."""
    settings = config.languages[Java.name]
    assert isinstance(settings, JavaConfig), "the value of its own section"
    return Java(settings, surroundings, config.build.command)


class Java(Language):
    """The language pack of Java."""

    name = "java"
    counts = True
    slowdown = 4.0  # 1.1 to 2.6 times for four of six programs, 5.5 and 6.8 for two that are calls of some ns (docs/studies/counting.md)

    def __init__(self, config: JavaConfig, around: Surroundings, build: str = "") -> None:
        self._build = build
        self._environment, self._compiler = around.environment, compiler(around.environment)
        self._classes, self._kept = around.cache / "classes", around.cache / "runtime"
        self._homes = JdkHomes(config, around.project, around.environment)
        self.workplace: Workplace | None = self._homes

    def index(self, built: PlainBuild, *, depth: int, others: Sequence[PlainBuild] = ()) -> Program:
        """Return the methods of a built tree and what they depend on, from its class files and sources; raise BuildError."""
        return index_program(built.tree, self._homes.jdk, depth=depth, cache=self._classes, helpers=self._kept)

    def match(self, base: Program, head: Program) -> tuple[Counterpart, ...]:
        """Pair the methods of both revisions and say how each differs."""
        return match_programs(base, head)

    def _changes(self, base: PlainBuild, head: PlainBuild) -> tuple[DependencyChange, ...]:
        return changes(homes.read(base.beside).versions, homes.read(head.beside).versions)

    def probe_costs(self, built: PlainBuild) -> ProbeCosts:
        """Return what probes cost, beyond what each call costs without one."""
        return _COSTS

    def runs_on(self, built: PlainBuild) -> tuple[str, ...]:
        """Return the JDK, what its machine takes and what is fixed of it, and the libraries of others that the revision names."""
        home = homes.read(built.beside)
        machine, fixed = jvms.ask(home.home, self._environment), jvms.fixed(home.home, self._environment)
        takes = (machine.collector, machine.heap and f"heap up to {machine.heap}", fixed)
        libraries = (f"{name} {version}" for name, version in home.versions.items())
        return (f"{machine.name} {home.release} ({'; '.join(filter(None, takes))})", *libraries)

    def told(self, base: PlainBuild, head: PlainBuild) -> tuple[Note, ...]:
        """Return notes on libraries of others whose versions differ."""
        return tuple(change.note for change in self._changes(base, head))

    def same_code(
        self, base: PlainBuild, head: PlainBuild, pairs: Sequence[Counterpart], differing: Mapping[str, Mapping[int, Path]]
    ) -> CodeComparison:
        """Compare the class files of two builds, and the libraries that they use."""
        return replace(sameness.same_code(differing), in_tree=not self._changes(base, head))

    def variables(self, built: PlainBuild, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return what makes the JDK of a build the one that workloads find, and what is fixed in its JVMs."""
        home = homes.read(built.beside).home
        suites = launchers.variables(built.tree, self._kept, self._build)
        return {**homes.variables(home, environment), **jvms.variables(home, environment), **suites}

    def calm(self, built: PlainBuild, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return what makes methods wait for the compiler, and has one thread collect."""
        return jvms.calm(homes.read(built.beside).home, environment)

    def attach(self, phase: Phase, built: PlainBuild, probes: Sequence[Probe], folder: Path) -> Mapping[str, str]:
        """Weave the probes, and return the variables by which each JVM finds them."""
        if not probes:
            return {}
        jdk, cache, given = self._homes.jdk, self._kept, self._options(built)
        methods, runtime = [weaving.method_of(probe) for probe in probes], runtime_library.below(built, self._compiler, cache)
        if phase is Phase.COUNTED:
            woven = counting.weave(jdk, built.tree, methods, cache)
            return start.counting(woven.sheet, woven.outside, agent.build_counting(jdk, runtime, self._compiler, cache), given)
        sheet, library = weaving.weave(jdk, built.tree, methods, cache), agent.build(jdk, runtime, self._compiler, cache)
        return start.environment(sheet, library, calibrating.measure(jdk, library, cache).text, given)

    def places(self, built: PlainBuild) -> PlaceReader | None:
        """Return the reader of line counts, None if lines cannot be counted."""
        jdk, cache = self._homes.jdk, self._kept
        host = JvmLineCounter(agent.build_lines(jdk, self._compiler, cache), self._options(built))
        return counted_places.places(jdk, built.tree, self.index(built, depth=0).functions.values(), host, cache)

    def _options(self, built: PlainBuild) -> str:
        """Return the options that JVMs of a build are given without us."""
        return {**self._environment, **self.variables(built, self._environment)}.get(start.OPTIONS, "")
