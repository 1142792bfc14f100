"""Parts of a fleet as one experiment: each recorded command is a run, each host a machine.

Parts are read one after the other. Sums are added up exactly, single calls go to reservoirs, so that memory is bounded by functions, runs
and the calls that are kept, not by parts. Hosts have more or less to do: what a run did in all is told per unit of work, by the median
over functions of how many times as often as usual they were called (Anders and Huber 2010, of sequencing depths).
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from perfdiff.errors import RecordingError
from perfdiff.records import parts, usual_inputs
from perfdiff.records.arrays import Floats
from perfdiff.records.differences import SkippedFunction, other_reason
from perfdiff.records.fleet import FleetChoice, FleetPart, LeftOut, machine_key
from perfdiff.records.parts import Numbers, Part, PartFunction
from perfdiff.records.recorded import RECORDED_APART
from perfdiff.records.reservoir import Reservoir, joined, quota
from perfdiff.records.schema import (
    Change,
    ComparedUnit,
    Edges,
    Environment,
    Experiment,
    FunctionInfo,
    Machine,
    Note,
    Origin,
    Phase,
    Point,
    Run,
    SampleTable,
    Side,
    Source,
    Totals,
    Workload,
)

FEWEST_ROWS = 8  # of a run, however many runs there are
SEEN_IN = 0.5  # of a side's runs: a function that the other side lacks must have been called in as many to count as added or removed
WORKLOAD = "use"

Name = tuple[str, str, str]  # of a function: its language, name and file
RunKey = tuple[Side, str, str]  # side, session, label
Layout = tuple[tuple[str, Origin, bool], ...]  # of features: name, origin, whether it is a category


@dataclass(slots=True)
class _Function:
    """What is known of a function on one side: texts by how many calls have them, and reservoirs by layout of features and run."""

    line: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    callees: set[Name] = field(default_factory=set)
    layouts: Counter[Layout] = field(default_factory=Counter)
    reservoirs: dict[tuple[Layout, RunKey], Reservoir] = field(default_factory=dict)


@dataclass(slots=True)
class _Session:
    """The sums of one run."""

    machine: int
    point: int
    cpu_ns: float = 0.0
    totals: dict[Name, dict[str, float]] = field(default_factory=dict)
    edges: dict[tuple[Name | None, Name], list[float]] = field(default_factory=dict)


@dataclass(slots=True)
class Pool:
    """Takes parts one after the other; `rows_of_run` single calls are kept of each function and run."""

    rows_of_run: Mapping[Side, int]
    seed: int
    functions: dict[Side, dict[Name, _Function]] = field(default_factory=lambda: {side: {} for side in Side})
    sessions: dict[RunKey, _Session] = field(default_factory=dict)
    machines: dict[tuple[str, Environment], int] = field(default_factory=dict)
    labels: dict[tuple[tuple[str, str], ...], int] = field(default_factory=dict)
    environments: dict[Side, Counter[Environment]] = field(default_factory=lambda: {side: Counter() for side in Side})

    def add(self, side: Side, part: Part, numbers: Numbers) -> None:
        """Add a part."""
        names = {function.id: (function.language, function.name, function.file) for function in part.functions}
        label = tuple(sorted(part.labels.items()))
        machine = self.machines.setdefault(machine_key(part), len(self.machines))
        point = self.labels.setdefault(label, len(self.labels))
        self.environments[side][replace(part.environment, created="")] += 1
        key = side, part.session, repr(label)
        session = self.sessions.setdefault(key, _Session(machine, point))
        session.cpu_ns += 1e9 * part.cpu_s
        calls = _add_sums(session, numbers, names)
        for function in part.functions:
            entry = self.functions[side].setdefault(names[function.id], _Function())
            entry.line = function.line
            entry.codes[function.code] += 1
            entry.callees |= {names[callee] for callee in function.calls if callee in names}
            table = numbers.samples.get(function.id)
            if table is not None:
                self._add_calls(entry, function, table, key, part.id)
                entry.layouts[_layout(function)] += int(calls.get(function.id, 0.0))

    def _add_calls(self, entry: _Function, function: PartFunction, table: SampleTable, key: RunKey, part: str) -> None:
        place = _layout(function), key
        reservoir = entry.reservoirs.get(place) or Reservoir(self.rows_of_run[key[0]], self.seed)
        seed = zlib.crc32(f"{self.seed}:{part}:{function.language}:{function.name}:{function.file}".encode())
        entry.reservoirs[place] = reservoir.added(table, seed)


def _layout(function: PartFunction) -> Layout:
    return tuple((feature.name, feature.origin, feature.category) for feature in function.features)


def _add_sums(session: _Session, numbers: Numbers, names: Mapping[int, Name]) -> dict[int, float]:
    """Add a part's sums to its run's; return the calls of each function."""
    sums = numbers.sums
    columns = {"calls": sums.calls, "wall_ns": sums.wall_ns, "self_ns": sums.self_ns, **sums.other}
    for row, function in enumerate(sums.function.tolist()):
        into = session.totals.setdefault(names[function], {})
        for metric, values in columns.items():
            into[metric] = into.get(metric, 0.0) + float(values[row])
    ends = zip(sums.caller.tolist(), sums.callee.tolist(), sums.made.tolist(), sums.took_ns.tolist(), strict=True)
    for caller, callee, calls, took_ns in ends:
        edge = session.edges.setdefault((names.get(caller), names[callee]), [0.0, 0.0])
        edge[0] += calls
        edge[1] += took_ns
    return dict(zip(sums.function.tolist(), sums.calls.tolist(), strict=True))


def pooled(chosen: FleetChoice, seed: int, advance: Callable[[str], None] = lambda _: None) -> tuple[Experiment, Iterator[SampleTable]]:
    """Return the parts of both revisions as one experiment, and its tables; a part that turns out damaged is left out and told.

    Raise RecordingError where all of a side are.
    """
    sessions = {side: len({member.part.session for member in members}) for side, members in chosen.sides.items()}
    pool = Pool({side: max(FEWEST_ROWS, quota(count)) for side, count in sessions.items()}, seed)
    damaged: list[str] = []
    for side, members in chosen.sides.items():
        for member in members:
            try:
                pool.add(side, *_read(member, side))
            except RecordingError:
                damaged.append(member.folder.name)
            advance(member.folder.name)
        if members and not pool.environments[side]:
            what = "the only part" if len(members) == 1 else f"each of the {len(members):,} parts"
            raise RecordingError(
                f"{what} of '{chosen.revisions[side].rev}' is damaged, {damaged[-1]} for one: copy them anew from where they were recorded",
                slug="fleet-damaged",
            )
    notes = (*chosen.notes, *(LeftOut({"damaged": damaged}).notes() if damaged else ()))
    return _PoolAssembly(pool, chosen, notes).experiment()


def _read(member: FleetPart, side: Side) -> tuple[Part, Numbers]:
    """Return a part with its functions and its numbers; its labels are those by which it was chosen."""
    part = parts.load(member.folder)
    return replace(part, labels=member.part.labels), parts.numbers(member.folder, part, side)


@dataclass(slots=True)
class _PoolAssembly:
    """A pool on its way to an experiment: names become numbers."""

    pool: Pool
    chosen: FleetChoice
    notes: tuple[Note, ...]
    runs: dict[RunKey, int] = field(default_factory=dict)
    numbers: dict[Name, int] = field(default_factory=dict)  # of both sides: functions that are the same have the same number
    named: dict[int, dict[Side, Name]] = field(default_factory=dict)
    own_ns: dict[tuple[int, int], float] = field(default_factory=dict)  # of a call at usual inputs, by function and run
    whole_ns: dict[tuple[int, int], float] = field(default_factory=dict)  # with callees

    def experiment(self) -> tuple[Experiment, Iterator[SampleTable]]:
        """Return the experiment, and its tables one after the other."""
        pool = self.pool
        skipped = self._number()
        self.runs = {key: number for number, key in enumerate(sorted(pool.sessions))}
        self._standardise()
        depths = self._depths()
        usual = {side: pool.environments[side].most_common(1)[0][0] for side in Side if pool.environments[side]}
        points = tuple(Point(number, WORKLOAD, dict(label), "", served=True) for label, number in pool.labels.items())
        machines = tuple(Machine(name, environment) for name, environment in self._machines())
        experiment = Experiment(
            base=self.chosen.revisions[Side.BASE],
            head=self.chosen.revisions[Side.HEAD],
            environment=usual.get(Side.HEAD) or usual[Side.BASE],
            workloads=(Workload(WORKLOAD, "", tuple(sorted({name for label in pool.labels for name, _ in label}))),),
            points=points,
            functions=tuple(self._info(number) for number in sorted(self.named)),
            skipped=skipped,
            runs=tuple(self._run(key, depths[key]) for key in self.runs),
            totals=self._totals(depths),
            edges=self._edges(depths),
            notes=(RECORDED_APART, *self.notes, *self._layout_notes()),
            machines=machines if len(machines) > 1 else (),
            compared=ComparedUnit.FLEET,
        )
        return experiment, self._tables()

    def _number(self) -> tuple[SkippedFunction, ...]:
        """Number the functions: the same by name, and by file where a side has several of one name; others are one side's alone."""
        short = {side: Counter(name[:2] for name in self.pool.functions[side]) for side in Side}
        by_key: dict[tuple[str, ...], dict[Side, Name]] = {}
        for side in Side:
            for name in self.pool.functions[side]:
                several = any(short[side][name[:2]] > 1 for side in Side)
                by_key.setdefault(name if several else name[:2], {})[side] = name
        skipped = []
        for key in sorted(by_key):
            pair = by_key[key]
            only = next(iter(pair)) if len(pair) == 1 else None
            if only is not None and not self._is_usual(only, pair[only]):
                skipped.append(SkippedFunction(pair[only][1], pair[only][2], f"only {only} has calls of it, in few of its recordings"))
                continue
            number = len(self.named) + 1
            self.named[number] = pair
            self.numbers |= dict.fromkeys(pair.values(), number)
        return tuple(skipped)

    def _is_usual(self, side: Side, name: Name) -> bool:
        """Return whether so many of a side's runs call a function that it would have been seen on the other side, were it there."""
        own = [session for key, session in self.pool.sessions.items() if key[0] is side]
        return sum(name in session.totals for session in own) >= SEEN_IN * len(own)

    def _depths(self) -> dict[RunKey, float]:
        """Return how many times as much each run has done as is usual at its point."""
        depth_by_run = dict.fromkeys(self.runs, 1.0)
        common = [number for number, pair in self.named.items() if len(pair) == len(Side)]
        place = {number: column for column, number in enumerate(common)}
        for point in set(self.pool.labels.values()):
            keys = [key for key in self.runs if self.pool.sessions[key].point == point]
            logs = np.full((len(keys), len(common)), np.nan)
            for row, key in enumerate(keys):
                for name, sums in self.pool.sessions[key].totals.items():
                    column = place.get(self.numbers.get(name, 0))
                    if column is not None and sums["calls"] > 0:
                        logs[row, column] = np.log(sums["calls"])
            depth_by_run |= zip(keys, depths(logs).tolist(), strict=True)
        return depth_by_run

    def _standardise(self) -> None:
        """Find what calls take at usual inputs in each run: hosts meet other inputs, which a run's time in all would tell of."""
        for number in self.named:
            tables = list(self._tables_of(number))
            for metric, costs in (("self_ns", self.own_ns), ("wall_ns", self.whole_ns)):
                costs |= {(number, run): ns for run, ns in usual_inputs.costs(tables, metric).items()}

    def _machines(self) -> Iterator[tuple[str, Environment]]:
        """Yield hosts by number; one that was set up anew meanwhile is another one, by a name of its own."""
        seen: Counter[str] = Counter()
        for (host, environment), _ in sorted(self.pool.machines.items(), key=lambda pair: pair[1]):
            seen[host] += 1
            yield (host if seen[host] == 1 else f"{host} ({seen[host]})"), environment

    def _run(self, key: RunKey, depth: float) -> Run:
        session = self.pool.sessions[key]
        own_ns = sum(sums["self_ns"] for sums in session.totals.values() if np.isfinite(sums["self_ns"]))
        cpu_ns = max(session.cpu_ns, own_ns, 1.0) / depth
        number = self.runs[key]
        return Run(number, Phase.TIMED, session.point, key[0], number, cpu_ns, cpu_ns, 0.0, None, None, "", machine=session.machine)

    def _info(self, number: int) -> FunctionInfo:
        pair = self.named[number]
        entries = {side: self.pool.functions[side][name] for side, name in pair.items()}
        language, name, file = pair.get(Side.HEAD) or pair[Side.BASE]
        change, reason = _change({side: entry.codes.most_common(1)[0][0] for side, entry in entries.items()})
        sources = {side: Source(pair[side][2], entry.line, "") for side, entry in entries.items()}
        return FunctionInfo(
            id=number,
            name=name,
            file=file,
            line=(entries.get(Side.HEAD) or entries[Side.BASE]).line,
            language=language,
            change=change,
            reasons=(other_reason(reason),),
            base=sources.get(Side.BASE),
            head=sources.get(Side.HEAD),
            calls=frozenset(self.numbers[callee] for entry in entries.values() for callee in entry.callees if callee in self.numbers),
        )

    def _totals(self, of_runs: Mapping[RunKey, float]) -> Totals:
        rows = [
            (self.runs[key], self.numbers[name], of_runs[key], self._usual(self.runs[key], self.numbers[name], sums))
            for key, session in self.pool.sessions.items()
            for name, sums in session.totals.items()
            if name in self.numbers
        ]
        rows.sort(key=lambda row: row[:2])
        names = dict.fromkeys(("calls", "wall_ns", "self_ns", *(metric for row in rows for metric in row[3])))
        columns = {name: np.array([sums.get(name, np.nan) / depth for _, _, depth, sums in rows], float) for name in names}
        return Totals(
            np.array([row[0] for row in rows], np.int64),
            np.array([row[1] for row in rows], np.int64),
            **{name: columns.pop(name) for name in ("calls", "wall_ns", "self_ns")},
            other=columns,
        )

    def _usual(self, run: int, function: int, sums: Mapping[str, float]) -> dict[str, float]:
        """Return the sums of a function in a run with its time at usual inputs, where calls tell of that."""
        key = function, run
        times = {"self_ns": self.own_ns.get(key), "wall_ns": self.whole_ns.get(key)}
        return {**sums, **{name: sums["calls"] * ns for name, ns in times.items() if ns is not None}}

    def _edges(self, of_runs: Mapping[RunKey, float]) -> Edges:
        rows = sorted(
            (
                self.runs[key],
                0 if caller is None else self.numbers[caller],
                self.numbers[callee],
                calls / of_runs[key],
                self._took(self.runs[key], self.numbers[callee], calls, took) / of_runs[key],
            )
            for key, session in self.pool.sessions.items()
            for (caller, callee), (calls, took) in session.edges.items()
            if callee in self.numbers and (caller is None or caller in self.numbers)
        )
        table = np.array(rows, float).reshape(len(rows), 5)
        return Edges(*table[:, :3].astype(np.int64).T, *table[:, 3:].T)

    def _took(self, run: int, callee: int, calls: float, took_ns: float) -> float:
        ns = self.whole_ns.get((callee, run))
        return took_ns if ns is None else calls * ns

    def _layout_notes(self) -> Iterator[Note]:
        mixed = sorted({name[1] for side in Side for name, entry in self.pool.functions[side].items() if len(entry.layouts) > 1})
        if mixed:
            yield Note("fleet-features", f"of {', '.join(mixed[:3])} only parts with the most frequent inputs are compared call by call")

    def _tables(self) -> Iterator[SampleTable]:
        for number in sorted(self.named):
            yield from self._tables_of(number)

    def _tables_of(self, number: int) -> Iterator[SampleTable]:
        for side, name in sorted(self.named[number].items()):
            entry = self.pool.functions[side][name]
            if not entry.layouts:
                continue
            layout = max(entry.layouts, key=lambda layout: (entry.layouts[layout], repr(layout)))
            run_tables = ((key, entry.reservoirs[layout, key].table()) for key in self.runs if (layout, key) in entry.reservoirs)
            yield joined(*(self._of_run(table, number, key) for key, table in run_tables if table is not None))

    def _of_run(self, table: SampleTable, number: int, key: RunKey) -> SampleTable:
        point = self.pool.sessions[key].point
        return replace(table, function=number, run=np.full(len(table), self.runs[key]), point=np.full(len(table), point))


def depths(logs: Floats) -> Floats:
    """Return how many times as much each run has done as is usual, from the logarithms of its calls (runs, functions), NaN where none."""
    called = np.isfinite(logs)
    usual = called.sum(axis=0) >= max(1.0, SEEN_IN * len(logs))
    if not usual.any():
        return np.ones(len(logs))
    chosen = np.where(called, logs, np.nan)[:, usual]
    differences = chosen - np.nanmean(chosen, axis=0)
    return np.array([float(np.exp(np.nanmedian(row))) if np.isfinite(row).any() else 1.0 for row in differences])


def _change(codes: Mapping[Side, str]) -> tuple[Change, str]:
    """Return how a function differs, by the digests of its text on the sides that have it."""
    if len(codes) < len(Side):
        return (Change.ADDED, "only head has it") if Side.HEAD in codes else (Change.REMOVED, "only base has it")
    if codes[Side.BASE] != codes[Side.HEAD]:
        return Change.CHANGED, "its text differs"
    return Change.AFFECTED, "its text is the same; what it depends on was not compared"
