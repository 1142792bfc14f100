"""Calls whose number varies from run to run, on made-up programs: fewer of them hide that each takes longer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from experiments import BASE, Made, World, same
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Change, Experiment, Phase


def mixing(*, slower: float, fewer: float, uneven: float) -> Findings:
    """Head's calls of `mix` take so many times as long and are so many times fewer, but for noise (of the logarithm, from run to run).

    Whole runs take as long on both sides.
    """
    mix = Made(
        "mix",
        lambda side, x: 2e4 if side is BASE else slower * 2e4,
        Change.CHANGED,
        lambda side, n: {"main": 400.0 if side is BASE else fewer * 400.0},
    )
    world = World((Made("main", same(1e4)), mix), runs=12, plain=lambda side: 1e7)
    experiment = unevenly(world.experiment(), uneven)
    return analyse(experiment, world.samples, CompareConfig())


def unevenly(experiment: Experiment, uneven: float) -> Experiment:
    """Return an experiment whose blocks of runs call `mix` more or less often, by chance, and take as much longer or shorter."""
    by_chance = np.exp(uneven * np.random.default_rng(7).uniform(-1, 1, 1 + max(run.block for run in experiment.runs)))
    of_run = {run.id: float(by_chance[run.block]) for run in experiment.runs}
    totals, edges = experiment.totals, experiment.edges
    mix = next(info.id for info in experiment.functions if info.name == "mix")
    times = np.array([of_run[run] for run in totals.run.tolist()])
    own = np.where(totals.function == mix, times, 1.0)
    inside = np.where(totals.function != mix, 0.0, totals.wall_ns * (times - 1))
    more = {run: float(inside[totals.run == run].sum()) for run in of_run}
    from_mix = np.where(edges.callee == mix, np.array([of_run[run] for run in edges.run.tolist()]), 1.0)
    wall_ns = totals.wall_ns * own + np.where(totals.function == mix, 0.0, [more[run] for run in totals.run.tolist()])
    runs = tuple(
        replace(run, wall_ns=run.wall_ns + more[run.id], cpu_ns=run.cpu_ns + more[run.id]) if run.phase is Phase.TIMED else run
        for run in experiment.runs
    )
    return replace(
        experiment,
        runs=runs,
        totals=replace(totals, calls=totals.calls * own, self_ns=totals.self_ns * own, wall_ns=wall_ns),
        edges=replace(edges, calls=edges.calls * from_mix),
    )


def test_slower_calls_that_are_fewer_by_chance_are_open() -> None:
    found = mixing(slower=2.0, fewer=0.5, uneven=0.6)
    mix = next(each for each in found.functions if each.info.name == "mix")
    assert (found.verdict, mix.verdict, mix.rules[-1].name) == (Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE, "unevenly-called")


def test_slower_calls_that_are_fewer_in_each_run_cost_no_more() -> None:
    found = mixing(slower=2.0, fewer=0.5, uneven=0.0)
    assert found.verdict is Verdict.UNCHANGED


def test_calls_that_are_as_fast_are_no_slower_however_their_number_varies() -> None:
    assert mixing(slower=1.0, fewer=1.0, uneven=0.6).verdict is not Verdict.REGRESSION
