"""The rows of one function's sample table as the models see them: one cost, numeric features, categories, twins."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.models.middle import median
from perfdiff.records.arrays import Bools, Floats, Ints
from perfdiff.records.schema import Branch, Feature, Origin, SampleTable

# Features this strongly correlated cannot be told apart (methods: one class of twins). Values and ranks must agree, so that a single
# huge call does not make twins of strangers.
TWINS = 0.98
TWINS_OTHER = 0.90
# Ranks this strongly correlated are one feature in another unit, such as n and n², or n and log n.
MONOTONE_TWINS = 0.9995
# No size and no cost is larger; the cube of such a value can still be squared. No cost but 0 is smaller; its square is not yet 0.
_LARGEST = 1e45
_SMALLEST = 1e-45
# A program's input has no more parts than this. What an argument shows beyond is an address, a hash, or memory that the function is about
# to write: it says nothing of the cost, even where other calls find a small number there.
_LARGEST_SIZE = 2.0**40
# Values of a numeric feature that may be codes of modes: few, small, whole.
_CODES = 8
_LARGEST_CODE = 15
_PLAINNESS = {origin: place for place, origin in enumerate(Origin)}  # of twins the first is named
_FASTEST = 3  # no size makes a cost grow faster than its cube, the highest power among the shapes of a cost
_KEPT = 4  # tables whose inputs are kept: a function's of both sides, as they are and with fewer rows


@dataclass(frozen=True, slots=True)
class Observations:
    """n calls with a finite cost.

    `columns` (n,) by feature name, NaN where absent, branches as the share of taken outcomes; `numeric` names the features that may
    enter a regression, one per class of twins; `codes` those that may select a mode, with their labels; `branches` the branch columns.
    `drifting` are those of the former that rise with the calls of each run: a cost that falls over one may as well fall with time.
    """

    cost: Floats
    columns: Mapping[str, Floats]
    numeric: tuple[str, ...]
    codes: Mapping[str, Mapping[int, str]]
    branches: tuple[str, ...]
    twins: Mapping[str, tuple[str, ...]]
    origins: Mapping[str, Origin]
    run: Ints
    point: Ints
    drifting: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.cost)

    def rows(self, which: Bools | Ints) -> Observations:
        """Return some of the rows."""
        columns = {name: column[which] for name, column in self.columns.items()}
        return replace(self, cost=self.cost[which], columns=columns, run=self.run[which], point=self.point[which])

    def usable(self) -> dict[str, Floats]:
        """Return the numeric columns that are present in every row and more than codes of modes, or names of points, there."""
        present = {name: self.columns[name] for name in self.numeric if np.isfinite(self.columns[name]).all()}
        sizes = {name: column for name, column in present.items() if not (name in self.codes and _few(np.unique(column)))}
        return {name: column for name, column in sizes.items() if not self._names_points(column)}

    def _names_points(self, column: Floats) -> bool:
        """Return whether a value that all calls of a point share only tells points apart, as what they cost differs by more than its cube.

        So does the memory in use when a program's only call of a function begins: it differs by a thousandth, and the call by a factor.
        """
        least, most = float(column.min(initial=np.inf)), float(column.max(initial=-np.inf))
        if not 0 < least < most:
            return False
        cheap, dear = sorted(abs(median(self.cost[column == end])) for end in (least, most))
        if not dear:
            return False
        outgrows = not cheap or math.log(dear) - math.log(cheap) > _FASTEST * (math.log(most) - math.log(least))
        return outgrows and not _varies_within(column, self.point)


def columns_of(table: SampleTable) -> dict[str, Floats]:
    """Return every column an annotation may refer to: the features by name, and per branch `taken(condition)`, the share taken.

    A table without either still tells its number of rows, by a column without a name.
    """
    columns = {} if table.features or table.branches else {"": np.zeros(len(table))}
    is_input = (np.abs(table.values) <= _LARGEST) & _are_inputs(table)
    values = np.where(is_input, table.values, np.nan).T
    columns |= {feature.name: np.ascontiguousarray(column) for feature, column in zip(table.features, values, strict=True)}
    for position, name in enumerate(branch_names(table.branches)):
        executed = table.executed[:, position]
        columns[name] = np.where(executed > 0, table.taken[:, position] / np.maximum(executed, 1), np.nan)
    return columns


def branch_names(branches: tuple[Branch, ...]) -> list[str]:
    """Return the column name of each branch; the line is added where the text is not unique."""
    texts = [branch.text for branch in branches]
    return [f"taken({b.text})" if texts.count(b.text) == 1 else f"taken({b.text} @{b.line})" for b in branches]


def observe(table: SampleTable, metric: str) -> Observations:
    """Return the rows of a table whose metric is present."""
    cost = np.clip(table.metrics[metric], -_LARGEST, _LARGEST)
    cost = np.where(np.abs(cost) < _SMALLEST, 0.0, cost)
    present = np.isfinite(table.metrics[metric])
    of_all = present.all()
    inputs = _inputs_of(_Same(table)) if of_all else _inputs(table, present)
    return Observations(
        cost=cost if of_all else cost[present],
        columns=inputs.columns,
        numeric=inputs.numeric,
        codes=inputs.codes,
        branches=tuple(branch_names(table.branches)),
        twins=inputs.twins,
        origins={f.name: f.origin for f in table.features},
        run=table.run if of_all else table.run[present],
        point=table.point if of_all else table.point[present],
        drifting=inputs.drifting,
    )


@dataclass(frozen=True, slots=True)
class _Inputs:
    """What rows say whatever their cost is; the fields are those of `Observations`."""

    columns: Mapping[str, Floats]
    numeric: tuple[str, ...]
    codes: Mapping[str, Mapping[int, str]]
    twins: Mapping[str, tuple[str, ...]]
    drifting: frozenset[str]


class _Same:
    """A table that equals itself alone, as its arrays cannot be compared."""

    def __init__(self, table: SampleTable) -> None:
        self.table = table

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.table is other.table

    def __hash__(self) -> int:
        return id(self.table)


@functools.lru_cache(_KEPT)
def _inputs_of(same: _Same) -> _Inputs:
    """Return the inputs of all rows of a table: a function's metrics are learnt one after the other from the same rows."""
    return _inputs(same.table, slice(None))


def _inputs(table: SampleTable, rows: Bools | slice) -> _Inputs:
    columns = {name: column[rows] for name, column in columns_of(table).items()}
    ordered = sorted(table.features, key=lambda feature: _PLAINNESS[feature.origin])
    distinct = {f.name: _distinct(columns[f.name]) for f in ordered}
    varying = [f for f in ordered if len(distinct[f.name]) > 1]
    classes = _twin_classes([f for f in varying if not _is_mode(f, distinct[f.name])], columns, table.point[rows])
    return _Inputs(
        columns=columns,
        numeric=tuple(classes),
        codes={f.name: f.labels for f in ordered if _has_codes(f, distinct[f.name])},
        twins={name: others for name, others in classes.items() if others},
        drifting=_drifting({name: columns[name] for name in classes}, table.run[rows], table.thread[rows], table.call[rows]),
    )


def _drifting(columns: Mapping[str, Floats], run: Ints, thread: Ints, call: Ints) -> frozenset[str]:
    """Return the columns that never fall from a call of a thread to its next, and rise in every run that has several calls."""
    order = np.lexsort((call, thread, run))
    follows = (run[order][1:] == run[order][:-1]) & (thread[order][1:] == thread[order][:-1])
    of_run = run[order][1:][follows]
    several = len(np.unique(of_run))
    steps = {name: np.diff(column[order])[follows] for name, column in columns.items()} if several else {}
    rising = {name: step for name, step in steps.items() if step.min() >= 0}
    return frozenset(name for name, step in rising.items() if len(np.unique(of_run[step > 0])) == several)


def _are_inputs(table: SampleTable) -> Bools:
    """Return which features' values may be inputs, (p,): not if all are whole and some beyond all sizes."""
    given = np.array([feature.category or feature.origin is Origin.WORKLOAD for feature in table.features], dtype=bool)
    finite = np.where(np.isfinite(table.values), table.values, 0.0)
    return np.asarray(given | (np.abs(finite) < _LARGEST_SIZE).all(axis=0) | (finite != np.floor(finite)).any(axis=0))


def _distinct(column: Floats) -> Floats:
    return np.unique(column[np.isfinite(column)])


def _has_codes(feature: Feature, values: Floats) -> bool:
    """Return whether the distinct `values` of a feature, rising, may be codes of modes."""
    if feature.category:
        return True
    return 2 <= len(values) <= _CODES and bool(np.all(values == np.round(values)) and values[0] >= -1 and values[-1] <= _LARGEST_CODE)


def _is_mode(feature: Feature, values: Floats) -> bool:
    """Return whether a feature of these distinct values can only tell modes apart: a category, or a few codes."""
    return feature.category or (_has_codes(feature, values) and _few(values))


def _few(codes: Floats) -> bool:
    """Return whether codes are too few to be sizes: two, or three in sequence, such as 0, 1, 2."""
    return len(codes) <= 2 or (len(codes) == 3 and bool(codes[2] - codes[0] == 2))


def _twin_classes(features: list[Feature], columns: Mapping[str, Floats], point: Ints) -> dict[str, tuple[str, ...]]:
    """Return the classes of twins by their representative: the plainest member.

    A workload parameter stands back where a member varies within one workload point: only that one tells calls apart.
    """
    within = {feature.name: _varies_within(columns[feature.name], point) for feature in features}
    alike = _alike([columns[feature.name] for feature in features])
    left = list(range(len(features)))
    classes = {}
    while left:
        members = [position for position in left if alike[left[0], position]]
        left = [position for position in left if position not in members]
        finer = [p for p in members if features[p].origin is not Origin.WORKLOAD and within[features[p].name]]
        named = finer[0] if finer and features[members[0]].origin is Origin.WORKLOAD else members[0]
        classes[features[named].name] = tuple(features[p].name for p in members if p != named)
    return classes


def _varies_within(column: Floats, point: Ints) -> bool:
    order = np.lexsort((column, point))
    same = point[order][1:] == point[order][:-1]
    return bool(np.any(same & (column[order][1:] != column[order][:-1])))


def _alike(columns: list[Floats]) -> Bools:
    """Return which columns are twins (p, p); a column with absent values is only its own."""
    if not columns:
        return np.zeros((0, 0), dtype=bool)
    matrix = np.array(columns)
    complete = np.asarray(np.isfinite(matrix).all(axis=1))
    matrix = np.where(complete[:, None], matrix, 0.0)
    values, orders = _correlations(matrix), _correlations(np.array([ranks(column) for column in matrix]))
    strong, weak = np.maximum(values, orders), np.minimum(values, orders)
    alike = ((strong >= TWINS) & (weak >= TWINS_OTHER)) | (orders >= MONOTONE_TWINS)
    return np.asarray((alike & complete[:, None] & complete) | np.eye(len(matrix), dtype=bool))


def _correlations(matrix: Floats) -> Floats:
    centred = matrix - matrix.mean(axis=1, keepdims=True)
    norms = np.sqrt((centred**2).sum(axis=1, keepdims=True))
    unit = centred / np.where(norms > 0, norms, 1.0)
    return np.asarray(np.abs(unit @ unit.T))


def ranks(column: Floats) -> Floats:
    """Return the mean rank of each value (n,), none of them NaN; equal values share one."""
    order = np.argsort(column)
    ordered = column[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    end = np.append(first[1:], len(column))
    mean_ranks = np.empty(len(column))
    mean_ranks[order] = np.repeat((first + end) / 2.0, end - first)
    return mean_ranks
