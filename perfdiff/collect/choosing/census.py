"""Which functions are counted where all of them are: the work of those that are called too often is their callers'."""

from __future__ import annotations

from collections.abc import Collection, Mapping

OWN_NS = 150.0  # that a call takes longer where its own counts are read (a queue of 4.5 million calls was counted in 0.6 to 0.85 s of CPU)
SHARE = 10.0  # of a plain run's CPU time, what reading those of unchanged functions may add: about as much as counting takes by itself


def counted_apart(calls: Mapping[int, float], starts: Collection[int], changed: Collection[int], cpu_ns: float) -> frozenset[int]:
    """Return the functions whose own counts are read: changed ones, those that start threads, and others while they are cheap.

    `calls` are those of a run that takes `cpu_ns` without probes. What a function without a probe counts is its nearest probed caller's, so
    that all work is counted as long as each thread starts with one that has.
    """
    apart = {*starts, *changed}
    left_ns = SHARE * cpu_ns
    for function in sorted(calls.keys() - apart, key=lambda function: (calls[function], function)):
        left_ns -= calls[function] * OWN_NS
        if left_ns < 0:
            break
        apart.add(function)
    return frozenset(apart)
