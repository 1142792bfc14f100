"""Runs that take longer because there is more to do: larger inputs and more calls, which are no function's regression."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from perfdiff import units
from perfdiff.analysis.blame.attribution import Attribution
from perfdiff.analysis.compare.comparison import Comparison
from perfdiff.analysis.policy import POLICY
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Note


def volume_note(
    attribution: Attribution, comparisons: Mapping[int, Comparison], ids: Sequence[int], config: CompareConfig
) -> Iterator[Note]:
    """Yield a note where most of the extra time of whole runs is that of larger inputs or more calls which no change hands on.

    `comparisons` are those of self time by function, `ids` the functions in the order of the attribution's parts.
    """
    extra = np.array([float(part.head.sum() - part.base.sum()) for part in attribution.parts])
    grown = attribution.workload
    is_material = np.any(grown > config.min_effect * attribution.run_ns)
    if not is_material or extra.sum() <= 0 or grown.sum() <= POLICY.most * extra.sum():
        return
    inputs = np.sum([part.inputs for part in attribution.parts], axis=0)
    place = int(np.argmax(inputs))
    function = ids[place]
    name, seen = attribution.web.functions[function].name, comparisons.get(function)
    amount = f"{units.duration(float(grown.sum()))} of {units.duration(float(extra.sum()))} in one run of each point"
    part = f"most of what runs take longer, {amount},"
    if grown.sum() > extra.sum():  # something else takes less time
        part = f"what runs take longer, {units.duration(float(extra.sum()))} in one run of each point,"
    if inputs[place] <= 0 or seen is None:
        yield Note("workload-grown", f"{part} is that of more calls, not of a higher cost per call")
        return
    features = f" ({', '.join(feature.name for feature in seen.grown)})" if seen.grown else ""
    rest = "its cost per input cannot be compared with base's" if seen.disjoint else "not a higher cost per input"
    yield Note("workload-grown", f"{part} comes with larger inputs{features}, mostly of `{name}`: {rest}")
