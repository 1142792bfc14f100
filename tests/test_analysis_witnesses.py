"""Own time that grew by what callees took less is no slow-down, and own time alone makes no function slower: a second witness must."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from experiments import HEAD, Columns, Made, Noise, World, same
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.findings import Findings, FunctionFinding, Verdict
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Change, Experiment, Phase, Side
from perfdiff.report.sentences.catalogue import say
from test_analysis_counts import counted

QUIET, NOISY = (Noise(run=deviation, function=deviation) for deviation in (0.02, 0.05))


@dataclass(frozen=True)
class Release:
    """`main` calls `fill` once, and that calls `take` once: what both take of their own in base and head, in ns.

    Whole runs take `run_ns`, in head so many times as much as `slower` says; probes add so many times that as `overhead` says. `work` and
    `misses` are head's, by function, as multiples of base's.
    """

    fill: tuple[float, float] = (4e5, 1e6)
    take: tuple[float, float] = (5e6, 4.4e6)
    changed: tuple[str, ...] = ("fill",)
    overhead: float = 0.81
    noise: Noise = QUIET
    work: Mapping[str, float] = field(default_factory=dict)
    misses: Mapping[str, float] = field(default_factory=lambda: {"fill": 2.0})
    is_counted: bool = True
    take_by: str = "fill"
    run_ns: float = 7e6
    slower: float = 1.0
    seed: int = 1

    def findings(self) -> Findings:
        functions = (Made("main", same(1e6)), self._made("fill", self.fill, "main"), self._made("take", self.take, self.take_by))
        world = World(
            functions, runs=8, noise=self.noise, plain=lambda side: self.run_ns * (self.slower if side is HEAD else 1.0), seed=self.seed
        )
        experiment = counted(world, self._counts, rounds=2) if self.is_counted else world.experiment()
        return analyse(self._probed(experiment), world.samples, CompareConfig())

    def function(self, name: str) -> FunctionFinding:
        return next(each for each in self.findings().functions if each.info.name == name)

    def _made(self, name: str, own_ns: tuple[float, float], caller: str) -> Made:
        def cost(side: Side, inputs: Columns) -> float:
            return own_ns[side is HEAD]

        return Made(name, cost, Change.CHANGED if name in self.changed else Change.UNCHANGED, lambda side, n: {caller: 1})

    def _counts(self, name: str, side: Side, n: float, rng: np.random.Generator) -> Mapping[str, float]:
        work, misses = ((many.get(name, 1.0) if side is HEAD else 1.0) for many in (self.work, self.misses))
        return {"blocks": 2e5 * work, "loads": 2e5 * work, "stores": 2e5 * work, "llc_misses": 1e4 * misses}

    def _probed(self, experiment: Experiment) -> Experiment:
        """Return the experiment with what probes cost in its runs, which the sums of functions do not hold."""
        probed = {run.id: self.run_ns * (1 + self.overhead) for run in experiment.runs if run.phase is Phase.TIMED}
        runs = tuple(
            replace(run, cpu_ns=probed.get(run.id, run.cpu_ns), wall_ns=probed.get(run.id, run.wall_ns)) for run in experiment.runs
        )
        return replace(experiment, runs=runs)


@pytest.mark.parametrize("overhead", [0.02, 0.81, 3.0])
@pytest.mark.parametrize("changed", [("fill",), ("fill", "take")], ids=["callee as it was", "callee changed"])
def test_own_time_that_callees_take_less_is_no_slow_down(overhead: float, changed: tuple[str, ...]) -> None:
    release = Release(overhead=overhead, changed=changed)
    findings = release.findings()
    assert findings.verdict is Verdict.UNCHANGED, say(findings.sentence)
    assert say(findings.sentence).startswith("No regression: slow-downs of more than ")
    fill = next(each for each in findings.functions if each.info.name == "fill")
    assert fill.verdict is Verdict.UNCHANGED
    assert say(fill.reason).startswith("its own time grew by what its callees take less: with them, its calls take ×1.0")


def test_a_callee_that_saves_what_its_caller_takes_more_is_no_improvement() -> None:
    take = Release(changed=("fill", "take")).function("take")
    assert (take.verdict, say(take.reason)) == (Verdict.UNCHANGED, "what it takes less, its caller `fill` takes more of its own")
    alone = Release(fill=(4e5, 4e5), changed=("take",), run_ns=6.8e6).function("take")
    assert alone.verdict is Verdict.IMPROVEMENT, say(alone.reason)


@pytest.mark.parametrize("is_counted", [True, False])
def test_noise_that_hides_what_moved_leaves_a_function_open_and_the_program_to_whole_runs(*, is_counted: bool) -> None:
    findings = Release(noise=NOISY, is_counted=is_counted, run_ns=2e7).findings()
    fill = next(each for each in findings.functions if each.info.name == "fill")
    assert findings.verdict is not Verdict.REGRESSION, say(findings.sentence)
    assert fill.verdict is Verdict.INCONCLUSIVE
    assert say(fill.reason).startswith("its own time grew, but the time of its calls with their callees does not show it")
    assert ("nor does any count of work" in say(fill.reason)) is is_counted
    assert "and probes cost more than what they seem to show" in say(fill.reason)


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        ({}, Verdict.INCONCLUSIVE),
        ({"fill": 2.0}, Verdict.REGRESSION),
        ({"fill": 2.0, "take": 0.01}, Verdict.UNCHANGED),
    ],
    ids=["same work", "more work", "work that moved"],
)
def test_counts_confirm_own_time_unless_callees_count_as_much_less(work: Mapping[str, float], expected: Verdict) -> None:
    """200,000 blocks more could take the time that clocks are too noisy to see with callees; those that `take` lacks are the same ones."""
    fill = Release(work=work, noise=NOISY, run_ns=2e7).function("fill")
    assert fill.verdict is expected, say(fill.reason)
    assert say(fill.reason).startswith("its own time grew by what its callees take less") is (expected is Verdict.UNCHANGED)


@pytest.mark.parametrize("is_counted", [True, False])
@pytest.mark.parametrize("overhead", [0.0, 0.3])
def test_a_function_that_is_slower_with_its_callees_too_stays_one_in_a_program_that_does_not_feel_it(
    overhead: float, *, is_counted: bool
) -> None:
    findings = Release(take=(5e6, 5e6), overhead=overhead, is_counted=is_counted, run_ns=2e7).findings()
    assert say(findings.sentence).startswith("Regression of a function, not of the program (slow-downs of more than "), say(
        findings.sentence
    )
    assert [(each.info.name, each.rank) for each in findings.functions if each.rank] == [("fill", 1)]


@pytest.mark.parametrize(
    ("take", "changed", "expected"),
    [
        ((5e6, 5e6), ("fill",), Verdict.REGRESSION),
        ((5e6, 4.4e6), ("fill",), Verdict.INCONCLUSIVE),
        ((5e6, 4.4e6), ("fill", "take"), Verdict.REGRESSION),
    ],
    ids=["callers are slower", "callers are not", "another change saves it"],
)
def test_a_function_without_callees_needs_callers_that_are_slower(
    take: tuple[float, float], changed: tuple[str, ...], expected: Verdict
) -> None:
    fill = Release(take=take, changed=changed, take_by="main", overhead=0.0, run_ns=2e7, is_counted=False).function("fill")
    assert fill.verdict is expected, say(fill.reason)
    assert say(fill.reason).startswith("its own time grew, but the time of what calls it does not show it") is (
        expected is Verdict.INCONCLUSIVE
    )


@pytest.mark.parametrize(("overhead", "expected"), [(0.01, Verdict.REGRESSION), (0.81, Verdict.INCONCLUSIVE)])
def test_probes_that_cost_more_than_a_claim_need_a_second_time_that_is_beyond_chance(overhead: float, expected: Verdict) -> None:
    release = Release(take=(8e6, 8e6), noise=NOISY, seed=2, overhead=overhead, run_ns=2e7, is_counted=False)
    fill = release.function("fill")
    assert fill.verdict is expected, say(fill.reason)


def test_time_moved_from_no_callees_that_take_too_little_to_have_given_it() -> None:
    """Functions that are folded into `fill` are part of its time and not of its counts, beside which `take` saves much and is little."""
    fill = Release(fill=(1e6, 1.6e6), take=(1e5, 5e4), work={"fill": 2.0, "take": 0.01}, run_ns=3e6, slower=1.2).function("fill")
    assert fill.rules[-1].name == "adds-time", say(fill.reason)


def test_misses_of_a_cache_confirm_no_time() -> None:
    fill = Release(misses={"fill": 20.0}, noise=NOISY, run_ns=2e7).function("fill")
    assert (fill.verdict, fill.counts["llc_misses"].grew) == (Verdict.INCONCLUSIVE, True)


def test_a_slower_program_is_not_put_down_to_a_function_to_which_time_moved() -> None:
    findings = Release(slower=1.2, run_ns=7e6).findings()
    assert say(findings.sentence).startswith("Regression, not located: whole runs at "), say(findings.sentence)
    assert [each.info.name for each in findings.functions if each.verdict is Verdict.REGRESSION] == []


def test_whole_runs_that_are_slower_by_as_much_confirm_own_time() -> None:
    """Where clocks are too noisy to see it with callees."""
    fill = Release(noise=NOISY, slower=1.2, run_ns=7e6).function("fill")
    assert (fill.verdict, fill.rank) == (Verdict.REGRESSION, 1), say(fill.reason)
