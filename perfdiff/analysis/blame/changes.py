"""What changed at one workload point: the extra cost of each function in three parts, and what these follow from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfdiff.records.arrays import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class CostFrame:
    """What stays the same at one workload point when runs are drawn anew; arrays are (f,) in the ledger's order.

    `mix` is the factor by which base's cost moves with the inputs, `disjoint` marks functions whose inputs have no equals in base,
    `one_sided` those that one side lacks. `rates` (f, f) are base's calls of [i] by one call of [j], `net` (f, f + 1) the calls of [i] that
    [j] makes more by its own rates, those that only moved from one caller to another taken out, and `moved` (f, f + 1) these, where most
    did: negative of the callers that they moved from. `apart` (2, f) is the part of head's calls that have arguments which base never had,
    and what one of them costs. `most` (f, f + 1) is what a call of [i] by [j] takes at most, with all that it calls, where functions call
    each other in a ring (`recursion.most`); `rings` (f,) are the numbers of the rings.
    """

    calls_base: Floats
    calls_head: Floats
    mix: Floats
    disjoint: Bools
    suspect: Bools
    one_sided: Bools
    rates: Floats
    net: Floats
    moved: Floats
    apart: Floats
    most: Floats
    rings: Ints

    def priced(self, a_call: Floats) -> Floats:
        """Return what the calls that callers make more cost (…, f, f + 1), where a call of each takes `a_call` (…, f) with its callees."""
        return np.minimum(a_call[..., None], self.most) * self.net


@dataclass(frozen=True, slots=True)
class ChangeParts:
    """What changed at one workload point, in ns a run; arrays are (f,) in the ledger's order.

    `base` and `head` are self costs, `inclusive` base's costs with callees, `frame` the calls and inputs behind them. `cost` is the part at
    equal inputs, `inputs` that of larger inputs, `by_calls` (f, f + 1) what caller [.., j] adds by its calls to callee [i, ..],
    whatever shows below the callee included; caller f is the start of a thread. `cost_blur`, `inputs_blur` and `calls_blur` are what
    each of the three may be off, as far as probes resolve times: costs on both sides are tested one by one, but for what probes of callees
    leave in them, where the number of their calls differs. The blur of calls has their sign: a step of the clock makes calls that are gone
    cheaper by as much as new ones dearer.
    """

    base: Floats
    head: Floats
    inclusive: Floats
    frame: CostFrame
    cost: Floats
    inputs: Floats
    by_calls: Floats
    cost_blur: Floats
    inputs_blur: Floats
    calls_blur: Floats

    @property
    def calls_base(self) -> Floats:
        """Return base's calls (f,)."""
        return self.frame.calls_base

    @property
    def calls_head(self) -> Floats:
        """Return head's calls (f,)."""
        return self.frame.calls_head
