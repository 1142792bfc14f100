"""Layouts of the plain builds of both sides, as many as there are pairs of runs to spread over them, made while runs go on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from perfdiff.build.layouts import Layouts
from perfdiff.collect.runs import caveats
from perfdiff.collect.trees.upkeep import Upkeep
from perfdiff.records.schema import Note, Side


@dataclass(slots=True)
class LayoutSpread:
    """What whole runs are spread over: `count` layouts of either side, the builds themselves among them, drawn by `seed` alike for both.

    A pair of runs that each has a layout of its own tells most (Kalibera and Jones 2013, §6: as many runs in a build as building costs
    more than running, and as runs differ more than builds). So there are as many as pairs, as long as layouts cost no more than runs.
    """

    layouts: Mapping[Side, Layouts]
    upkeep: Upkeep
    seed: int
    most: int
    count: int = 1
    notes: tuple[Note, ...] = ()
    _each_s: float = 0.0

    @property
    def may_link(self) -> bool:
        """Return whether more layouts can be had by linking programs again."""
        is_open = self.count < min([self.most, *(layouts.most for layouts in self.layouts.values())])
        return is_open and any(layouts.is_compiled for layouts in self.layouts.values())

    def grow(self, count: int, limit_s: float = math.inf) -> None:
        """Make layouts until there are `count`, unless that is expected to take longer than `limit_s`: then there are no more for now.

        The first ones are made in any case. Raise StoreError.
        """
        first, asked = self.count == 1, min(count, self.most)
        if (asked - self.count) * self._each_s > limit_s:
            return
        started, before = time.monotonic(), self.count
        while self.count < min(asked, self.most):
            if self._make(self.count, started + self._limit_s):
                self.count += 1
            else:
                self.most = self.count
        if self.count > before:
            self._each_s = (time.monotonic() - started) / (self.count - before)
        if first:
            self.notes = caveats.layouts_missing({side: layouts.notes(self.count, asked) for side, layouts in self.layouts.items()})

    def _make(self, number: int, deadline: float) -> bool:
        """Make a layout of each side; return whether all could be."""
        return all(
            number < layouts.most and self.upkeep.lay_out(layouts.built.tree, number, self._relink(layouts, number, deadline))
            for layouts in self.layouts.values()
        )

    def _relink(self, layouts: Layouts, number: int, deadline: float) -> Callable[[], bool] | None:
        """Return what links a side in a layout, None where it has nothing that was compiled."""
        return partial(layouts.make, f"{self.seed}:{number}", deadline) if layouts.is_compiled else None

    @property
    def _limit_s(self) -> float:
        return max(layouts.limit_s for layouts in self.layouts.values())
