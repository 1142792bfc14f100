"""Recording a program in use: a revision is built with probes, a command runs in it as long as it runs, and parts are left meanwhile.

revision → plain build → functions → survey, where there are workloads → build with probes → the command, beside which its recordings are
looked at: what they gained becomes a part, probes go faster or slower, and parts that are too many are removed.
"""

from __future__ import annotations

import contextlib
import resource
import signal
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from hashlib import blake2b
from pathlib import Path

import numpy as np

from perfdiff import processes, storage
from perfdiff.build.cache import BuildCache
from perfdiff.collect.built.workshop import dropped
from perfdiff.collect.choosing.survey import Priority, ProbeChoice
from perfdiff.collect.execution.executor import Command, ProcessExecutor, shell_text
from perfdiff.collect.recordings.assembly import Assembly
from perfdiff.collect.recordings.live import Live
from perfdiff.collect.runs.pacing import beginning, leaves, paced
from perfdiff.collect.trees.upkeep import Chores
from perfdiff.errors import MeasurementError, StoreError
from perfdiff.languages.protocol import ProbeCosts
from perfdiff.measuring import variants
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.changes import site_of
from perfdiff.measuring.guesses import EarlyRuns, prepared
from perfdiff.measuring.site import Site, Variant
from perfdiff.measuring.surveying import SurveyPoints, surveyed
from perfdiff.progress import Progress, Stopwatch
from perfdiff.records import parts, plan
from perfdiff.records.parts import Part, PartFunction
from perfdiff.records.recording import Recording
from perfdiff.records.schema import Edges, Environment, Phase, Point, Run, SampleTable, Side, Totals
from perfdiff.request import Request
from perfdiff.revisions.pins import resolve_one
from perfdiff.revisions.repository import find_repository

FIRST_LOOK_S = 5.0  # then it is known how often functions are called, and their probes are set
ENDING_S = 10.0  # that what a command leaves behind has to end, once it has ended itself
SAMPLES = 250  # calls kept of a function by a thread until the next look
OF_ALL = 32  # a process's live recording takes at most this part of what all parts may take …
LEAST_LIVE_BYTES = 2**20  # … and as much in any case
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_COMPILED = "c"


@dataclass(frozen=True, slots=True)
class RecordingOrder:
    """What is recorded, and where it is left: `command` as the shell takes it, parts below `to`, of `host` with `labels`.

    Parts take `most_bytes` in all; one is made every `every_s`. Probes may add `overhead`, a share of CPU time. Of `functions`, patterns of
    names or files, those that match have probes, all where there are none. With `survey` the configured workloads choose.
    """

    command: str
    to: Path
    host: str
    labels: Mapping[str, str] = field(default_factory=dict)
    most_bytes: int = 100_000_000
    every_s: float = 60.0
    overhead: float = 0.02
    functions: tuple[str, ...] = ()
    survey: bool = False


@dataclass(frozen=True, slots=True)
class RecordingEnd:
    """How a recorded command ended: its exit code as a shell gives it, the parts that it left, and those removed for want of room."""

    code: int
    written: int
    removed: int


def record(request: Request, wanted: RecordingOrder, progress: Progress) -> RecordingEnd:
    """Build a revision, run the command in it, and leave parts meanwhile; raise PerfdiffError where it cannot be built or started."""
    progress.stage("resolving revisions", None)
    repository, name = find_repository(request.repository), next(iter(request.revisions), None)
    with storage.station(request.cache) as cache, storage.in_use(cache, progress):
        probes = replace(request.config.probes, samples=min(request.config.probes.samples, SAMPLES))
        request = replace(request, cache=cache, config=replace(request.config, probes=probes))
        pins = resolve_one(repository, name, snapshots=cache / "snapshots", apart=request.config.own_files(request.repository))
        with storage.at_work(cache, progress, wait_s=request.config.measure.wait_s) as room, BuildCache(cache) as builds:
            tools = request.packs, ProcessExecutor(), Stopwatch(progress)
            bench = Bench(request, pins, builds, room, *tools, (Side.BASE,))
            with closing(bench.upkeep):
                return _recorded(bench, wanted, progress)


def _recorded(bench: Bench, wanted: RecordingOrder, progress: Progress) -> RecordingEnd:
    if wanted.survey:
        bench, site = prepared(bench, EarlyRuns())
        with closing(bench.services):
            site, _ = surveyed(bench, site, SurveyPoints(bench.points))
    else:
        site = site_of(bench, bench.workshop.plain())
    site = _chosen(bench, site, wanted)
    variant = variants.followed(bench, variants.recipe(bench, site), site)
    for lost in dropped(variant.built, variant.probes):
        progress.note(f"{lost.name}: {lost.reason}")
    out = bench.room / "live"
    out.mkdir()
    environment = parts.without_texts(site.environment(bench.request.environment))
    return _CommandRecorder(bench, site, variant, wanted, progress, Live(out), environment).run()


def _chosen(bench: Bench, site: Site, wanted: RecordingOrder) -> Site:
    """Return a site whose selection has no conditions, as these are texts, and reads no texts; of the functions that are wanted."""
    subjects = site.subjects
    probeable = subjects.probeable(bench.request.config.probes.exclude)
    samples, nothing = bench.reservoir, {Side.BASE: (), Side.HEAD: ()}
    choices = [replace(choice, samples=samples, branches=nothing, far=False) for choice in site.selection.choices]
    if not wanted.survey:
        usual = beginning(probeable, _leaves(site, probeable))
        choices = [
            ProbeChoice(id_, Priority.SUSPECT, rate, samples, detail=False, far=False, branches=nothing) for id_, rate in usual.items()
        ]
    if wanted.functions:
        shown = {id_: pair.shown for id_, pair in probeable.items()}
        choices = [
            choice
            for choice in choices
            if any(fnmatch(text, pattern) for pattern in wanted.functions for text in (shown[choice.id].name, shown[choice.id].file))
        ]
    if not choices:
        raise MeasurementError(
            f"no function of the revision that can carry a probe matches {' or '.join(wanted.functions)}"
            if wanted.functions
            else "no function of the revision can carry a probe; `perfdiff doctor` says what can be measured here",
            slug="nothing-to-record",
        )
    return replace(site, selection=replace(site.selection, choices=tuple(choices), folds=()))


def _leaves(site: Site, functions: Sequence[int] | Mapping[int, object]) -> frozenset[int]:
    """Return compiled functions that call no other probed one; of other languages sources tell too little, and passing saves nothing."""
    pairs = site.subjects.pairs
    return frozenset(id_ for id_ in leaves(list(functions), site.subjects.calls) if pairs[id_].shown.language == _COMPILED)


@dataclass(slots=True)
class _CommandRecorder:
    """A command at work, and what was left of it so far."""

    bench: Bench
    site: Site
    variant: Variant
    wanted: RecordingOrder
    progress: Progress
    live: Live
    environment: Environment
    session: str = field(default_factory=parts.new_id)
    written: int = 0
    removed: int = 0
    _seen_unix_ns: int = 0
    _seen: float = 0.0
    _cpu_s: float = 0.0
    _others_cpu_s: float = 0.0  # of builds and the like
    _uneven: frozenset[int] = frozenset()  # probes that did not time each call since the last look
    _slow: frozenset[int] = frozenset()  # those whose rates are not one
    _leaves: frozenset[int] = frozenset()
    _told: set[str] = field(default_factory=set)

    def run(self) -> RecordingEnd:
        """Run the command to its end."""
        bench, wanted = self.bench, self.wanted
        target = self.variant.targets[Phase.TIMED, Side.BASE]
        assert target.plan is not None, "builds with probes have a plan"
        probes = self.variant.probes[Side.BASE]
        self._leaves = _leaves(self.site, probes)
        command = Command(
            text=wanted.command,
            directory=target.directory,
            environment={
                **bench.request.inherited,
                **target.variables,
                "PERFDIFF_OUT": str(self.live.folder),
                "PERFDIFF_PLAN": str(target.plan),
                "PERFDIFF_SEED": str(int(self.session[:8], 16)),
                "PERFDIFF_MOST_BYTES": str(max(LEAST_LIVE_BYTES, wanted.most_bytes // OF_ALL)),
                **target.steering,
                processes.MARK: self.session,
            },
            timeout_s=float("inf"),
            exit_codes=(0,),
            where="the recorded command",
        )
        self._others_cpu_s = _children_cpu_s()
        self._uneven = frozenset(choice.id for choice in self.site.selection.choices if choice.rate.period > 1 or choice.rate.inner)
        self._slow = self._uneven
        self.progress.stage("recording", None)
        with contextlib.ExitStack() as stack:
            if target.tree is not None:
                stack.enter_context(bench.upkeep.around(target.tree, command, Chores("record", 0), bench.executor))
            passed_on = _PassedOn()
            stack.enter_context(passed_on.held())
            process = stack.enter_context(
                processes.running(shell_text(command), command.directory, command.environment, stdin=None, stdout=None, stderr=None)
            )
            passed_on.to(process)
            self._begin()
            self._wait(process, target.plan)
            processes.stop(process.pid, self.session, signal.SIGTERM, ENDING_S)
            self._look(process.pid, target.plan)
            code = process.returncode
        self._tell_problems()
        return RecordingEnd(code if code >= 0 else 128 - code, self.written, self.removed)

    def _begin(self) -> None:
        self._seen_unix_ns, self._seen = time.time_ns(), time.monotonic()

    def _wait(self, process: subprocess.Popen[bytes], plan_: Path) -> None:
        """Look at the recordings until the command has ended."""
        due = time.monotonic() + min(FIRST_LOOK_S, self.wanted.every_s)
        while True:
            try:
                process.wait(max(0.0, due - time.monotonic()))
            except subprocess.TimeoutExpired:
                self._look(process.pid, plan_)
                due = time.monotonic() + self.wanted.every_s
            else:
                return

    def _look(self, leader: int, plan_: Path) -> None:
        """Leave a part of what came since the last look, and set the probes by it; what fails is told, and the program goes on."""
        cpu_s = self._cpu_s_so_far(leader)
        used_s, self._cpu_s = max(0.0, cpu_s - self._cpu_s), cpu_s
        gained = self.live.gained()
        since_unix_ns, since = self._seen_unix_ns, self._seen
        self._begin()
        elapsed_s = self._seen - since
        try:
            if gained:
                self._leave_part(gained, since_unix_ns, elapsed_s, used_s)
                self.removed += parts.bounded(self.wanted.to, self.wanted.most_bytes)
            self._set_probes(gained, used_s or elapsed_s, plan_)
        except (StoreError, OSError) as error:
            self._tell("unwritable", f"what was recorded in the last {elapsed_s:.0f} s is lost: {error}")

    def _cpu_s_so_far(self, leader: int) -> float:
        """Return what the command took of a CPU, of its processes as long as some run, and of all that were waited for once none does."""
        running = processes.family(leader, self.session)
        if running:
            return sum(processes.cpu_ns(process) for process in running) / 1e9
        return _children_cpu_s() - self._others_cpu_s

    def _leave_part(self, recordings: Sequence[Recording], since_unix_ns: int, elapsed_s: float, cpu_s: float) -> None:
        bench, probes = self.bench, self.variant.probes
        run = Run(0, Phase.TIMED, 0, Side.BASE, 0, elapsed_s * 1e9, cpu_s * 1e9, 0.0, None, None, "")
        assembly = Assembly(probes, {0: Point(0, "", {}, "")})
        assembly.add(run, recordings)
        edges, tables = assembly.edges(), list(assembly.tables())
        totals = _with_own_times_of_samples(assembly.totals(), edges, tables, self._uneven)
        ids = {*totals.function.tolist(), *edges.caller.tolist(), *edges.callee.tolist(), *(table.function for table in tables)} - {0}
        part = Part(
            id=parts.new_id(),
            session=self.session,
            number=self.written,
            host=self.wanted.host,
            environment=self.environment,
            revision=parts.revision(self.bench.pins.base.revision),
            tree=bench.pins.base.tree,
            build=_digest(*sorted(self.site.toolchain.flags)),
            labels=self.wanted.labels,
            started_unix_ns=since_unix_ns,
            ended_unix_ns=self._seen_unix_ns,
            elapsed_s=elapsed_s,
            cpu_s=cpu_s,
            processes=len(recordings),
            functions=self._functions(ids),
        )
        parts.write(self.wanted.to, part, totals, edges, tables)
        self.written += 1
        self.progress.advance(f"{self.written} parts")

    def _functions(self, ids: set[int]) -> tuple[PartFunction, ...]:
        pairs = self.site.subjects.pairs
        functions = []
        for info in self.site.subjects.infos(ids):
            definition = pairs[info.id].shown
            file = definition.file if not Path(definition.file).is_absolute() else Path(definition.file).name
            calls = info.calls & ids
            functions.append(PartFunction(info.id, info.name, file, info.line, info.language, _digest(definition.tokens), frozenset(calls)))
        return tuple(functions)

    def _set_probes(self, recordings: Sequence[Recording], cpu_s: float, plan_: Path) -> None:
        """Have probes look at calls as often as the budget allows, and begin to keep other calls."""
        calls: dict[int, float] = {}
        for recording in recordings:
            for probe, count in zip(recording.totals.probe.tolist(), recording.totals.calls.tolist(), strict=True):
                calls[probe] = calls.get(probe, 0.0) + count
            self._leaves -= set(recording.edges.caller.tolist())
        pace = paced(calls, cpu_s, self._costs, self._leaves, self.wanted.overhead)
        uneven = {probe for probe in self.variant.probes[Side.BASE] if probe not in pace.rates or pace.rates[probe].period > 1}
        self._uneven, self._slow = frozenset(uneven | self._slow), frozenset(uneven)  # the first calls still are of the rates before
        plan.turn(plan_, {probe: (rate.period, rate.passing) for probe, rate in pace.rates.items()})
        if pace.overhead > self.wanted.overhead:
            self._tell(
                "overhead",
                f"probes take about {100 * pace.overhead:.1f} % of the CPU time, more than the {100 * self.wanted.overhead:g} % that they "
                "may, though they look at as few calls as they can; fewer functions (--functions), or a survey by workloads, take less",
            )

    @property
    def _costs(self) -> dict[int, ProbeCosts]:
        """Return what the probes cost whose rates may change: those of recursive functions that a survey found stay."""
        by_language = self.bench.packs.probe_costs(self.site.plain[Side.BASE])
        fixed = {choice.id for choice in self.site.selection.choices if choice.rate.inner}
        probes = self.variant.probes[Side.BASE]
        return {id_: by_language[probe.definition.language] for id_, probe in probes.items() if id_ not in fixed}

    def _tell_problems(self) -> None:
        for slug, problem in self.live.problems.items():
            self._tell(slug, f"a process's recording could not be read: {problem}")
        if not self.written:
            self._tell("nothing", "no probed function was called: nothing was recorded")

    def _tell(self, slug: str, text: str) -> None:
        if slug not in self._told:
            self._told.add(slug)
            self.progress.note(text)


def _with_own_times_of_samples(totals: Totals, edges: Edges, tables: Sequence[SampleTable], uneven: Collection[int]) -> Totals:
    """Return sums whose own times are those of recorded calls, for functions that call such not each of whose calls is timed, `uneven`.

    A recorded call's own time is exact. One that is only timed stands for as many as its callees do that happen to be timed below it: few
    of both leave a sum that is amiss by several times itself.
    """
    callees: dict[int, set[int]] = {}
    for caller, callee in zip(edges.caller.tolist(), edges.callee.tolist(), strict=True):
        callees.setdefault(caller, set()).add(callee)
    own_ns = totals.self_ns.copy()
    sampled = {table.function: table for table in tables if len(table)}
    for row, (function, calls) in enumerate(zip(totals.function.tolist(), totals.calls.tolist(), strict=True)):
        table = sampled.get(function)
        if table is None or not (callees.get(function, set()) & set(uneven)):
            continue
        times = table.metrics["self_ns"]
        timed = np.isfinite(times)
        if timed.any():
            own_ns[row] = calls * float(np.average(times[timed], weights=table.weight[timed]))
    return replace(totals, self_ns=own_ns)


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@dataclass(slots=True)
class _PassedOn:
    """Sends the signals that come to this process on to all of a command's, and stays; those that come before it runs wait for that."""

    process: subprocess.Popen[bytes] | None = None
    _came: list[int] = field(default_factory=list)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Take the signals for the length of a block, but those that are ignored, as under nohup."""
        taken = [number for number in _PASSED_ON if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, self._take) for number in taken}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def to(self, process: subprocess.Popen[bytes]) -> None:
        """Say which command it is."""
        self.process = process
        while self._came:
            self._take(self._came.pop(0), None)

    def _take(self, number: int, _frame: object) -> None:
        if self.process is None:
            self._came.append(number)
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            processes.send(self.process.pid, signal.Signals(number))


def _digest(*texts: str) -> str:
    return blake2b("\n".join(texts).encode(errors="surrogateescape"), digest_size=8).hexdigest()
