"""Runs on inputs that a search makes: both sides' builds with counters in every line, one input after the other."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from perfdiff.collect.counts import counterparts
from perfdiff.collect.execution.unread import UnreadExecutor
from perfdiff.collect.runs import workloads
from perfdiff.collect.runs.collector import Collector, PlacesOfRun
from perfdiff.collect.runs.inputs import InputFiles
from perfdiff.collect.runs.runfeatures import columns
from perfdiff.collect.runs.schedule import Slot
from perfdiff.config import INPUT, WorkloadConfig
from perfdiff.errors import DiskFilledError, RunFailedError, RunTimeoutError, WorkloadError, store_errors
from perfdiff.fuzzing import growth
from perfdiff.fuzzing.families import InputFamily
from perfdiff.fuzzing.trials import MishapKind, PairedRun, PlaceComparison
from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.places import PlaceCounts, PlaceExperiment, merged
from perfdiff.records.schema import Phase, Point, Revision, Side
from perfdiff.revisions.pins import PinnedPair

_ANY_EXIT = tuple(range(126))  # of a program that may refuse an input; above are those of the shell, and of signals
_MOST_OTHER = 0.02  # of the places that ran, which may count another thing where a server forks
_QUARTER = 4  # of a lone revision's input: four of them take as much as the whole where growth is linear


@dataclass(frozen=True, slots=True)
class Sized:
    """An input in several sizes: how often each place ran, and the CPU time of each run (sizes,), of programs that count."""

    counts: PlaceExperiment
    cpu_ns: Mapping[Side, Floats]

    @property
    def extra_lines(self) -> Floats:
        """Return how many more lines head executed, (sizes,)."""
        base, head = (self.counts.sides[side].counts.sum(axis=0) for side in (Side.BASE, Side.HEAD))
        return np.asarray(head - base)

    @property
    def extra_ns(self) -> Floats:
        """Return how much more CPU time head took, (sizes,)."""
        return self.cpu_ns[Side.HEAD] - self.cpu_ns[Side.BASE]


@dataclass(slots=True)
class InputRuns:
    """Tries inputs of workloads, `configs` by name, each in a file in `room` with the suffix that its seeds have.

    A setup is run before each run, as what it leaves may hang on the input.

    `unread` is what the collector runs them with.
    """

    collector: Collector
    pins: PinnedPair
    configs: Mapping[str, WorkloadConfig]
    suffixes: Mapping[str, str]
    room: Path
    unread: UnreadExecutor
    comparison: PlaceComparison = field(init=False)
    _rows: Mapping[Side, Ints] = field(init=False)
    _empty: Mapping[Side, PlaceCounts] = field(init=False)
    _made: int = 0

    def __post_init__(self) -> None:
        self._rows, self._empty = {}, {}
        for side in self.sides:
            reader = self.collector.targets[Phase.PLACED, side].places
            assert reader is not None, "only placed builds count places"
            places, rows = merged(reader.places)
            self._rows[side] = rows
            self._empty[side] = PlaceCounts((), places, np.zeros((len(places), 0)), {}, reader.sources)
        base, head = self._empty[Side.BASE], self._empty[self.sides[-1]]
        heads = counterparts.heads(self.pins, base, head) if base is not head else np.arange(len(base.places))
        steady = {side: np.ones(len(empty.places), dtype=bool) for side, empty in ((Side.BASE, base), (Side.HEAD, head))}
        self.comparison = PlaceComparison(head.places, heads, steady)

    @property
    def sides(self) -> tuple[Side, ...]:
        """Return which sides there are: base alone where one revision is searched."""
        return tuple(side for side in Side if (Phase.PLACED, side) in self.collector.targets)

    @property
    def is_alone(self) -> bool:
        """Return whether one revision is searched."""
        return len(self.sides) == 1

    @property
    def revisions(self) -> dict[Side, Revision]:
        """Return the revisions that are searched, by side."""
        return {side: (self.pins.base if side is Side.BASE else self.pins.head).revision for side in self.sides}

    @property
    def sources(self) -> list[Mapping[str, tuple[str, ...]]]:
        """Return the lines of each side's files, head's last."""
        return [self._empty[side].sources for side in self.sides]

    @property
    def lines(self) -> tuple[list[str], list[str]]:
        """Return the lines that one side's sources have and the other's have not, and all of head's; of a lone revision only the latter."""
        texts = [{line for lines in self._empty[side].sources.values() for line in lines} for side in (Side.BASE, self.sides[-1])]
        head = [line for lines in self._empty[self.sides[-1]].sources.values() for line in lines]
        return sorted(texts[0] ^ texts[1]), head

    def require_steady(self, seeds: Sequence[InputFamily]) -> float:
        """Leave places out of the comparison that run another number of times when a seed is run again; return their share.

        The first seed of each workload is asked. Runs that a server forks are only made where nearly all they count is what processes do;
        the rest, as what a first import runs, is left out as well.
        """
        firsts = {seed.workload: seed for seed in reversed(seeds)}
        return max(self._unsteady(seed, side) for seed in firsts.values() for side in self.sides)

    def _unsteady(self, seed: InputFamily, side: Side) -> float:
        with self.unread.as_processes():
            first, again = (self._run(side, seed, 1, np.inf) for _ in range(2))
        if isinstance(first, MishapKind) or isinstance(again, MishapKind):
            return 0.0
        is_steady = first.counts == again.counts
        forked = [self._run(side, seed, 1, np.inf) for _ in range(2)]  # a server is ready once it has made a run
        is_same = is_steady.copy()
        for run in forked:
            is_same &= not isinstance(run, MishapKind) and run.exit_code == first.exit_code and run.counts == first.counts
        if (is_steady & ~is_same).sum() > _MOST_OTHER * (first.counts > 0).sum():
            self.unread.distrusted.add(self.collector.targets[Phase.PLACED, side].directory)
            is_same = is_steady
        for own in (side, *((Side.HEAD,) if self.is_alone else ())):
            self.comparison.steady[own][:] &= is_same
        return float((~is_steady).sum()) / max(1, int((first.counts > 0).sum()))

    def trial(self, family: InputFamily, times: int, limit_s: float) -> PairedRun:
        """Run both sides on an input, and return their counts and times; raise PerfdiffError if a failure is not the input's."""
        if self.is_alone:
            return self._alone(family, times, limit_s)
        ran = self._together(family, times, limit_s) or {side: self._run(side, family, times, limit_s) for side in self.sides}
        return _trial(ran, dict.fromkeys(ran, 1))

    def _together(self, family: InputFamily, times: int, limit_s: float) -> Mapping[Side, PlacesOfRun | MishapKind] | None:
        """Return the runs of both sides at the same time; None where one of them fails, as only lone runs tell which.

        Where one does not end, both count as hanging as long as a smaller input may do.
        """
        slots, cpus = self._slots(self.sides, family, times, limit_s / len(self.sides)), os.sched_getaffinity(0)
        config = self.configs[family.workload]
        if config.alone or len(cpus) < len(slots) or self.collector.is_served(slots[0]) or not self.collector.apart(slots):
            return None
        try:
            ran = self.collector.count_places(slots, cpus)
        except DiskFilledError:
            raise
        except RunTimeoutError:
            return dict.fromkeys(self.sides, MishapKind.HANG) if family.grows and times > 1 else None
        except WorkloadError:
            return None
        if any(run.lost for run in ran):
            return None
        return {slot.side: self._whole(slot.side, run) for slot, run in zip(slots, ran, strict=True)}

    def _alone(self, family: InputFamily, times: int, limit_s: float) -> PairedRun:
        if not family.grows or times < _QUARTER:
            ran = self._run(Side.BASE, family, times, limit_s)
            return _trial({Side.BASE: ran, Side.HEAD: ran}, dict.fromkeys(Side, 1))
        part = self._run(Side.BASE, family, times // _QUARTER, limit_s)
        whole = self._run(Side.BASE, family, times, limit_s)
        return _trial({Side.BASE: part, Side.HEAD: whole}, {Side.BASE: _QUARTER, Side.HEAD: 1})

    def over_sizes(self, family: InputFamily, sizes: Sequence[int]) -> Sized | None:
        """Return what runs of each of some sizes of an input did, by numbers of repetitions; None where one fails.

        Repetitions are what sizes are told by, as bytes also grow by the digits of numbers, and by what stands around.
        """
        counts: dict[Side, list[Ints]] = {side: [] for side in self.sides}
        cpu_ns: dict[Side, list[float]] = {side: [] for side in self.sides}
        features: dict[Side, list[Mapping[str, float]]] = {side: [] for side in self.sides}
        points = [self._point(family, times)[0] for times in sizes]
        feature = family.dial or growth.REPETITIONS
        for times in sizes:
            for side in self.sides:
                ran = self._run(side, family, times, np.inf)
                if isinstance(ran, MishapKind):
                    return None
                counts[side].append(np.where(self.comparison.steady[side], ran.counts, 0))
                cpu_ns[side].append(ran.cpu_ns)
                features[side].append({feature: float(times)})
        named = tuple(replace(point, id=number) for number, point in enumerate(points))
        counted = {
            side: replace(
                self._empty[side],
                points=named,
                counts=np.array(counts[side], dtype=np.float64).T,
                features=columns(features[side]),
            )
            for side in self.sides
        }
        heads = self.comparison.heads if not self.is_alone else np.empty(0, dtype=np.int64)
        return Sized(PlaceExperiment(self.revisions, counted, heads), {side: np.array(times) for side, times in cpu_ns.items()})

    def _point(self, family: InputFamily, times: int) -> tuple[Point, WorkloadConfig]:
        """Return a point with its workload, its input written."""
        config = self.configs[family.workload]
        parameters = dict(family.parameters(times))
        if not family.dial:
            path = self.room / f"input{self.suffixes[family.workload]}"
            with store_errors(self.room):
                path.write_bytes(family.content(times))
            parameters[INPUT] = str(path)
            config = replace(config, inputs=(str(path),))
        self._made += 1
        return Point(self._made, config.name, parameters, workloads.filled(config.command, parameters)), config

    def _slots(self, sides: Sequence[Side], family: InputFamily, times: int, limit_s: float) -> list[Slot]:
        """Return runs of an input, which the collector knows from then on."""
        point, config = self._point(family, times)
        before = " && ".join(f"(\n{text}\n)" for text in (config.setup, config.prepare) if text)
        config = replace(config, setup=None, prepare=before or None, timeout_s=min(limit_s, config.timeout_s), exit_codes=_ANY_EXIT)
        self.collector.workloads = {config.name: config}
        self.collector.inputs = InputFiles.seen(Path(), [config])
        return [Slot(Phase.PLACED, point, side, 0) for side in sides]

    def _run(self, side: Side, family: InputFamily, times: int, limit_s: float) -> PlacesOfRun | MishapKind:
        """Return a run of an input, or why it has no counts: those of a process that was killed are missing, and would read as less."""
        try:
            [run] = self.collector.count_places(self._slots([side], family, times, limit_s))
        except RunTimeoutError:
            return MishapKind.HANG
        except RunFailedError:
            return MishapKind.CRASH
        return MishapKind.CRASH if run.lost else self._whole(side, run)

    def _whole(self, side: Side, run: PlacesOfRun) -> PlacesOfRun:
        """Return a run whose instances of one code are counted as one place."""
        counts = np.bincount(self._rows[side], weights=run.counts, minlength=len(self._empty[side].places))
        return replace(run, counts=counts.astype(np.int64))


def _trial(ran: Mapping[Side, PlacesOfRun | MishapKind], factors: Mapping[Side, int]) -> PairedRun:
    ended = {side: run for side, run in ran.items() if not isinstance(run, MishapKind)}
    return PairedRun(
        counts={side: factors[side] * run.counts for side, run in ended.items()},
        cpu_ns={side: factors[side] * run.cpu_ns for side, run in ended.items()},
        exit_codes={side: run.exit_code for side, run in ended.items()},
        failures={side: run for side, run in ran.items() if isinstance(run, MishapKind)},
    )
