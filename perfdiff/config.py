"""The configuration: what to build, what to run, and when a difference counts.

The values alone, with their defaults; `configuration` reads them from TOML, environment and command line.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PLACE = re.compile(rf"(?<!\$)\{{({NAME.pattern})\}}")  # of a parameter in a command; `${name}` is the shell's own
SERVICE_PLACE = re.compile(rf"(?<!\$)\{{({NAME.pattern})\.({NAME.pattern})\}}")  # of a service's port or folder in a command
INPUT = "input"  # the parameter that `inputs` are the values of
FEATURES_OF_INPUTS = (INPUT, "bytes", "lines")  # names that a workload with inputs has in use: what describes an input file
ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
TEMPLATE_COMMAND = "./program {n}"  # of the workload that `perfdiff init` writes, to be filled in
RUNS_FOR_TIME = 4  # runs a side, at all points together, below which no interval of times deserves trust; counts need no more than two
PORT, FOLDER, PROJECT = "port", "folder", "project"  # places of a service's own
DRIVER = "perfdiff_benchmarks"  # the module by which suites of benchmarks are listed and run
_SHARED = "pyproject.toml"  # a configuration that others read, too


@dataclass(frozen=True, slots=True)
class BuildConfig:
    """`[build]`: how a revision is built in its own tree; by no command where it says none, and its language needs none."""

    command: str
    overlay: tuple[str, ...] = ()
    timeout_s: float = 1800.0
    fuzz_targets: tuple[str, ...] = ()  # linked with a main of perfdiff's own when the command has ended: a source, and its seeds
    chosen_targets: tuple[str, ...] | None = None  # of these, what builds link that are made once cases are chosen; None: all


@dataclass(frozen=True, slots=True)
class ServiceLink:
    """How far away a service is made, by a proxy before it: what its users find, not what it finds itself.

    Its answers come late by `delay_s`, drawn evenly from within `jitter_s` around it. A connection carries `bytes_per_s` each way, 0 for as
    many as it can. Of the connections a share of `refused` is reset at once, of the answers a share of `failing` is lost with their
    connection, and each connection is reset after `reset_after` bytes of answers, where that is above 0.
    """

    service: str
    delay_s: float = 0.0
    jitter_s: float = 0.0
    bytes_per_s: float = 0.0
    refused: float = 0.0
    failing: float = 0.0
    reset_after: int = 0
    delays_ms: tuple[float, ...] = ()  # that a sweep makes points of

    @property
    def parameter(self) -> str:
        """Return the parameter of points that a sweep gives the delay by, in milliseconds."""
        return f"{self.service}_delay_ms"

    @property
    def is_near(self) -> bool:
        """Return whether nothing is made worse, so that no proxy is needed."""
        return self == ServiceLink(self.service)


@dataclass(frozen=True, slots=True)
class ServiceConfig:
    """`[[service]]`: a process that runs while workloads do, such as a server or its database.

    It runs in the built tree, with probes, for one run. One that is `outside` is no part of the revisions: it runs in a folder of its own,
    without probes, serves both sides, and its costs are not judged. It is ready when all holds that it says of that.
    """

    name: str
    command: str
    outside: bool = False
    keep: str | None = None  # one of `KEEPS`; None: the comparison where it is outside, else the run
    ready: str | None = None  # `TCP`, or a URL; None: `TCP` where nothing else says when it is ready
    ready_line: str | None = None  # a regular expression
    ready_command: str | None = None
    ports: tuple[str, ...] = ()  # names of those that it has beside `PORT`
    environment: Mapping[str, str] = field(default_factory=dict)
    install: str | None = None  # before it is started, in its folder
    setup: str | None = None  # before each run, once it is ready
    teardown: str | None = None  # after each run
    stop: str = "TERM"
    timeout_s: float = 30.0

    @property
    def is_kept(self) -> bool:
        """Return whether it goes on from run to run."""
        return (self.keep or KEEPS[self.outside]) == KEEPS[True]

    @property
    def probes(self) -> tuple[str, ...]:
        """Return the conditions of readiness that the network tells: `tcp`, or a URL."""
        if self.ready is None and (self.ready_line or self.ready_command):
            return ()
        return (self.ready or TCP,)

    @property
    def places(self) -> tuple[str, ...]:
        """Return the names of the places, such as `port`, that workloads and other services may use."""
        return (PORT, *self.ports, FOLDER)

    @property
    def has_own_place(self) -> bool:
        """Return whether its texts name `{port}` or `{folder}`, so that two instances may run at the same time."""
        return any(f"{{{place}}}" in text for text in self.starting for place in (PORT, FOLDER))

    @property
    def starting(self) -> tuple[str, ...]:
        """Return the texts that are used to start the service and may have places such as `{port}`."""
        ready = (self.ready, self.ready_line, self.ready_command)
        return tuple(text for text in (self.command, self.install, *ready, *self.environment.values()) if text)

    @property
    def commands(self) -> tuple[str, ...]:
        """Return the texts that may have places of parameters."""
        return (*self.starting, *(text for text in (self.setup, self.teardown) if text))


@dataclass(frozen=True, slots=True)
class RequestConfig:
    """`[[request]]` of a file of requests: a kind of request, of which each has its own values in the places of its texts.

    `content` is its body as read from a file, a character a byte.
    """

    name: str
    path: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    body_bytes: str | None = None  # a number, or a range as `100..10000`
    content: str | None = None
    draw: Mapping[str, tuple[float | str, ...]] = field(default_factory=dict)  # a lone `1..1000` is a range
    weight: float = 1.0
    first: int = 0  # so many are made before the mix
    after: str | None = None  # a kind: the second is never before the other's second
    expect: tuple[int, ...] = ()  # statuses that are no failure; (): those from 200 to 399


@dataclass(frozen=True, slots=True)
class RequestMix:
    """A file of requests that the load sends to a server at `url`, `count` of them in each run beside the first ones."""

    file: str
    url: str
    requests: tuple[RequestConfig, ...]
    count: str = "100"
    seed: int = 1
    concurrency: int | None = None  # under way at the same time; None: one, or as many as it takes where there is a rate
    rate: float | None = None  # requests a second, whether or not those before are answered
    timeout_s: float = 30.0

    @property
    def is_sequential(self) -> bool:
        """Return whether each request is answered before the next one is sent."""
        return self.rate is None and (self.concurrency or 1) == 1


KEEPS = ("run", "comparison")
TCP = "tcp"


@dataclass(frozen=True, slots=True)
class Suite:
    """Benchmarks or tests that a project has: the framework's name is its `kind`, and `what` of it is run.

    Both are as the configuration says, or `guessed` where it says nothing.
    """

    kind: str
    what: str
    guessed: bool = False


@dataclass(frozen=True, slots=True)
class WorkloadConfig:
    """`[[workload]]`: a command with `{parameter}` places, run in the built tree once per combination of `parameters` and `inputs`.

    The command of a `suite` lists its benchmarks, which take the place of the workload once the programs are built.

    `inputs` are files of the checkout, relative to the project unless they were written as absolute paths; they are the values of the
    parameter `INPUT`. `features` are numbers that runs print: regular expressions with one group, by name.
    """

    name: str
    command: str = ""
    parameters: Mapping[str, tuple[float | str, ...]] = field(default_factory=dict)
    runs: int = 10
    timeout_s: float = 300.0
    exit_codes: tuple[int, ...] = (0,)
    setup: str | None = None  # before all runs of a point in a tree
    prepare: str | None = None  # before each run, outside its time
    warmup: int = 0  # runs of each side at each point that are made first and thrown away
    check: str | None = None  # after each run, with what that printed on its standard input
    alone: bool = False  # never run beside the other side's run
    inputs: tuple[str, ...] = ()
    grammar: str | None = None  # a file of the checkout, of what inputs consist of
    features: Mapping[str, str] = field(default_factory=dict)
    suite: Suite | None = None
    left_out: tuple[tuple[float | str, ...], ...] = ()  # combinations of values that are no points
    services: tuple[str, ...] | None = None  # names of those that its runs need; None: all
    requests: RequestMix | None = None  # which the load sends, in place of a command of the project's
    min_effect: float | None = None  # the smallest difference of interest at its points; None: that of the comparison
    once: str | None = None  # the command with a single call, where perfdiff has a run call a case of a suite several times
    plain_timeout_s: float = math.inf  # of runs without probes, where less than `timeout_s` is enough to tell that they hang

    @property
    def values(self) -> Mapping[str, tuple[float | str, ...]]:
        """Return all that differs between points, by name: the parameters, and the inputs as one of them."""
        return {**self.parameters, INPUT: self.inputs} if self.inputs else self.parameters

    @property
    def commands(self) -> tuple[str, ...]:
        """Return all commands of the project's that the workload runs."""
        return tuple(text for text in ("" if self.requests else self.command, self.setup, self.prepare, self.check) if text)


@dataclass(frozen=True, slots=True)
class ProbeConfig:
    """`[probes]`: which functions may be probed, and what that may cost."""

    overhead: float = 0.02  # share of CPU time that probes may add
    exclude: tuple[str, ...] = ()  # path patterns never probed
    depth: int = 3  # pointers followed from an argument
    samples: int = 1000  # calls kept per function, process and thread


@dataclass(frozen=True, slots=True)
class CacheSize:
    """A cache of the software PMU: its bytes, and in how many places of it a line may lie."""

    size: int
    ways: int


@dataclass(frozen=True, slots=True)
class CountersConfig:
    """`[counters]`: what is counted beside time, and the caches that the software PMU has. None: as the machine offers it."""

    events: tuple[str, ...] | None = None  # by their PAPI names, read on sampled calls of the timed build
    software: bool = True  # whether a counted build is made and run
    budget_s: float = 30.0  # that counted runs may take, all together
    l1d: CacheSize | None = None
    l2: CacheSize | None = None
    llc: CacheSize | None = None
    nodes: int | None = None  # of memory


LEAST_BUDGET_S = 30.0  # who waits for a build waits this long for an answer
FIRST_LOOK_S = 120.0  # that long runs may take beyond that, until there are enough pairs of them for a first look


HOUR_S = 3600.0  # comparisons take minutes; what takes longer is a search, or stands still


@dataclass(frozen=True, slots=True)
class MeasureConfig:
    """`[measure]`: how long to measure, and how thoroughly."""

    budget_s: float | None = (
        None  # for whole runs, and again for runs with probes; None: as long as the builds took, `LEAST_BUDGET_S` at least
    )
    fast: bool = False  # end with whole runs, as soon as they show that head is slower, or everywhere that it is not
    thorough: bool = False  # run with probes even where whole runs and exact counts answer
    layouts: int = 40  # builds of each side at most, different in the places of code and data alone; whole runs are spread over them
    wait_s: float = HOUR_S  # for another perfdiff that is at work with the same cache
    time_s: float | None = None  # that a whole comparison may take, builds included; None: as long as it needs

    def budget_for(self, built_s: float) -> float:
        """Return how many seconds whole runs may take, and the same again for runs with probes, where the builds took `built_s`."""
        return max(LEAST_BUDGET_S, built_s) if self.budget_s is None else self.budget_s

    @property
    def first_look_s(self) -> float:
        """Return how many seconds whole runs may take until the first look at all of them, whatever the builds took."""
        return FIRST_LOOK_S if self.budget_s is None else 0.0


BUDGETS = 2  # that whole runs may take at most, where the second will decide what is open


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """`[cluster]`: the `address` of a Dask scheduler whose workers measure; None: this machine does."""

    address: str | None = None


@dataclass(frozen=True, slots=True)
class CacheConfig:
    """`[cache]`: how large what is kept between comparisons may become, in GB (10^9 bytes)."""

    max_gb: float = 20.0  # some comparisons of a project of half a million lines, or hundreds of small ones


JUDGES = ("function", "program")
OUTPUTS = ("same", "unordered", "differ")
DETECTORS = ("mahalanobis", "autoencoder", "pca", "isolation-forest", "robust-z")


@dataclass(frozen=True, slots=True)
class CompareConfig:
    """`[compare]`: when a difference counts."""

    min_effect: float = 0.05
    fdr: float = 0.05
    confidence: float = 0.95
    seed: int = 1
    judge: str = JUDGES[0]  # whether a slower function makes a regression, or only a slower program
    outputs: str = OUTPUTS[0]  # whether base and head are meant to do the same, by what they print and write
    detector: str = DETECTORS[0]  # of calls whose counters, read together, are not like base's
    accepted: str = "perfdiff-accepted.toml"  # known costs, beside the configuration
    memory: float | None = None  # from which share on more peak memory is a regression; None: it is told alone

    def at(self, *own: float | None) -> CompareConfig:
        """Return how to judge what is seen at points: by the least of their `own` smallest effects, None where they have none."""
        least = min((self.min_effect if effect is None else effect for effect in own), default=self.min_effect)
        return self if least == self.min_effect else replace(self, min_effect=least)


RUN = "run"  # what a budget of runs as a whole is named


@dataclass(frozen=True, slots=True)
class CostBudget:
    """A line of `[budget]`: what a cost of head may be at most, as it is written, `says`, of a `subject` such as `render.time`.

    What is held against the `limit`, in ns, bytes or a number, is the `quantile` of single calls, or runs, or their mean where it is None:
    at `inputs`, at those that programs `in_use` met, or else at those of the workloads.
    """

    subject: str
    says: str
    quantile: float | None
    limit: float
    unit: str  # "ns", "bytes" or "count"
    inputs: Mapping[str, str] = field(default_factory=dict)
    in_use: bool = False


@dataclass(frozen=True, slots=True)
class Config:
    """Everything a comparison follows.

    `languages` are those that the project is written in, by name, each with the value of its section (`settings` of its traits), but for
    those that serve every project. `source` is the file it came from; `build_guessed_from` the file that gave the build command away where
    none is configured. Where workloads are guessed, those of other languages are `otherwise`, the likeliest first. Once suites are listed,
    workloads are cases of the `listed` ones.
    """

    build: BuildConfig
    workloads: tuple[WorkloadConfig, ...]
    probes: ProbeConfig = ProbeConfig()
    compare: CompareConfig = CompareConfig()
    counters: CountersConfig = CountersConfig()
    measure: MeasureConfig = MeasureConfig()
    cluster: ClusterConfig = ClusterConfig()
    cache: CacheConfig = CacheConfig()
    languages: Mapping[str, object] = field(default_factory=dict)
    budgets: tuple[CostBudget, ...] = ()
    services: tuple[ServiceConfig, ...] = ()
    links: tuple[ServiceLink, ...] = ()  # to services that are made worse to reach, for a check
    source: str | None = None
    build_guessed_from: str | None = None
    otherwise: tuple[Config, ...] = ()
    listed: tuple[WorkloadConfig, ...] = ()

    @property
    def budgeted(self) -> frozenset[str]:
        """Return the functions that budgets name, without `run`."""
        return frozenset(budget.subject for budget in self.budgets) - {RUN, f"{RUN}.time"}

    @property
    def commands(self) -> tuple[str, ...]:
        """Return all configured commands: of the build, the workloads and the services."""
        of_workloads = (command for workload in self.workloads for command in workload.commands)
        return (self.build.command, *of_workloads, *(text for service in self.services for text in service.commands))

    def own_files(self, project: Path) -> tuple[Path, ...]:
        """Return the files that perfdiff alone reads: the configuration and the known costs of a project, unless a command names them.

        Builds and workloads find them as HEAD has them, so editing them measures nothing anew. That is safe: what the configuration says
        of measuring is part of the experiment's key, and known costs are looked at after measuring.
        """
        source = Path(self.source) if self.source else None
        accepted = (source.parent if source else project) / self.compare.accepted
        files = [accepted, *([source] if source and source.name != _SHARED else [])]
        return tuple(file for file in files if not any(file.name in command for command in self.commands))


def program(command: str) -> str:
    """Return the word of a shell command that names its program, "" where none does; raise ValueError where a quotation is not closed."""
    return next((word for word in shlex.split(command) if not ASSIGNMENT.match(word)), "")
