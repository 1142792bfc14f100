"""From recordings of single processes to the columns of an experiment."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from perfdiff.languages.protocol import FeaturePlan, Load, Probe
from perfdiff.records.arrays import Bools, Floats
from perfdiff.records.recording import MEASURED, RecordedSamples, RecordedTotals, Recording
from perfdiff.records.recording_file import LENGTHS
from perfdiff.records.schema import Branch, Edges, Feature, Origin, Point, Run, SampleTable, Side, Totals

Part = tuple[Run, Mapping[int, str], RecordedSamples]  # a run, the names of its types by vtable pointer, and one function's calls

_SUMMED = ("calls", "wall_ns", "self_ns")
_ALLOCATED = ("alloc_bytes", "alloc_count")
_LOCKED = ("lock_wait_ns", "lock_hold_ns")
_READ = ("read", "reading_ns")
# Pointers and integers that are read as floating numbers, from memory that nobody has written to yet, are smaller than the smallest normal
# one of single precision (a pointer: 7e-310), which no input on which a cost depends is.
SMALLEST = float(np.finfo(np.float32).tiny)


@dataclass(slots=True)
class Assembly:
    """Collects the recordings of many runs; the numbers of a run are sums over its processes and threads.

    Of `counted` runs it takes what their calls counted, and no times: the software PMU stretches them. When `surveying`, it also takes
    what reading cells took, and how long calls were.
    """

    probes: Mapping[Side, Mapping[int, Probe]]
    points: Mapping[int, Point]
    counted: bool = False
    surveying: bool = False
    _totals: list[tuple[int, int, dict[str, float]]] = field(default_factory=list)
    _edges: list[tuple[int, int, int, float, float]] = field(default_factory=list)
    _lengths: dict[tuple[int, int], Floats] = field(default_factory=dict)
    _calls: dict[tuple[int, Side], list[Part]] = field(default_factory=dict)

    def add(self, run: Run, recordings: Iterable[Recording]) -> None:
        """Add the recordings of one run's processes."""
        totals: dict[int, dict[str, float]] = {}
        edges: dict[tuple[int, int], Floats] = {}
        for recording in recordings:
            columns = self._summed(recording.totals)
            for row, probe in enumerate(recording.totals.probe.tolist()):
                sums = totals.setdefault(probe, {})
                for name, values in columns.items():
                    sums[name] = sums.get(name, 0.0) + float(values[row])
            if self.surveying:
                self._add_lengths(run.id, recording)
            pairs = zip(recording.edges.caller.tolist(), recording.edges.callee.tolist(), strict=True)
            for pair, calls, wall_ns in zip(pairs, recording.edges.calls, recording.edges.wall_ns, strict=True):
                edges[pair] = edges.get(pair, 0.0) + np.array([calls, wall_ns])
            for probe, samples in recording.samples.items():
                if probe in self.probes[run.side]:
                    self._calls.setdefault((probe, run.side), []).append((run, recording.types, _evened(samples, run.id)))
        self._totals += [(run.id, probe, sums) for probe, sums in sorted(totals.items())]
        self._edges += [(run.id, *pair, *row) for pair, row in sorted(edges.items())]

    def forget(self, functions: Set[int]) -> None:
        """Drop what was recorded of functions."""
        self._totals = [row for row in self._totals if row[1] not in functions]
        self._edges = [row for row in self._edges if functions.isdisjoint(row[1:3])]
        self._calls = {key: parts for key, parts in self._calls.items() if key[0] not in functions}

    def totals(self) -> Totals:
        """Return the exact sums of all runs."""
        always = (*_SUMMED, *(_READ if self.surveying else ()))
        names = dict.fromkeys((*always, *(name for _, _, sums in self._totals for name in sums)))
        columns = {name: np.array([sums.get(name, np.nan) for _, _, sums in self._totals], float) for name in names}
        return Totals(
            np.array([run for run, _, _ in self._totals], np.int64),
            np.array([probe for _, probe, _ in self._totals], np.int64),
            **{name: columns.pop(name) for name in _SUMMED},
            other=columns,
        )

    def _summed(self, totals: RecordedTotals) -> dict[str, Floats]:
        """Return the sums over all calls of a process by name, one row a probe."""
        if self.counted:
            absent = dict.fromkeys(("wall_ns", "self_ns"), np.full(len(totals), np.nan))
            return {"calls": totals.calls, **absent, **{name: getattr(totals, name) for name in _ALLOCATED}, **totals.counters}
        names = (*_SUMMED, *_ALLOCATED, *_LOCKED, *(_READ if self.surveying else ()))
        return {name: getattr(totals, name) for name in names}

    def edges(self) -> Edges:
        """Return the calls between probed functions of all runs."""
        rows = np.array(self._edges, float).reshape(len(self._edges), 5)
        return Edges(*rows[:, :3].astype(np.int64).T, *rows[:, 3:].T)

    def lengths(self) -> Mapping[tuple[int, int], Floats]:
        """Return by run and function (2, 32): calls by classes of length, each twice as long as the one before, and their time in ns."""
        return self._lengths

    def _add_lengths(self, run: int, recording: Recording) -> None:
        middle_ns = 1.5 * 2.0 ** np.arange(LENGTHS) * recording.ns_per_tick
        for probe, calls in zip(recording.totals.probe.tolist(), recording.totals.lengths, strict=True):
            self._lengths[run, probe] = self._lengths.get((run, probe), 0.0) + np.stack([calls, calls * middle_ns])

    def tables(self) -> Iterator[SampleTable]:
        """Yield the sample table of every function and side that has one."""
        for (function, side), parts in sorted(self._calls.items()):
            yield self._table(self.probes[side][function], side, parts)

    def _table(self, probe: Probe, side: Side, parts: Sequence[Part]) -> SampleTable:
        plans = [probe.definition.features[i] for i in probe.features]
        branches = [probe.definition.branches[i] for i in probe.branches]
        lengths = [len(samples.thread) for _, _, samples in parts]
        cells = np.concatenate([samples.cells for _, _, samples in parts])
        read = np.concatenate([samples.read for _, _, samples in parts])
        types = {pointer: name for _, names, _ in parts for pointer, name in names.items()}
        points = np.repeat([run.point for run, _, _ in parts], lengths)
        parameters = [(feature, values[np.searchsorted(keys, points)]) for feature, keys, values in self._parameters(parts)]
        taken = {feature.name for feature, _ in parameters}
        columns = [_column(plan, cells[:, i], read[:, i], types) for i, plan in enumerate(plans)]
        columns = [
            (replace(feature, name=f"arg.{feature.name}"), values) if feature.name in taken else (feature, values)
            for feature, values in columns
        ]
        columns += parameters
        first = len(plans)
        outcomes = cells[:, first : first + 2 * len(branches)].astype(float)
        return SampleTable(
            function=probe.id,
            side=side,
            metrics=self._metrics([samples for _, _, samples in parts]),
            features=tuple(feature for feature, _ in columns),
            values=np.column_stack([values for _, values in columns]) if columns else np.empty((len(points), 0)),
            branches=tuple(Branch(plan.text, plan.line) for plan in branches),
            executed=outcomes[:, 0::2],
            taken=outcomes[:, 1::2],
            run=np.repeat([run.id for run, _, _ in parts], lengths).astype(np.int64),
            point=points.astype(np.int64),
            thread=np.concatenate([samples.thread for _, _, samples in parts]).astype(np.int64),
            call=np.concatenate([samples.call for _, _, samples in parts]).astype(np.int64),
            weight=np.concatenate([samples.weight for _, _, samples in parts]),
        )

    def _metrics(self, parts: Sequence[RecordedSamples]) -> dict[str, Floats]:
        """Return what was measured of the calls of all parts by name, NaN where a process had no such counter."""
        always = ("callee_calls", *_ALLOCATED) if self.counted else MEASURED
        names = dict.fromkeys((*always, *(name for part in parts for name in part.counters)))
        return {name: np.concatenate([_present(part.metric(name), len(part)) for part in parts]) for name in names}

    def _parameters(self, parts: Sequence[Part]) -> Iterator[tuple[Feature, Floats, Floats]]:
        """Yield each workload parameter as (feature, sorted point ids, value per point)."""
        keys = sorted({run.point for run, _, _ in parts})
        names = dict.fromkeys(name for key in keys for name in self.points[key].parameters)
        for name in names:
            values = [self.points[key].parameters.get(name) for key in keys]
            if all(value is None or isinstance(value, int | float) for value in values):
                feature = Feature(name, Origin.WORKLOAD)
                column = [np.nan if value is None else float(value) for value in values]
            else:
                feature = Feature(name, Origin.WORKLOAD, True, {_code(str(value)): str(value) for value in values})
                column = [float(_code(str(value))) for value in values]
            yield feature, np.array(keys), np.array(column)


def _evened(samples: RecordedSamples, seed: int) -> RecordedSamples:
    """Return a choice of the rows that all stand for equally many calls, as models and medians take rows as they come.

    The first calls of a function are all recorded, later ones perhaps one in many: as they are, they would speak for the rest.
    """
    heaviest = float(samples.weight.max(initial=0.0))
    if heaviest > 0.0 and samples.weight.min() == heaviest:
        return samples
    chosen = np.random.default_rng(seed).random(len(samples)) * heaviest < samples.weight
    if chosen.all():
        return samples
    return replace(samples.rows(chosen), weight=np.full(int(chosen.sum()), samples.weight.sum() / chosen.sum()))


def _present(values: Floats | None, rows: int) -> Floats:
    return np.full(rows, np.nan) if values is None else values


def _column(plan: FeaturePlan, cells: npt.NDArray[np.uint64], read: Bools, types: Mapping[int, str]) -> tuple[Feature, Floats]:
    """Return a feature and its values (n,) out of raw 64-bit cells; NaN where a load failed or what was read is no number."""
    match plan.load:
        case Load.FLOATING:
            values = cells.view(np.float64).copy()
            values[(values != 0) & (np.abs(values) < SMALLEST)] = np.nan
        case Load.SIGNED:
            values = cells.view(np.int64).astype(float)
        case Load.TYPE:
            names = {pointer: types.get(pointer, f"type at {pointer:#x}") for pointer in np.unique(cells[read]).tolist()}
            values = np.array([_code(names[pointer]) if pointer in names else 0 for pointer in cells.tolist()], float)
            labels = {_code(name): name for name in names.values()}
            return Feature(plan.name, plan.origin, True, labels), np.where(read, values, np.nan)
        case _:
            values = cells.astype(float)
    feature = Feature(plan.name, plan.origin, plan.category, dict(plan.labels or {}))
    return feature, np.where(read, values, np.nan)


def _code(name: str) -> int:
    """Return a number for a name that is the same in every process, run and revision."""
    return zlib.crc32(name.encode())
