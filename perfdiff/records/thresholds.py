"""Smallest differences of interest by workload: kept with the points that were measured, and set anew where only they have changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from perfdiff.config import WorkloadConfig
from perfdiff.records.schema import Point

AGAIN = " again"  # ends the name of a workload whose runs come behind others in the tree that these leave


def as_configured(points: Sequence[Point], configs: Sequence[WorkloadConfig]) -> tuple[Point, ...]:
    """Return points that were measured before with the smallest differences of interest that their workloads have now.

    Benchmarks of a suite are not in the configuration by their names: they keep what they were measured with.
    """
    effects = {config.name: config.min_effect for config in configs if config.suite is None}
    return tuple(replace(point, min_effect=effects.get(point.workload.removesuffix(AGAIN), point.min_effect)) for point in points)


def unjudged(configs: Sequence[WorkloadConfig]) -> tuple[WorkloadConfig, ...]:
    """Return workloads without their thresholds, which change no measurement; `as_configured` sets them again."""
    return tuple(config if config.suite else replace(config, min_effect=None) for config in configs)
