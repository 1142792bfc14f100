"""Runs that are slow now and then: how many runs good news needs, which are counted, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
import pytest

import findings as examples
from perfdiff.analysis.counts.work import WorkDifference
from perfdiff.analysis.findings import EndToEnd, PointStanding, Ratio, Rung, Verdict
from perfdiff.analysis.verdicts.conclusion import conclude
from perfdiff.analysis.verdicts.evidence import Evidence
from perfdiff.analysis.verdicts.seldom import runs_that_tell, slow_runs_unseen, workloads_slower_at_times
from perfdiff.analysis.verdicts.wholeruns import WholeRuns, whole_runs
from perfdiff.collect.runs.schedule import Block, Made
from perfdiff.config import CompareConfig, MeasureConfig
from perfdiff.deadline import Deadline
from perfdiff.measuring.wholepairs import SELDOM_S, WholePairs
from perfdiff.progress import Silent
from perfdiff.records.schema import Phase, Point, Run, Side
from perfdiff.report.sentences.catalogue import noted, say
from perfdiff.statistics.sides import comparable
from perfdiff.statistics.tails import SlowRuns, chance_of_so_many, runs_to_see, share_unseen, slow_runs

CONFIG = CompareConfig()
POINT = Point(1, "w", {}, "")
CHANCE = 0.01  # that more slow runs of one side are said to be no chance, over four looks; a look's level is half of this for either cost


def run_of(side: Side, block: int, cpu_ns: float, point: Point = POINT, waited_ns: float = 0.0) -> Run:
    return Run(0, Phase.PLAIN, point.id, side, block, cpu_ns + waited_ns, cpu_ns, 1e6, None, None, "", together=True)


def slow_in(base: set[int], head: set[int], pairs: int = 60, multiple: float = 4.0) -> list[Run]:
    """Return pairs of runs of 40 ms that vary by 1 %; those of either side in such blocks take several times as long."""
    rng = np.random.default_rng(1)
    return [
        run_of(side, block, 4e7 * float(np.exp(rng.normal(0, 0.01))) * (multiple if block in slow else 1.0))
        for block in range(pairs)
        for side, slow in ((Side.BASE, base), (Side.HEAD, head))
    ]


def test_as_many_runs_as_meet_one_slow_one_of_twenty_leave_no_larger_share_unseen() -> None:
    assert runs_to_see(0.05, 0.95) == runs_that_tell(CONFIG) == 59
    assert share_unseen(59, 0.95) < 0.05 < share_unseen(58, 0.95)
    assert share_unseen(10, 0.95) == pytest.approx(0.26, abs=0.01)
    assert share_unseen(0, 0.95) == 1.0


def test_the_chance_of_slow_runs_is_that_of_as_many_heads_of_fair_coins() -> None:
    assert [chance_of_so_many(count, 4) for count in range(5)] == [1, 15 / 16, 11 / 16, 5 / 16, 1 / 16]


def test_slow_runs_are_those_beyond_the_spread_of_both_sides_and_a_pair_slow_on_both_tells_nothing() -> None:
    spread = np.linspace(-0.02, 0.02, 40)
    base, head = spread.copy(), spread[::-1].copy()
    base[:2], head[:8] = np.log(3), np.log(3)
    slow = slow_runs(base, head, 3.0, 0.05)
    assert (slow.pairs, slow.base, slow.head, slow.multiple) == (40, 2, 8, pytest.approx(3))
    assert slow.chance == 1 / 2**6, "two pairs are slow on both sides"
    assert slow.adds == pytest.approx(6 * 2 / 40)
    assert slow_runs(spread, spread + 0.04, 3.0, 0.05).head == 0, "within the spread"


def test_head_whose_runs_are_slow_more_often_than_bases_is_no_good_news_though_bases_are_slow_as_well() -> None:
    made = slow_in({3, 31}, {*range(5, 60, 4)}, multiple=1.6)
    (slow,) = workloads_slower_at_times([POINT], made, CONFIG).values()
    assert (slow.base, slow.head, slow.pairs) == (2, 14, 60)
    (end,) = whole_runs([POINT], made, CONFIG).ends
    assert end.slow == slow
    assert end.standing is not PointStanding.NOT_SLOWER


def test_more_slow_runs_leave_a_point_open_that_its_mean_decides() -> None:
    """Head is faster by 4 % in most of its runs."""
    made = [
        replace(run, cpu_ns=run.cpu_ns * (0.96 if run.side is Side.HEAD else 1.0))
        for run in slow_in(set(), set(range(0, 60, 6)), multiple=1.4)
    ]
    (end,) = whole_runs([POINT], made, CONFIG).ends
    assert end.slow is not None
    assert end.at_times is None
    assert end.standing is PointStanding.OPEN


@pytest.mark.parametrize(
    ("base", "head"), [(set(range(10)), set(range(10, 24))), (set(), set(range(3))), (set(range(12)), set())], ids=["both", "few", "base's"]
)
def test_slow_runs_that_chance_may_make_or_that_are_bases_are_none_of_heads(base: set[int], head: set[int]) -> None:
    assert not workloads_slower_at_times([POINT], slow_in(base, head), CONFIG)


def disturbed(rng: np.random.Generator, share: float, multiple: float, lasting: float) -> list[Run]:
    """Return 59 pairs of which other work slows a share of the runs, for several in a row, whichever side's these are."""
    left, made = 0, []
    for block in range(59):
        for side in rng.permutation(list(Side)):
            left = max(0, left - 1) or (int(rng.geometric(1 / lasting)) if rng.random() < share / lasting else 0)
            slower = multiple * float(np.exp(rng.normal(0, 0.3))) if left else 1.0
            made.append(run_of(Side(side), block, 5e7 * float(np.exp(rng.normal(0, 0.02))) * slower))
    return made


@pytest.mark.statistical
@pytest.mark.parametrize(("share", "multiple", "lasting"), [(0.1, 2.0, 1.0), (0.2, 1.6, 1.0), (0.15, 3.0, 4.0), (0.05, 8.0, 2.0)])
def test_what_other_work_slows_by_chance_is_heads_at_the_level_that_is_stated(share: float, multiple: float, lasting: float) -> None:
    rng, n = np.random.default_rng(7), 600
    wrong = 0
    for _ in range(n):
        made = disturbed(rng, share, multiple, lasting)
        wrong += any(workloads_slower_at_times([POINT], [run for run in made if run.block < look], CONFIG) for look in (10, 20, 40, 59))
    assert wrong <= n * CHANCE + 2.33 * np.sqrt(n * CHANCE)


@dataclass
class Simulated:
    """Makes pairs of runs that last so many seconds by point; head's are slow where that is said of the number of the pair in all."""

    seconds: dict[int, float]
    is_slow: Callable[[int], bool] = lambda _: False
    count: int = 1
    clock: list[float] = field(default_factory=lambda: [0.0])
    linking: list[bool] = field(default_factory=list)
    _rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(3))

    def made(self, blocks: Iterable[Block]) -> Iterator[Made]:
        for number, ((base, head),) in enumerate(blocks):
            assert number < 1000
            slots = sorted((base, head), key=lambda slot: slot.side)
            self.linking.append(base.may_link)
            multiples = (1.0, 4.0 if self.is_slow(number) else 1.0)
            runs = [
                run_of(slot.side, slot.block, 4e7 * multiple * float(np.exp(self._rng.normal(0, 0.01))), slot.point)
                for slot, multiple in zip(slots, multiples, strict=True)
            ]
            self.clock[0] += self.seconds[base.point.id]
            yield Made((base, head), [(run, []) for run in runs], self.seconds[base.point.id])


def pairs_made(maker: Simulated, points: list[Point], monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    monkeypatch.setattr("time.monotonic", lambda: maker.clock[0])
    config = SimpleNamespace(compare=CONFIG, measure=MeasureConfig())
    bench = SimpleNamespace(points=points, request=SimpleNamespace(config=config, deadline=Deadline()), progress=Silent())
    made: list[Run] = []
    WholePairs(bench, maker, 60.0).make(made)
    return made


def numbers(made: list[Run]) -> dict[int, int]:
    return {point: sum(run.point == point and run.side is Side.HEAD for run in made) for point in {run.point for run in made}}


def test_short_runs_have_as_many_pairs_before_good_news_as_meet_slow_ones_that_are_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    maker = Simulated({1: 0.05})
    assert numbers(pairs_made(maker, [POINT], monkeypatch)) == {1: 59}
    assert maker.linking == [True] * 10 + [False] * 49, "linking would take the time of these runs"


def test_slow_runs_that_come_after_the_first_look_are_met_and_more_pairs_show_what_they_add(monkeypatch: pytest.MonkeyPatch) -> None:
    made = pairs_made(Simulated({1: 0.05}, is_slow=lambda number: number % 12 == 11), [POINT], monkeypatch)
    assert whole_runs([POINT], [run for run in made if run.block < 10], CONFIG).are_not_slower, "which is what ten pairs say"
    assert not whole_runs([POINT], made, CONFIG).are_not_slower
    assert numbers(made)[1] > 59


def test_all_points_of_a_workload_count_and_the_shortest_runs_are_made_more_of(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [Point(id_, "w", {"n": id_}, "") for id_ in (1, 2, 3)]
    assert numbers(pairs_made(Simulated({1: 0.05, 2: 0.02, 3: 0.2}), points, monkeypatch)) == {1: 10, 2: 39, 3: 10}


def test_each_workload_has_its_own_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [Point(1, "v", {}, ""), Point(2, "w", {}, "")]
    assert numbers(pairs_made(Simulated({1: 0.03, 2: 0.02}), points, monkeypatch)) == {1: 59, 2: 59}


@pytest.mark.parametrize(("seconds", "pairs"), [(0.25, 30), (10.0, 10)])
def test_long_runs_have_no_more_pairs_than_fit_the_time_for_it(seconds: float, pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert numbers(pairs_made(Simulated({1: seconds}), [POINT], monkeypatch)) == {1: pairs}
    assert pairs == 10 + int(SELDOM_S / seconds)


@pytest.mark.parametrize(
    ("pairs", "note"), [(10, "`w` ran 10 times on either side: what makes one run in 4 slow need not have shown (95 %)"), (59, None)]
)
def test_good_news_of_few_runs_says_how_rare_a_slow_run_need_not_have_shown(pairs: int, note: str | None) -> None:
    findings = replace(examples.findings(), verdict=Verdict.UNCHANGED, rung=Rung.RUNS)
    ends = whole_runs([POINT], slow_in(set(), set(), pairs=pairs), CONFIG).ends
    said = [noted(claim).text for claim in slow_runs_unseen(findings, ends, CONFIG)]
    assert said == ([note] if note else [])
    for other in (replace(findings, verdict=Verdict.REGRESSION), replace(findings, rung=Rung.CODE)):
        assert not [*slow_runs_unseen(other, ends, CONFIG)]


SLOW = SlowRuns(pairs=153, base=11, head=30, chance=0.002, adds=0.37, multiple=4.0)


@pytest.mark.parametrize(("slow", "verdict"), [(None, Verdict.INCONCLUSIVE), (SLOW, Verdict.REGRESSION)])
def test_no_place_of_code_makes_some_runs_of_head_slow_beside_others(slow: SlowRuns | None, verdict: Verdict) -> None:
    end = EndToEnd(POINT, 3e7, 3.7e7, Ratio(1.22, 1.07, 1.4, 153, 153), None, PointStanding.SLOWER, slow=slow)
    same_work = WorkDifference(0.0, 0.0, 0.0, 0.0, repeats=True, is_bounded=True)
    assert conclude((), Evidence(WholeRuns((end,)), same_work), CONFIG).verdict is verdict


def test_more_slow_runs_that_decide_nothing_are_told_with_their_numbers() -> None:
    end = EndToEnd(POINT, 3e7, 3e7, Ratio(1.01, 0.98, 1.04, 153, 153), None, PointStanding.OPEN, slow=SLOW)
    found = conclude((), Evidence(WholeRuns((end,))), CONFIG)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert say(found.sentence).startswith("Inconclusive: 30 of 153 runs of head of `w` are slow (×4 as long as most), and 11 of base's: ")


def test_pairs_that_were_made_alone_count_where_they_are_most() -> None:
    together = slow_in(set(), set(), pairs=9)
    alone = [replace(run, block=9 + run.block, together=False) for run in slow_in(set(), set(), pairs=10)]
    assert comparable([*together, *alone[:18]]) == together
    assert len(comparable([*together, *alone])) == 38
