"""Makers of pairs of runs: this machine, one pair after the other, or several machines at the same time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from perfdiff import processes
from perfdiff.collect.runs import caveats
from perfdiff.collect.runs.collector import Collector
from perfdiff.collect.runs.disturbance import Referee
from perfdiff.collect.runs.schedule import Block, Made, Pair, PairSource
from perfdiff.collect.runs.spread import LayoutSpread
from perfdiff.measuring import variants
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.duets import APART, Duets
from perfdiff.measuring.site import Recipe, Site, Variant
from perfdiff.records.schema import Machine, Note, Run
from perfdiff.statistics.pairs import next_look


class PairMaker(PairSource, Protocol):
    """Makes pairs of all kinds of runs of two revisions, in the builds that they need."""

    @property
    def machines(self) -> tuple[Machine, ...]:
        """Return the machines that runs refer to; none if there is only this machine."""
        ...

    @property
    def notes(self) -> tuple[Note, ...]:
        """Return the notes on the runs so far."""
        ...

    def fitted(self, recipe: Recipe) -> Variant:
        """Make the builds of a recipe ready to run; raise BuildError."""
        ...


@dataclass(slots=True)
class OwnMachine:
    """Makes pairs of runs on this machine, one pair after the other.

    Whole runs are spread over layouts, of which it makes as many as they need, or all are of the builds as they are.
    """

    bench: Bench
    site: Site
    collector: Collector
    count: int = 1
    machines: tuple[Machine, ...] = ()
    is_spread: bool = True
    _duets: Duets = field(init=False)
    _spread: LayoutSpread | None = None
    _whole: list[Run] = field(default_factory=list)
    _pairs: dict[int, int] = field(default_factory=dict)  # of whole runs, by point
    _spent_s: float = 0.0
    _referee: Referee | None = None
    _judged: list[Run] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._duets = Duets(self.collector, self.bench.request.config.compare)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Return the notes on the runs so far."""
        return (
            *(self._referee.notes(self._judged) if self._referee else ()),
            *(self._spread.notes if self._spread else ()),
            *self._duets.notes,
            *self.collector.told,
            *caveats.trees_written(self.bench.upkeep.written, {point.workload for point in self.bench.points}),
            *caveats.byte_code_left({side: self.bench.upkeep.left_in(built.tree) for side, built in self.site.plain.items()}),
            *caveats.processes_stay(processes.staying()),
        )

    def fitted(self, recipe: Recipe) -> Variant:
        """Make the builds of a recipe ready to run; raise BuildError."""
        variant = variants.followed(self.bench, recipe, self.site)
        self.collector.targets = {**self.collector.targets, **variant.targets}
        return variant

    def made(self, blocks: Iterable[Block], planned: int = 0) -> Iterator[Made]:
        """Yield each pair of the blocks when it is made; raise WorkloadError or StoreError."""
        for block in blocks:
            for pair in block:
                yield self.make(pair, planned)

    def make(self, pair: Pair, planned: int) -> Made:
        """Make a pair; repeat it if other work disturbed it, within a share of `planned` runs; raise WorkloadError or StoreError."""
        advance, is_whole, begun = self.bench.progress.advance, not planned, time.monotonic()
        if is_whole:
            pair = self._laid_out(pair) if self.is_spread else pair
        elif self._referee is None:
            self._referee = Referee(planned)
        started = time.monotonic()
        runs = self._duets.collect(pair, self._whole, advance)
        if is_whole:
            self._whole += [run for run, _ in runs]
        elif self._referee is not None:
            if self._referee.repeats([run for run, _ in runs]):
                runs = self._duets.collect(pair, self._whole, lambda _: None)
            self._judged += [run for run, _ in runs]
        ended = time.monotonic()
        self._spent_s += ended - begun
        return Made(pair, runs, ended - started)

    def _laid_out(self, pair: Pair) -> Pair:
        """Return a pair of whole runs in the next layout of its point, of which there are more after each look, if runs took as long.

        None are linked for pairs that are to meet slow runs, whose time that would take. The first pairs, made apart, are of the builds
        themselves, and so is the next: those that tell most have that layout among theirs.
        """
        spread = self._spread = self._spread or variants.spread(self.bench, self.site)
        point = pair[0].point.id
        number = self._pairs.get(point, 0)
        if pair[0].may_link and (not number or next_look(number) > next_look(number - 1)):
            self._grow(spread, next_look(number) - APART, self._spent_s if number else math.inf)
        self._pairs[point] = number + 1
        return [replace(slot, layout=max(0, number - APART) % spread.count) for slot in pair]

    def _grow(self, spread: LayoutSpread, pairs: int, limit_s: float) -> None:
        """Have a layout for each of so many pairs, if that costs no more than `limit_s`, which is what runs take."""
        if spread.may_link:
            self.bench.progress.stage("linking in other layouts", None)
        spread.grow(pairs, limit_s)
        self.bench.progress.stage("comparing whole runs", None)


Makers = Callable[[Bench, Site, Collector], PairMaker]
