"""Java behind the language protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from perfdiff.config import JavaConfig
from perfdiff.languages.java import jdks, sameness
from perfdiff.languages.java.index import index as index_program
from perfdiff.languages.java.matching import match as match_programs
from perfdiff.languages.protocol import CodeComparison, Counterpart, PlaceReader, PlainBuild, Probe, ProbeCosts, Program, Workplace
from perfdiff.records.schema import Note, Phase


class Java:
    """The language pack of Java.

    `project` is the folder of the user's checkout, `environment` the user's; `cache` keeps what several revisions share.
    """

    name = "java"
    counts = False
    slowdown = 1.0
    draws: tuple[str, ...] = ()

    def __init__(self, config: JavaConfig, project: Path, environment: Mapping[str, str], cache: Path) -> None:
        self._config, self._project, self._environment, self._cache = config, project, environment, cache
        self._classes = cache / "classes"
        self.workplace: Workplace | None = None

    def index(self, built: PlainBuild, *, depth: int, others: Sequence[PlainBuild] = ()) -> Program:
        """Return the methods of a built tree and what they depend on, from its class files and sources; raise BuildError."""
        jdk = jdks.find(self._environment, self._config.home)
        return index_program(built.tree, jdk, depth=depth, cache=self._classes, helpers=self._cache / "runtime")

    def match(self, base: Program, head: Program) -> tuple[Counterpart, ...]:
        """Pair the methods of both revisions and say how each differs."""
        return match_programs(base, head)

    def probe_costs(self, built: PlainBuild) -> ProbeCosts:
        """Return what probes cost, beyond what each call costs without one."""
        return ProbeCosts(timed_ns=90.0, counted_ns=35.0, passed_ns=25.0)

    def runs_on(self, built: PlainBuild) -> tuple[str, ...]:
        """Return the JDK."""
        return ()

    def told(self, base: PlainBuild, head: PlainBuild) -> tuple[Note, ...]:
        """Return what else differs between two builds."""
        return ()

    def same_code(self, base: PlainBuild, head: PlainBuild, pairs: Sequence[Counterpart]) -> CodeComparison:
        """Compare the class files of two builds."""
        return sameness.same_code(base, head, pairs, self._classes)

    def variables(self, built: PlainBuild, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return what workloads of a build run with."""
        return {}

    def attach(self, phase: Phase, built: PlainBuild, probes: Sequence[Probe], folder: Path) -> Mapping[str, str]:
        """Weave the probes, and return the variables by which each JVM finds them."""
        return {}

    def places(self, built: PlainBuild) -> PlaceReader | None:
        """Return what reads the counts of lines."""
        return None
