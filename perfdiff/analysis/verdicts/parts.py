"""In which parts of a text head writes something else than base, where other parts vary from run to run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.witnessed import BehaviourDifferenceKind
from perfdiff.records.behaviour import COLUMNS, Shape

Form = Literal["texts", "numbers"]
_COLUMNS: Mapping[Form, int] = {"texts": 1, "numbers": COLUMNS}
_KINDS: Mapping[Form, BehaviourDifferenceKind] = {
    "texts": BehaviourDifferenceKind.OTHER_OUTPUT,
    "numbers": BehaviourDifferenceKind.OTHER_NUMBERS,
}


def parts_difference(base: Sequence[Shape], head: Sequence[Shape], forms: Sequence[Form]) -> BehaviourDifferenceKind | None:
    """Return how texts differ by the parts that each side always writes alike, None where they do not or where nobody knows what varies.

    Contents that have only changed places are in another order.
    """
    sketches = [shape.sketch for shape in (*base, *head) if shape.sketch is not None]
    are_comparable = len(sketches) == len(base) + len(head) and len({sketch.level for sketch in sketches}) == 1
    if not are_comparable or min(len(base), len(head)) == 1:
        return None
    for form in forms:
        parts = [getattr(sketch, form).split(" ") for sketch in sketches]
        by_column = [_Column.of(column, len(base)) for column in _columns(parts, _COLUMNS[form])]
        telling = [column for column in by_column if column.is_beyond_chance(len(base), len(head))]
        if telling:
            is_order = all(Counter(column.of_base) == Counter(column.of_head) for column in telling)
            return BehaviourDifferenceKind.OTHER_ORDER if is_order else _KINDS[form]
    return None


def _columns(parts: Sequence[Sequence[str]], columns: int) -> Sequence[Sequence[Sequence[str]]]:
    """Return what all runs have in each part, by columns."""
    of_runs = [*zip_longest(*parts, fillvalue="")]
    return [of_runs[column::columns] for column in range(columns)]


@dataclass(frozen=True, slots=True)
class _Column:
    """What each side always has in the parts where that differs, and how many parts vary within a side."""

    of_base: Sequence[str]
    of_head: Sequence[str]
    varying: int

    @staticmethod
    def of(column: Sequence[Sequence[str]], base_runs: int) -> _Column:
        sides = [({*of_runs[:base_runs]}, {*of_runs[base_runs:]}) for of_runs in column]
        steady = [(*before, *after) for before, after in sides if len(before) == len(after) == 1 and before != after]
        varying = sum(max(map(len, side)) > 1 for side in sides)
        return _Column([before for before, _ in steady], [after for _, after in steady], varying)

    def is_beyond_chance(self, base_runs: int, head_runs: int) -> bool:
        """Return whether more parts differ between the sides than vary within one, and more than do so where runs are dealt at random.

        Where most of them vary, those that do not may be rough measurements, which do not always show that they vary.
        """
        differing = len(self.of_base)
        if differing <= self.varying or not self.varying:
            return differing > self.varying
        chance = 2 / math.comb(base_runs + head_runs, base_runs)  # that a part with two contents has one for each side
        parts = differing + self.varying
        ways = (math.comb(parts, count) * chance**count * (1 - chance) ** (parts - count) for count in range(differing, parts + 1))
        return sum(ways) <= POLICY.chance
