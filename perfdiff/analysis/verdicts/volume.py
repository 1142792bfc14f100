"""Runs that take longer because there is more to do: larger inputs and more calls, which are no function's regression."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from perfdiff.analysis.blame.attribution import Attribution
from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.compare.compared import Comparison
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.config import CompareConfig


def volume_note(attribution: Attribution, comparisons: Mapping[int, Comparison], ledger: Ledger, config: CompareConfig) -> Iterator[Claim]:
    """Yield a note where most of the extra time of whole runs is that of larger inputs or more calls which no change hands on.

    `comparisons` are those of self time by function.
    """
    extra = np.array([float(part.head.sum() - part.base.sum()) for part in attribution.parts])
    grown = attribution.workload
    effects = np.array([ledger.judging(config, [point]).min_effect for point in attribution.points])
    is_material = np.any(grown > effects * attribution.run_ns)
    if not is_material or extra.sum() <= 0 or grown.sum() <= POLICY.most * extra.sum():
        return
    inputs = np.sum([part.inputs for part in attribution.parts], axis=0)
    place = int(np.argmax(inputs))
    function = ledger.ids[place]
    name, seen = attribution.web.functions[function].name, comparisons.get(function)
    by = claim("more-calls")
    if inputs[place] > 0 and seen is not None:
        by = claim("larger-inputs-of", inputs=tuple(each.name for each in seen.grown), name=name, is_comparable=not seen.disjoint)
    yield claim("workload-grown", grown_ns=float(grown.sum()), extra_ns=float(extra.sum()), by=by)
