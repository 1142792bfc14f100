"""The machine as a level of its own: by how much effects differ from machine to machine, and what that does to their pool.

A block never crosses machines, so each machine has an effect of its own. What is said of a few machines is said of these: their mean, in
which they count by what they tell. It has the variance between them only where they clearly differ, for with three machines that variance
has two degrees of freedom. Intervals that always hold it (Hartung and Knapp 2001; Sidik and Jonkman 2002) found a slow-down by 10 %, under
5 % of noise and with 30 pairs on three machines, in 10 % of all cases, these find it in 99 %. Many machines are a sample, and their mean's
interval always holds the variance between them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfdiff.records.arrays import Floats, Ints

DIFFER = 0.99  # level of the F-test that finds few machines to differ; at 0.95, one slow-down in twenty was lost to chance
MANY = 8  # machines from which on they are a sample of others, and more than anybody reads one by one


@dataclass(frozen=True, slots=True)
class MachineSpread:
    """How effects scatter over machines, each (k,): `p` of no difference (1 where that cannot be told), and what it adds to the variance of
    their mean, `extra`, with its degrees of freedom.
    """

    p: Floats
    extra: Floats
    freedom: Floats


def spread(effects: Floats, variances: Floats, freedom: Floats) -> MachineSpread:
    """Return how `effects` (k, m) of m machines differ, given their `variances` (k, m) and the degrees of freedom of these (k,).

    Cochran's Q (1954) as an F-test; NaN where a machine has no effect. The mean's variance between machines is that of Hartung and Knapp.
    """
    from scipy.special import fdtrc

    usable = np.isfinite(effects) & np.isfinite(variances) & (variances > 0)
    machines = usable.sum(axis=1)
    weights = np.where(usable, 1.0 / np.where(usable, variances, 1.0), 0.0)
    total = np.where(machines > 0, weights.sum(axis=1), 1.0)
    values = np.where(usable, effects, 0.0)
    mean = (weights * values).sum(axis=1) / total
    several = np.maximum(machines - 1, 1)
    ratio = (weights * np.where(usable, values - mean[:, None], 0.0) ** 2).sum(axis=1) / several
    tells = (machines > 1) & (freedom > 0)
    p = np.where(tells, fdtrc(several, np.where(tells, freedom, 1.0), ratio), 1.0)
    widens = tells & ((p < 1 - DIFFER) | (machines >= MANY))
    return MachineSpread(p, np.where(widens, np.maximum(ratio - 1, 0.0) / total, 0.0), several.astype(np.float64))


def cells(values: Floats, machines: Ints, count: int) -> tuple[Floats, Floats, Floats]:
    """Return number, mean and sum of squares of `values` (…, n), NaN where there is none, on each of `count` machines, (…, count).

    `machines` (n,) are numbers from 0 on.
    """
    member = (machines[:, None] == np.arange(count)).astype(np.float64)
    present = np.isfinite(values)
    filled = np.where(present, values, 0.0)
    counts: Floats = present.astype(np.float64) @ member
    means: Floats = (filled @ member) / np.maximum(counts, 1.0)
    apart = np.where(present, filled - means @ member.T, 0.0)
    return counts, np.where(counts > 0, means, np.nan), (apart**2) @ member


def variance_of_each(squares: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """Return each machine's variance (k, m), and the degrees of freedom of them all (k,), by sums of squares within (k, m).

    It is the one of all machines, or a machine's own where that is wider: a noisy machine is no other machine.
    """
    own_freedom = np.maximum(counts - 1, 0.0)
    freedom = own_freedom.sum(axis=1)
    pooled = squares.sum(axis=1) / np.maximum(freedom, 1.0)
    own = squares / np.maximum(own_freedom, 1.0)
    return np.maximum(pooled[:, None], np.where(own_freedom > 0, own, 0.0)), freedom


def numbered(machines: Ints) -> tuple[Ints, int]:
    """Return machines by numbers from 0 on, and how many there are."""
    names, places = np.unique(machines, return_inverse=True)
    return places.reshape(machines.shape).astype(np.int64), len(names)


def one_a_block(values: Floats, blocks: Ints, machines: Ints) -> tuple[Floats, Ints, Ints]:
    """Return values (p, k, b) of each block at each of p points, the mean of its runs', with the blocks and their machines (p, b).

    `values` (p, k, r) are those of runs, with their `blocks` and `machines` (p, r); a block is of one machine. Places without one are NaN.
    """
    points, questions, _ = values.shape
    present = [np.flatnonzero(np.isfinite(point_values).any(axis=0)) for point_values in values]
    point_blocks = [np.unique(blocks[point, runs], return_index=True, return_inverse=True) for point, runs in enumerate(present)]
    longest = max((len(names) for names, _, _ in point_blocks), default=0)
    means = np.full((points, questions, longest), np.nan)
    of_blocks, of_machines = np.full((points, longest), -1, dtype=np.int64), np.full((points, longest), -1, dtype=np.int64)
    for point, (names, first, member) in enumerate(point_blocks):
        means[point, :, : len(names)] = cells(values[point][:, present[point]], member, len(names))[1]
        of_blocks[point, : len(names)], of_machines[point, : len(names)] = names, machines[point, present[point][first]]
    return means, of_blocks, of_machines
