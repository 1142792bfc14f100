"""The order of runs: base and head side by side in randomised blocks, so that drift of the machine hits both alike."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from perfdiff.records.recording import Recording
from perfdiff.records.schema import Phase, Point, Run, Side

PLAIN_EVERY = 2  # where one revision is recorded: blocks from one with a run of the plain build to the next
SURVEY_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class Slot:
    """One run to be made, in a `layout` of its side's plain build (see `Target`); more layouts may be linked for it, or not."""

    phase: Phase
    point: Point
    side: Side
    block: int
    layout: int = 0
    may_link: bool = True


Pair = Sequence[Slot]  # of all sides at one point in one phase; never crosses machines
Block = Sequence[Pair]


@dataclass(frozen=True, slots=True)
class Made:
    """The runs of a pair with what their processes recorded, and how many seconds they took."""

    pair: Pair
    runs: list[tuple[Run, list[Recording]]]
    seconds: float


class PairSource(Protocol):
    """Makes the pairs that it is given, on one machine or on several at the same time."""

    @property
    def count(self) -> int:
        """Return how many machines make pairs."""
        ...

    def made(self, blocks: Iterable[Block], planned: int = 0) -> Iterator[Made]:
        """Yield each pair of the blocks when it is made; raise WorkloadError or StoreError.

        A block is asked for when a machine is free for it, so that what was yielded before may decide which, and whether there is any. Of
        `planned` runs those that other work disturbed are made again.
        """
        ...


def plain_slots(points: Sequence[Point], seed: int, sides: Sequence[Side] = tuple(Side)) -> list[Slot]:
    """Return one plain run of every point on all sides, for the CPU time that it takes."""
    return _paired(random.Random(f"{seed}:plain"), (Phase.PLAIN,), points, 0, sides)


def tally_slots(points: Sequence[Point], seed: int, sides: Sequence[Side] = tuple(Side)) -> list[Slot]:
    """Return the survey's first runs, one of every point on all sides, which count calls."""
    return _paired(random.Random(f"{seed}:tally"), (Phase.SURVEY,), points, 0, sides)


def survey_slots(points: Sequence[Point], block: int, seed: int, sides: Sequence[Side] = tuple(Side)) -> list[Slot]:
    """Return a round of the survey's runs that time calls: one of every point on all sides."""
    return _paired(random.Random(f"{seed}:survey:{block}"), (Phase.SURVEY,), points, block, sides)


def whole_block(points: Sequence[Point], block: int, seed: int, *, may_link: bool = True) -> list[Slot]:
    """Return one block of whole runs of the plain builds: a pair of every point, for which more layouts may be linked, or not."""
    pairs = _paired(random.Random(f"{seed}:whole:{block}"), (Phase.PLAIN,), points, block, tuple(Side))
    return [replace(slot, may_link=may_link) for slot in pairs]


def timed_blocks(points: Sequence[Point], runs: Mapping[int, int], seed: int, sides: Sequence[Side] = tuple(Side)) -> list[list[Slot]]:
    """Return all blocks of timed runs; a point, by its id, is in as many blocks as `runs` says."""
    return [
        timed_block([point for point in points if runs[point.id] > block], block, seed, sides)
        for block in range(max(runs.values(), default=0))
    ]


def timed_block(points: Sequence[Point], block: int, seed: int, sides: Sequence[Side] = tuple(Side)) -> list[Slot]:
    """Return one block: every point once on all sides, in a random order of its own.

    One side alone has no whole runs apart: every second block also runs its plain build, for what probes cost.
    """
    phases = (Phase.PLAIN, Phase.TIMED) if len(sides) == 1 and block % PLAIN_EVERY == 0 else (Phase.TIMED,)
    return _paired(random.Random(f"{seed}:{block}"), phases, points, block, sides)


def counted_block(points: Sequence[Point], block: int, seed: int, sides: Sequence[Side] = tuple(Side)) -> list[Slot]:
    """Return one block of counted runs: every point once on all sides."""
    return _paired(random.Random(f"{seed}:counted:{block}"), (Phase.COUNTED,), points, block, sides)


def pairs(slots: Sequence[Slot]) -> list[Sequence[Slot]]:
    """Return the slots grouped by phase, point and block, in their order: each group is one pair."""
    return [list(group) for _, group in itertools.groupby(slots, key=lambda slot: (slot.phase, slot.point.id, slot.block))]


def _paired(rng: random.Random, phases: Sequence[Phase], points: Sequence[Point], block: int, sides: Sequence[Side]) -> list[Slot]:
    """Return the runs of a block: pairs in random order, the sides of a pair next to each other in random order."""
    pairs = [(phase, point) for phase in phases for point in points]
    rng.shuffle(pairs)
    return [Slot(phase, point, side, block) for phase, point in pairs for side in rng.sample(sides, len(sides))]
