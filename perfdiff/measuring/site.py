"""What is measured: the functions of both revisions with their builds, and builds with probes in some of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from perfdiff.build.built import Built
from perfdiff.collect.built.toolchain import Toolchain
from perfdiff.collect.choosing.subjects import Probes, Subjects
from perfdiff.collect.choosing.survey import ProbeSelection
from perfdiff.collect.hosts import machine
from perfdiff.collect.runs.targets import Targets
from perfdiff.languages.protocol import CodeComparison
from perfdiff.records import plan
from perfdiff.records.differences import SkippedFunction
from perfdiff.records.endless import EndlessCase
from perfdiff.records.reach import Reach
from perfdiff.records.schema import Environment, FoldedFunction, Note, Run, Side


@dataclass(frozen=True, slots=True)
class Site:
    """The state before probes are chosen: functions, plain builds ready to run, their toolchain, and what is not available.

    `measured` are the functions that the report tells of: those of the `selection`, or all that ran where counts answer and nothing is
    chosen. `steering` is what timed builds are told of counters. Where both sides are proved to be the `same_code`, whole runs only confirm
    it. `reach` tells how much of what changed ran, None where that is not known. `endless` are cases that do not end on head, and
    `failing` those that fail there alone. Where no case of guessed suites reaches what changed, the site `is_idle`. `first_runs` were made
    before measuring was ended while cases were chosen.
    """

    subjects: Subjects
    plain: Mapping[Side, Built]
    toolchain: Toolchain
    skipped: tuple[SkippedFunction, ...]
    notes: tuple[Note, ...]
    targets: Targets
    selection: ProbeSelection = field(default_factory=ProbeSelection)
    measured: frozenset[int] = frozenset()
    folded: tuple[FoldedFunction, ...] = ()
    steering: Mapping[str, str] = field(default_factory=dict)
    slowdown: float = 1.0  # of counted runs, as a rule
    code: CodeComparison | None = None  # of two sides
    same_code: bool = False
    reach: Reach | None = None
    endless: tuple[EndlessCase, ...] = ()
    failing: tuple[str, ...] = ()
    is_idle: bool = False
    first_runs: tuple[Run, ...] = ()

    @property
    def built_s(self) -> float:
        """Return how long the plain builds took."""
        return sum(built.duration_s for built in self.plain.values())

    def environment(self, variables: Mapping[str, str]) -> Environment:
        """Return the machine, to whose commands these variables are given, and what the builds were made with."""
        return replace(machine.environment(variables), **asdict(self.toolchain))


@dataclass(frozen=True, slots=True)
class Variant:
    """Builds with probes, ready to run; without targets if they could not be made."""

    probes: Probes
    targets: Targets
    built: Mapping[Side, Built]
    skipped: tuple[SkippedFunction, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Return whether the builds have all their probes, and counters in all objects if they count."""
        return bool(self.targets) and not self.skipped and not any(build.uncounted for build in self.built.values())


@dataclass(frozen=True, slots=True)
class Recipe:
    """The recipe of timed builds, for this machine or another one that has the same plain builds, of which runs use what is `used`."""

    probes: Probes
    modes: Mapping[int, plan.ProbePlan]
    steering: Mapping[str, str]
    used: frozenset[str] = frozenset()
