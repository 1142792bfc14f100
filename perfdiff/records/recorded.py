"""What was recorded of one version, or of two, as the analysis takes it: an experiment with its sample tables."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from perfdiff.errors import RecordingError
from perfdiff.records import store
from perfdiff.records.places import PlaceExperiment
from perfdiff.records.remote import Folder
from perfdiff.records.reservoir import Reservoir, quota
from perfdiff.records.schema import ComparedUnit, Experiment, Note, Phase, SampleTable, Side

SEED = 0  # of the choice of calls, which is the same whoever asks

BY_OTHER_TOOLS = (ComparedUnit.RESULTS, ComparedUnit.PROFILES)
RECORDED_APART = Note(
    "recorded-apart",
    "base and head were not recorded in turn: what differs between the two recordings, such as the machine's load, counts as head's",
)


Samples = Callable[[int, Side], SampleTable | None]
Lines = Callable[[], PlaceExperiment | None]


def nothing(function: int, side: Side) -> SampleTable | None:
    """Load no tables."""
    return None


def no_lines() -> PlaceExperiment | None:
    """Load no counts of lines."""
    return None


@dataclass(frozen=True, slots=True)
class RecordedExperiment:
    """An experiment, and `samples`, which loads a function's table of one side, or None where it has none; `counts` those of counted runs.

    `lines` loads how often each line ran, or None where that was not counted.

    Functions are studied by several processes, so the loaders can be pickled.
    """

    experiment: Experiment
    samples: Samples
    counts: Samples = nothing
    lines: Lines = no_lines

    @property
    def sides(self) -> tuple[Side, ...]:
        """Return the sides that have runs."""
        with_runs = {run.side for run in self.experiment.runs}
        return tuple(side for side in Side if side in with_runs)


def load(folder: Folder) -> RecordedExperiment:
    """Return the experiment in a folder; raise RecordingError where it is damaged, of another version or without runs.

    A table in several parts is read one after the other, and what is loaded of it are calls of each run that stand for all
    (`reservoir`); sums are of all calls in any case.
    """
    experiment = store.load(folder)
    runs, points = frozenset(run.id for run in experiment.runs), frozenset(point.id for point in experiment.points)
    bounded = _BoundedTables(folder, quotas(experiment))
    samples, counts = (_Table(read, runs, points) for read in (bounded, functools.partial(store.counts, folder)))
    revisions = {Side.BASE: experiment.base, Side.HEAD: experiment.head}
    recorded = RecordedExperiment(experiment, samples, counts, functools.partial(store.lines, folder, revisions))
    if not (recorded.sides or experiment.same_code or experiment.endless):
        raise RecordingError(f"{folder} holds no runs; save samples of a whole measurement", slug="samples-empty")
    return recorded


def quotas(experiment: Experiment) -> Mapping[Side, int]:
    """Return how many calls of a function are kept of each run of a side, where a table is larger than one part."""
    return {side: quota(sum(run.side is side and run.phase is Phase.TIMED for run in experiment.runs)) for side in Side}


@dataclass(frozen=True, slots=True)
class _BoundedTables:
    """A loader of a folder's tables: one of a single part as it is, of another some calls of each run, by side as many as its quota."""

    folder: Folder
    quotas: Mapping[Side, int]

    def __call__(self, function: int, side: Side) -> SampleTable | None:
        names = store.sample_parts(self.folder, function, side)
        if len(names) < 2:
            return store.samples(self.folder, function, side)
        reservoir = Reservoir(self.quotas[side], SEED)
        for name in names:
            reservoir = reservoir.added(store.part(self.folder, name, function, side))
        return reservoir.table()


@dataclass(frozen=True, slots=True)
class _Table:
    """A loader of tables whose rows are of these runs and points; others are damage."""

    load: Samples
    runs: frozenset[int]
    points: frozenset[int]

    def __call__(self, function: int, side: Side) -> SampleTable | None:
        table = self.load(function, side)
        if table is not None and not (self.runs.issuperset(np.unique(table.run)) and self.points.issuperset(np.unique(table.point))):
            raise RecordingError(
                f"the calls of function {function} in {side} are of runs or points that their experiment does not have",
                slug="damaged-recording",
            )
        return table


class TablesInMemory:
    """A loader of tables that are in memory."""

    def __init__(self, tables: Iterable[SampleTable]) -> None:
        self._tables = {(table.function, table.side): table for table in tables}

    def __call__(self, function: int, side: Side) -> SampleTable | None:
        """Return a function's table of one side, or None where it has none."""
        return self._tables.get((function, side))


class CachedTables:
    """A loader that holds the last `size` tables in memory; another process gets it empty."""

    def __init__(self, load: Samples, size: int) -> None:
        self._load = load
        self._size = size
        self._held = functools.lru_cache(maxsize=size)(load)

    def __call__(self, function: int, side: Side) -> SampleTable | None:
        """Return a function's table of one side, or None where it has none."""
        return self._held(function, side)

    def __reduce__(self) -> tuple[type[CachedTables], tuple[Samples, int]]:
        return CachedTables, (self._load, self._size)
