"""The values that measuring hands to analysis: what was compared, what ran, and what was recorded.

Bulk data is columnar (numpy); everything else is a frozen value. Times are nanoseconds, memory is bytes. `None` and NaN mean absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.behaviour import Behaviour, Concurrency
from perfdiff.records.differences import ChangeReason, Entity, SkippedFunction
from perfdiff.records.endless import EndlessCase
from perfdiff.records.exchanges import Exchanges
from perfdiff.records.kernel_use import KernelUse, LeftOpen
from perfdiff.records.lasting import LastingMemory
from perfdiff.records.reach import Reach
from perfdiff.records.requests import RequestTimes
from perfdiff.records.uncompared import ComparisonGap


class Side(StrEnum):
    """The two revisions of a comparison."""

    BASE = "base"
    HEAD = "head"


class ComparedUnit(StrEnum):
    """What the two sides of an experiment are."""

    REVISIONS = "revisions"
    COMMANDS = "commands"  # run where the user stands, of which nothing is known but their runs
    FLEET = "fleet"  # parts that programs in use left, each a session of its own
    RESULTS = "results"  # that another tool measured, benchmark by benchmark
    PROFILES = "profiles"  # by sampling, which tell what functions take of a run, and not how long it is


class Change(StrEnum):
    """How a function differs between base and head."""

    CHANGED = "changed"  # its body or signature
    ADDED = "added"
    REMOVED = "removed"
    RENAMED = "renamed"  # same body under another name or in another file; not a change of behaviour
    AFFECTED = "affected"  # same text, but something it depends on changed: type, macro, global, inline function, flags
    CALLER = "caller"  # unchanged, but calls a changed function
    UNCHANGED = "unchanged"  # none of these; probed because the survey saw its cost move

    @property
    def is_suspect(self) -> bool:
        """Return whether the change itself can be guilty, not only the place where cost shows."""
        return self in (Change.CHANGED, Change.ADDED, Change.REMOVED, Change.AFFECTED)


class Phase(StrEnum):
    """What a run was made for."""

    PLAIN = "plain"  # no probes: end-to-end times and the probes' own overhead
    SURVEY = "survey"  # every function counted and timed, roughly; also exact call counts
    TIMED = "timed"  # the chosen probes; the only source of reported times
    COUNTED = "counted"  # the same probes over the software PMU; the only source of its counts
    PLACED = "placed"  # no probes: the compilers' own counters say how often each line ran

    @property
    def build(self) -> str:
        """Return how its builds differ from the project's own, as the end of a side's name: `base with probes`."""
        match self:
            case Phase.PLAIN:
                return ""
            case Phase.COUNTED:
                return " with counters"
            case Phase.PLACED:
                return " with counted lines"
            case _:
                return " with probes"


class Origin(StrEnum):
    """Where a feature comes from, plainest first: of twins, the plainest names the class."""

    WORKLOAD = "workload"
    ARGUMENT = "argument"
    FIELD = "field"
    GLOBAL = "global"
    DERIVED = "derived"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Revision:
    """A resolved revision. `commit` is None for the working tree."""

    rev: str
    commit: str | None
    summary: str


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a function on one side. `line` is the number of its first line in the file, from 1.

    `no_code` are stretches of lines, first and last, that are no code of its own: comments, docstrings, functions inside it.
    """

    file: str
    line: int
    text: str
    no_code: tuple[tuple[int, int], ...] = ()

    @property
    def code(self) -> Mapping[int, str]:
        """Return the lines of its own code by number, without the white space around them."""
        others = {line for first, last in self.no_code for line in range(first, last + 1)}
        return {line: text.strip() for line, text in enumerate(self.text.splitlines(), start=self.line) if line not in others}


@dataclass(frozen=True, slots=True)
class FunctionInfo:
    """A function as both revisions know it; `id` is its probe number in both builds and starts at 1.

    `reasons` say why it is looked at, e.g. "body changed", "uses struct sums, whose size changed from 128 to 48 bytes
    (sums.h:12)", "calls insert, which changed", "now imports secrets". `calls` are ids of functions it can call (either side), `reads`
    and `writes` names of fields, globals and types through which data passes from one function to another. `culprits` name the changed
    things an affected function depends on ("struct sums", "macro HASH"). One that `loads` runs when a part of the program is loaded,
    once in a process, and pays for what it is the first to load.
    """

    id: int
    name: str
    file: str
    line: int
    language: str
    change: Change
    reasons: tuple[ChangeReason, ...] = ()
    culprits: tuple[Entity, ...] = ()
    base: Source | None = None
    head: Source | None = None
    calls: frozenset[int] = frozenset()
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    loads: bool = False


@dataclass(frozen=True, slots=True)
class FoldedFunction:
    """A changed function that has no probe in timed runs: its time counts as that of its `hosts`.

    `obstacle` says why it can carry none; it is "" where too many calls are too short, and only then is anything known of these.

    `hosts` are ids of the nearest functions above it that are timed. `base_calls` and `head_calls` are its exact calls in a run, by point.
    `call_ns`, the mean length of a call, and `overhead`, the share of a run's CPU time that a probe would take, are rough. What counted
    runs counted of it stands in `Experiment.counts` under its id, and in the sums of its hosts as well.
    """

    info: FunctionInfo
    hosts: tuple[int, ...]
    base_calls: Mapping[int, float]
    head_calls: Mapping[int, float]
    call_ns: float
    overhead: float
    obstacle: str = ""


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload as configured; `command` still holds its `{parameter}` places.

    `checked`: a command of the user's has passed each of its runs.
    """

    name: str
    command: str
    parameters: tuple[str, ...] = ()
    checked: bool = False


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of a workload's parameters, ready to run; `outside` are the services outside the revisions that its runs use.

    It is `served` where services of the revisions end by a signal, so that calls which are open all the time, as of a main loop, never end.
    `min_effect` is the smallest difference of interest there, None where that is the comparison's.
    """

    id: int
    workload: str
    parameters: Mapping[str, float | str]
    command: str
    outside: tuple[str, ...] = ()
    served: bool = False
    min_effect: float | None = None

    @property
    def label(self) -> str:
        """Return the point as people name it, e.g. `sort n=1000`."""
        return " ".join([self.workload, *(f"{name}={value}" for name, value in self.parameters.items())])


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of one point on one side; `wall_ns` is without `delay_ns`, which its process waited for a CPU as far as that is known.

    `load`: CPUs busy with other processes; `steal`: share of time stolen by the host; `waited`: share of the run's time in which some
    process of the machine, its own ones included, waited for a CPU. `layout`: in which layout of its side's plain build it was made, 0
    being the build itself; those of one number are drawn alike for base and head. `together`: made at the same time as the other side's run
    of its block, on one CPU that they took turns on, so that `wall_ns` may hold the other's time as well. `clocked`: a clock ends it, as
    runs of its workload made together showed. `services`: what passed between it and services, by their names, where there were proxies
    before them. `machine`: on which of `Experiment.machines` it was made. `behaviour` is what it did beside taking time, and `concurrency`
    how much of it at the same time; None where nobody looked. `max_rss_bytes` is the most memory that one of its processes had,
    `held_bytes` the most that all were seen to have together. `kernel` tells what was asked of it, `left_open` what a counted run left.
    """

    id: int
    phase: Phase
    point: int
    side: Side
    block: int
    wall_ns: float
    cpu_ns: float
    max_rss_bytes: float
    load: float | None
    steal: float | None
    output: str  # digest of what it printed
    waited: float | None = None
    layout: int = 0
    together: bool = False
    clocked: bool = False
    services: Mapping[str, Exchanges] = field(default_factory=dict)
    requests: tuple[RequestTimes, ...] = ()
    machine: int = 0
    behaviour: Behaviour | None = None
    concurrency: Concurrency | None = None
    delay_ns: float = 0.0
    held_bytes: float | None = None
    kernel: KernelUse | None = None
    left_open: LeftOpen | None = None

    @property
    def took_ns(self) -> float:
        """Return the run's time in ns: its CPU time if it shared a CPU with another run; else, and for runs of requests, by the clock."""
        return self.cpu_ns if self.together and not self.requests else self.wall_ns


@dataclass(frozen=True, slots=True)
class Feature:
    """A column of a sample table. A `category` holds codes; `labels` maps them to names (enumerators, types, true/false)."""

    name: str
    origin: Origin
    category: bool = False
    labels: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Branch:
    """A condition of a probed function, by its source text."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class SampleTable:
    """Single calls of one function on one side, n rows.

    `metrics[name]` (n,) float64, NaN where absent; `values` (n, p) float64, one column a feature, NaN where a load failed;
    `executed` and `taken` (n, b) counts per branch; `run` (n,) ids of runs, the statistical unit; `point` (n,); `thread` and `call`
    (n,) tell which call of its run a row is; `weight` (n,): how many calls a sampled row stands for. `resolution_ns` is the step in
    which times advance where it is coarser than a clock's.
    """

    function: int
    side: Side
    metrics: Mapping[str, Floats]
    features: tuple[Feature, ...]
    values: Floats
    branches: tuple[Branch, ...]
    executed: Floats
    taken: Floats
    run: Ints
    point: Ints
    thread: Ints
    call: Ints
    weight: Floats
    resolution_ns: float = 0.0

    def __len__(self) -> int:
        return len(self.run)

    def rows(self, index: Ints) -> SampleTable:
        """Return the rows at `index`, in its order."""
        return replace(
            self,
            metrics={name: values[index] for name, values in self.metrics.items()},
            **{name: getattr(self, name)[index] for name in _PER_ROW},
        )


_PER_ROW = ("values", "executed", "taken", "run", "point", "thread", "call", "weight")


@dataclass(frozen=True, slots=True)
class Totals:
    """Exact sums per run and function, m rows: every call is counted, sampled or not.

    `self_ns` and `wall_ns` are totals over all calls of a run (estimated from the timed ones where calls are sampled; recursive calls
    count once in `wall_ns`); `other` holds further metrics by name (m,).
    """

    run: Ints
    function: Ints
    calls: Floats
    wall_ns: Floats
    self_ns: Floats
    other: Mapping[str, Floats]


@dataclass(frozen=True, slots=True)
class Edges:
    """Calls from one probed function to another per run, m rows; `caller` 0 is the start of a thread."""

    run: Ints
    caller: Ints
    callee: Ints
    calls: Floats
    wall_ns: Floats

    @property
    def pairs(self) -> frozenset[tuple[int, int]]:
        """Return who called whom in any run, (caller, callee)."""
        return frozenset(zip(self.caller.tolist(), self.callee.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class LibraryCalls:
    """Calls of counted runs that leave the project's code, m rows: by which probed function, to which of `names`, how many.

    Names are as programmers write them. Those of which some calls could not be seen, on either side, are left out. `timed` of the calls
    took `wall_ns` in all: 0 where the runs that count tell of no time.
    """

    run: Ints
    function: Ints
    callee: Ints
    calls: Floats
    names: tuple[str, ...]
    timed: Floats
    wall_ns: Floats


@dataclass(frozen=True, slots=True)
class HotSpot:
    """A line, or page, of one counted run that threads took from each other (`hitm`, of these `hitm_false` for other bytes), or from memory
    of other nodes (`remote`). `says` are the variables, allocations or stacks that it holds, `threads` how many took part.
    """

    side: Side
    point: int
    hitm: int
    hitm_false: int
    remote: int
    threads: int
    says: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Environment:
    """The machine and tools a comparison ran on, as shown in reports.

    `flags` decide what code is made, the most frequent ones first; `libraries` are the shared ones that the workloads' programs load.
    """

    cpu: str
    cores: int
    kernel: str
    governor: str | None
    compiler: str
    pmu: bool
    clock: str
    perfdiff: str
    created: str  # ISO 8601
    flags: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Machine:
    """One of several machines that runs were made on, by the name it goes by."""

    name: str
    environment: Environment


@dataclass(frozen=True, slots=True)
class Note:
    """Something the reader must know, with its entry in `docs/messages.md`: outputs that differ, overhead over budget, …"""

    slug: str
    text: str


@dataclass(frozen=True, slots=True)
class Experiment:
    """All that was measured of one comparison except the sample tables, which `records.store` loads one function at a time.

    `counts` are the sums of counted runs, whose own counts by name are in `other`, and `library` their calls into libraries; None where
    nothing was counted. `spots` are where threads of counted runs met most. `folded` are not among `functions`. `same_code`: all that runs
    can observe is proved to be the same on both sides, so that whole runs only confirm it. `stages` are the seconds that each stage of
    measuring took. `machines` are those of the runs where several measured, whose numbers are their places here; where there are none,
    `environment`'s did. `reach` tells how much of what changed ran, None where that is not known. `met` are files that differ and that
    slower runs open, list or ask after, `outside` those outside of the trees that runs read and that builds or earlier runs wrote.
    `endless` are cases that are not among the points, as they do not end on head, `uncompared` is what differs where users run the program,
    and not here. `build` is the command that built, with options that
    nobody asked for; None where it is not known. `ended_by` is what ended measuring before it was complete: `time`, or a signal. What was
    `compared` are two revisions as a rule. `lasting` is what counted runs had still allocated at their ends, without runs of which that is
    not known.
    """

    base: Revision
    head: Revision
    environment: Environment
    workloads: tuple[Workload, ...]
    points: tuple[Point, ...]
    functions: tuple[FunctionInfo, ...]
    skipped: tuple[SkippedFunction, ...]
    runs: tuple[Run, ...]
    totals: Totals
    edges: Edges
    notes: tuple[Note, ...] = ()
    counts: Totals | None = None
    spots: tuple[HotSpot, ...] = ()
    same_code: bool = False
    stages: Mapping[str, float] = field(default_factory=dict)
    folded: tuple[FoldedFunction, ...] = ()
    library: LibraryCalls | None = None
    machines: tuple[Machine, ...] = ()
    reach: Reach | None = None
    met: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    endless: tuple[EndlessCase, ...] = ()
    uncompared: tuple[ComparisonGap, ...] = ()
    build: str | None = None
    ended_by: str | None = None
    compared: ComparedUnit = ComparedUnit.REVISIONS
    lasting: tuple[LastingMemory, ...] = ()
