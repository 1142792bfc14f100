"""Whole runs as the judge: what pairs of runs prove, exclude, and leave open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

import findings as examples
from perfdiff.analysis.findings import PointStanding, Verdict
from perfdiff.analysis.verdicts.asbuilt import few_layouts_note, layout_note, ways_note
from perfdiff.analysis.verdicts.settling import settled
from perfdiff.analysis.verdicts.wholeruns import WholeRuns, whole_runs
from perfdiff.collect.runs.schedule import Block, Made
from perfdiff.config import CompareConfig, MeasureConfig
from perfdiff.deadline import Deadline
from perfdiff.measuring.wholepairs import WholePairs
from perfdiff.progress import Silent
from perfdiff.records.schema import Phase, Point, Run, Side
from perfdiff.report.sentences.catalogue import noted
from perfdiff.statistics.pairs import FEWEST_PAIRS, MOST_PAIRS, PairedDifference, next_look, paired_difference

MANY = MeasureConfig().layouts
LOOKS = [10, 20, 40, 80, 160, 320]
INTEREST = float(np.log(1.05))
HALF_AGAIN = float(np.log(1.5))


@dataclass(frozen=True)
class Slowed:
    """Shares of the runs that take half as long again: of both sides, as other work on the machine does, and of head's alone."""

    both: float = 0.0
    head_alone: float = 0.0

    def base(self, n: int, rng: np.random.Generator) -> np.ndarray:
        return HALF_AGAIN * (rng.random(n) < self.both)

    def head(self, n: int, rng: np.random.Generator) -> np.ndarray:
        return self.base(n, rng) + HALF_AGAIN * (rng.random(n) < self.head_alone)


class Pairs(NamedTuple):
    """Logarithms of runs' costs (n,) of both sides, and the layouts that they were built in."""

    base: np.ndarray
    head: np.ndarray
    layouts: np.ndarray

    def first(self, n: int) -> Pairs:
        return Pairs(*(each[:n] for each in self))

    @property
    def difference(self) -> PairedDifference:
        seen = paired_difference(*self)
        assert seen is not None
        return seen


def pairs_of(
    n: int, *, effect: float, deviation: float, rng: np.random.Generator, layout: float = 0.0, count: int = MANY, slowed: Slowed = Slowed()
) -> Pairs:
    """Return pairs of runs of a standard `deviation` each, spread over `count` layouts whose builds have one of `layout`."""
    layouts = np.arange(n) % count
    builds = rng.normal(0, layout, (2, count)) if layout else np.zeros((2, count))
    base, head = rng.normal(0, deviation, (2, n)) + builds[:, layouts]
    return Pairs(base + slowed.base(n, rng), head + np.log1p(effect) + slowed.head(n, rng), layouts)


def excluded_at(effect: float, deviation: float, rng: np.random.Generator, *, layout: float = 0.0, slowed: Slowed = Slowed()) -> int:
    """Return at which look a slow-down of 5 % is excluded, one more than the last where it never is."""
    made = pairs_of(LOOKS[-1], effect=effect, deviation=deviation, rng=rng, layout=layout, slowed=slowed)
    return next((look for look in LOOKS if made.first(look).difference.upper(0.95) < INTEREST), LOOKS[-1] + 1)


def runs(pairs: dict[int, Pairs], *, base_ns: float = 1e8, idle: float = 0.0, layouts: int = 6) -> list[Run]:
    """Return plain runs of points; a run waits for the share `idle` of its time."""
    made = []
    for point, values in pairs.items():
        for block, logs in enumerate(zip(values.base, values.head, strict=True)):
            for side, log in zip((Side.BASE, Side.HEAD), logs, strict=True):
                cpu = base_ns * float(np.exp(log))
                made.append(
                    Run(len(made), Phase.PLAIN, point, side, block, cpu / (1 - idle), cpu, 1e6, None, None, "", layout=block % layouts)
                )
    return made


def judged(pairs: dict[int, Pairs], **options: float) -> WholeRuns:
    """Return what whole runs show."""
    points = [Point(id_, "w", {"n": float(id_)}, "") for id_ in pairs]
    return whole_runs(points, runs(pairs, **options), CompareConfig())


def test_looks_double_and_end() -> None:
    looks = [next_look(0)]
    while looks[-1] < MOST_PAIRS:
        looks.append(next_look(looks[-1]))
    assert looks == LOOKS


@pytest.mark.statistical
@pytest.mark.parametrize("layout", [0.0, 0.01])
def test_a_slow_down_of_interest_is_seldom_excluded_over_all_looks(layout: float) -> None:
    rng = np.random.default_rng(1)
    wrong = sum(excluded_at(0.05, 0.03, rng, layout=layout) <= LOOKS[-1] for _ in range(300))
    assert wrong <= 28  # 5 % of 300 are 15; 28 is the quantile of 99.9 %


@pytest.mark.statistical
def test_larger_slow_downs_are_never_excluded() -> None:
    rng = np.random.default_rng(2)
    assert all(excluded_at(0.10, deviation, rng) > LOOKS[-1] for deviation in (0.03, 0.05) for _ in range(100))


@pytest.mark.statistical
@pytest.mark.parametrize(("deviation", "pairs", "least"), [(0.02, 10, 0.90), (0.05, 40, 0.90)])
def test_no_effect_is_decided_at_four_points_within_few_pairs(deviation: float, pairs: int, least: float) -> None:
    rng = np.random.default_rng(3)
    decided = np.mean([excluded_at(0.0, deviation, rng) <= pairs for _ in range(1000)])
    assert decided**4 >= least


def test_long_tails_widen_the_interval_little() -> None:
    rng = np.random.default_rng(4)
    clean = pairs_of(80, effect=0.0, deviation=0.02, rng=rng)
    tailed = clean._replace(head=np.where(rng.random(80) < 0.1, clean.head + rng.choice([-0.5, 0.5], 80), clean.head))
    narrow, wide = clean.difference, tailed.difference
    assert wide.upper(0.95) - wide.lower(0.95) < 1.6 * (narrow.upper(0.95) - narrow.lower(0.95))
    assert wide.upper(0.95) < INTEREST


@pytest.mark.statistical
@pytest.mark.parametrize("effect", [0.0, 0.10])
def test_runs_that_neighbours_slow_down_on_and_off_are_decided_by_those_that_met_none(effect: float) -> None:
    rng = np.random.default_rng(10)
    made = [pairs_of(80, effect=effect, deviation=0.015, rng=rng, slowed=Slowed(both=0.4)).difference for _ in range(300)]
    decided = [seen.lower(0.95) > INTEREST if effect else seen.upper(0.95) < INTEREST for seen in made]
    wrong = [seen.upper(0.95) < INTEREST if effect else seen.lower(0.95) > INTEREST for seen in made]
    assert np.mean(decided) >= 0.75
    assert np.mean(wrong) <= 0.02


@pytest.mark.statistical
def test_a_slow_down_of_interest_is_seldom_excluded_where_neighbours_slow_runs_down() -> None:
    rng = np.random.default_rng(11)
    wrong = sum(excluded_at(0.05, 0.015, rng, slowed=Slowed(both=0.4)) <= LOOKS[-1] for _ in range(300))
    assert wrong <= 28


@pytest.mark.statistical
def test_runs_that_are_slow_on_one_side_alone_are_not_left_out() -> None:
    rng = np.random.default_rng(12)
    wrong = sum(excluded_at(0.0, 0.02, rng, slowed=Slowed(head_alone=0.3)) <= LOOKS[-1] for _ in range(300))
    assert wrong <= 0.15 * 300  # without the demand that parts agree with all: more than a fifth


def test_layouts_that_differ_are_the_unit() -> None:
    rng = np.random.default_rng(5)
    made = pairs_of(60, effect=0.0, deviation=0.005, rng=rng, layout=0.03, count=6)
    assert made.difference.freedom == 5
    assert made.difference.error > 3 * made._replace(layouts=np.zeros(60, int)).difference.error


@pytest.mark.statistical
def test_no_effect_is_decided_where_layouts_differ_as_there_are_many_of_them() -> None:
    rng = np.random.default_rng(9)
    assert np.mean([excluded_at(0.0, 0.03, rng, layout=0.03) <= 40 for _ in range(200)]) >= 0.95


def test_too_few_pairs_say_nothing() -> None:
    few = Pairs(np.zeros(FEWEST_PAIRS - 1), np.full(FEWEST_PAIRS - 1, 0.5), np.zeros(FEWEST_PAIRS - 1, int))
    assert paired_difference(*few) is None
    assert judged({1: few}).ends[0].standing is PointStanding.OPEN


def test_one_slower_point_is_told_and_the_others_are_not_pooled_with_it() -> None:
    rng = np.random.default_rng(6)
    pairs = {id_: pairs_of(40, effect=0.15 if id_ == 4 else 0.0, deviation=0.02, rng=rng) for id_ in (1, 2, 3, 4)}
    seen = judged(pairs)
    assert [end.point.id for end in seen.slower] == [4]
    assert [end.standing for end in seen.ends] == [PointStanding.NOT_SLOWER] * 3 + [PointStanding.SLOWER]
    assert not seen.are_not_slower


@pytest.mark.parametrize(("effect", "standing"), [(9.0, PointStanding.SLOWER), (-0.9, PointStanding.FASTER), (0.02, PointStanding.OPEN)])
def test_two_layouts_that_differ_show_what_is_far_beyond_them_and_exclude_nothing(effect: float, standing: PointStanding) -> None:
    rng = np.random.default_rng(11)
    made = pairs_of(7, effect=effect, deviation=0.03, rng=rng, count=2)
    pairs = {0: made._replace(head=made.head - 0.25 * made.layouts)}
    (end,) = judged(pairs, layouts=2).ends
    assert end.standing is standing
    assert end.ratio is not None
    assert end.ratio.low > 5 or standing is not PointStanding.SLOWER


def test_less_than_what_layouts_make_is_no_proof_where_there_was_one_layout() -> None:
    rng = np.random.default_rng(7)
    pairs = {1: pairs_of(80, effect=0.12, deviation=0.01, rng=rng)}
    assert judged(pairs, layouts=1).ends[0].standing is PointStanding.OPEN
    assert judged(pairs, layouts=6).ends[0].standing is PointStanding.SLOWER


def test_runs_that_wait_are_judged_by_the_clock_as_well() -> None:
    points = [Point(1, "w", {}, "")]
    still = Pairs(np.zeros(20), np.zeros(20), np.zeros(20, int))
    waiting = [replace(run, wall_ns=run.wall_ns * (1.5 if run.side is Side.HEAD else 1.0)) for run in runs({1: still}, idle=0.5)]
    (end,) = whole_runs(points, waiting, CompareConfig()).ends
    assert (end.standing, end.by) == (PointStanding.SLOWER, "wall_ns")


def test_times_of_runs_that_only_work_are_of_what_is_judged_though_others_kept_most_of_them_waiting() -> None:
    still = Pairs(np.zeros(20), np.zeros(20), np.zeros(20, int))
    delayed = [replace(run, wall_ns=run.wall_ns * (2.0 if (run.block + (run.side is Side.HEAD)) % 4 else 1.0)) for run in runs({1: still})]
    (end,) = whole_runs([Point(1, "w", {}, "")], delayed, CompareConfig()).ends
    assert (end.by, end.head_ns) == ("cpu_ns", pytest.approx(end.base_ns))


@pytest.mark.parametrize("together", [False, True])
def test_runs_that_wait_now_and_then_are_judged_by_the_clock_as_well(*, together: bool) -> None:
    """Head waits in every other run for four times what it works; the kernel tells what runs waited for a CPU, shared or not."""
    still = Pairs(np.zeros(40), np.zeros(40), np.zeros(40, int))
    waiting = [
        replace(
            run,
            wall_ns=run.wall_ns * (5.0 if run.side is Side.HEAD and run.block % 2 else 1.0),
            waited=None if together else 0.0,
            together=together and run.block < 20,
        )
        for run in runs({1: still})
    ]
    (end,) = whole_runs([Point(1, "w", {}, "")], waiting, CompareConfig()).ends
    assert end.by == "wall_ns"
    assert end.standing is not PointStanding.NOT_SLOWER
    assert end.ratio is not None
    assert end.ratio.value > 1.5


def waiting_now_and_then(share: float, *, most_ns: float, noise_ns: float = 0.0, seed: int = 0, effect: float = 0.0) -> list[Run]:
    """Return runs of three points made together, of 40 ms of work; a `share` of head's waits, and other work may delay either side's."""
    rng = np.random.default_rng(seed)
    still = {id_: pairs_of(8, effect=effect, deviation=0.002, rng=rng, count=8) for id_ in (1, 2, 3)}

    def waited_ns(side: Side) -> float:
        own = rng.uniform(0.5, 1) * most_ns if side is Side.HEAD and rng.random() < share else 0.0
        return own + rng.exponential(noise_ns) if noise_ns else own

    return [replace(run, wall_ns=run.cpu_ns + waited_ns(run.side), together=True) for run in runs(still, base_ns=4e7)]


THREE = [Point(id_, "w", {"n": id_}, "") for id_ in (1, 2, 3)]


@pytest.mark.parametrize(("share", "most_ns"), [(1.0, 4.8e7), (0.4, 4.8e7), (1.0, 5e6)], ids=["all", "some", "short"])
@pytest.mark.parametrize("seed", range(5))
def test_what_heads_runs_wait_and_bases_do_not_is_never_excluded_by_cpu_time_alone(share: float, most_ns: float, seed: int) -> None:
    ends = whole_runs(THREE, waiting_now_and_then(share, most_ns=most_ns, seed=seed), CompareConfig()).ends
    assert [(end.by, end.waits_more) for end in ends] == [("wall_ns", True)] * 3
    assert PointStanding.NOT_SLOWER not in {end.standing for end in ends}


def test_waits_that_one_point_alone_shows_leave_that_one_open() -> None:
    made = [replace(run, wall_ns=run.cpu_ns if run.point != 2 else run.wall_ns) for run in waiting_now_and_then(1.0, most_ns=5e6)]
    standings = [end.standing for end in whole_runs(THREE, made, CompareConfig()).ends]
    assert standings == [PointStanding.NOT_SLOWER, PointStanding.OPEN, PointStanding.NOT_SLOWER]


def test_delays_that_other_work_makes_on_both_sides_are_no_waits_of_heads() -> None:
    made = [whole_runs(THREE, waiting_now_and_then(0.0, most_ns=0.0, noise_ns=4e6, seed=seed), CompareConfig()) for seed in range(100)]
    assert sum(not found.are_not_slower for found in made) <= 12  # 5 % of 100, of the workload and of the points: the quantile of 99 %


def test_waits_that_use_up_a_part_of_what_work_saves_leave_head_faster() -> None:
    made = waiting_now_and_then(1.0, most_ns=5e6, effect=-0.5)
    assert {(end.standing, end.by) for end in whole_runs(THREE, made, CompareConfig()).ends} == {(PointStanding.FASTER, "cpu_ns")}
    used_up = waiting_now_and_then(1.0, most_ns=2.5e7, effect=-0.3)
    assert PointStanding.FASTER not in {end.standing for end in whole_runs(THREE, used_up, CompareConfig()).ends}


def longer_at_times(*, base: int = 0, head: int = 0, multiple: float = 6.0, effect: float = 0.0) -> list[Run]:
    """Return 20 pairs of runs of three points, of which so many of either side take several times as long: the first ones of a point."""
    rng = np.random.default_rng(1)
    usual = {id_: pairs_of(20, effect=effect, deviation=0.002, rng=rng, count=20) for id_ in (1, 2, 3)}
    for id_, (of_base, of_head, _) in usual.items():
        of_base[: max(0, base - 20 * (id_ - 1))] += np.log(multiple)
        of_head[: max(0, head - 20 * (id_ - 1))] += np.log(multiple)
    return runs(usual, layouts=20)


def test_runs_of_head_alone_that_take_several_times_as_long_at_times_are_not_excluded() -> None:
    ends = whole_runs(THREE, longer_at_times(head=1), CompareConfig()).ends
    assert [end.standing for end in ends] == [PointStanding.OPEN, PointStanding.NOT_SLOWER, PointStanding.NOT_SLOWER]
    assert [end.at_times for end in ends] == [pytest.approx(6, rel=0.05), None, None]
    assert WholeRuns(ends).excluded == np.inf


def test_one_run_of_head_that_waits_for_several_times_as_long_as_most_take_is_not_excluded() -> None:
    made = [replace(run, together=True) for run in longer_at_times()]
    waiting = next(at for at, run in enumerate(made) if run.side is Side.HEAD)
    made[waiting] = replace(made[waiting], wall_ns=made[waiting].wall_ns + 6e8)
    ends = whole_runs(THREE, made, CompareConfig()).ends
    assert [end.at_times for end in ends] == [pytest.approx(6.5, rel=0.05), None, None]
    assert ends[0].standing is PointStanding.OPEN


@pytest.mark.parametrize(
    "made",
    [
        longer_at_times(),
        longer_at_times(base=1, head=1),
        longer_at_times(base=2),
        longer_at_times(head=1, multiple=3.0),
    ],
    ids=["none", "of either side", "of base", "too few to matter"],
)
def test_runs_that_take_longer_on_either_side_or_add_little_are_not_heads_alone(made: list[Run]) -> None:
    assert {end.at_times for end in whole_runs(THREE, made, CompareConfig()).ends} == {None}


def test_runs_that_take_longer_at_times_do_not_outweigh_what_most_save() -> None:
    saved, used_up = (whole_runs(THREE, longer_at_times(head=1, effect=effect), CompareConfig()) for effect in (-0.5, -0.1))
    assert {end.standing for end in saved.ends} == {PointStanding.FASTER}
    assert used_up.ends[0].standing is PointStanding.OPEN


@dataclass(frozen=True)
class Simulated:
    """Makes no more pairs than `most`, of runs that work for 40 ms; head waits for half as long in those blocks of a point."""

    waits: dict[int, set[int]]
    seconds: dict[int, float]
    most: int
    count: int = 1

    def made(self, blocks: Iterable[Block]) -> Iterator[Made]:
        for ((base, head),) in islice(blocks, self.most):
            slots = sorted((base, head), key=lambda slot: slot.side)
            waited_ns = (0.0, 2e7 * (base.block in self.waits[base.point.id]))
            runs = [
                Run(0, Phase.PLAIN, slot.point.id, slot.side, slot.block, 4e7 + ns, 4e7, 1e6, None, None, "", together=True)
                for slot, ns in zip(slots, waited_ns, strict=True)
            ]
            yield Made((base, head), [(run, []) for run in runs], self.seconds[base.point.id])


def test_a_point_that_was_decided_has_more_pairs_once_others_show_that_head_waits() -> None:
    maker = Simulated({1: {2, 5, 8}, 2: set(range(100))}, {1: 0.01, 2: 0.1}, most=30)
    config = SimpleNamespace(compare=CompareConfig(), measure=MeasureConfig())
    bench = SimpleNamespace(points=THREE[:2], request=SimpleNamespace(config=config, deadline=Deadline()), progress=Silent())
    made: list[Run] = []
    WholePairs(bench, maker, 60.0).make(made)
    blocks = [run.block for run in made if run.point == 1 and run.side is Side.HEAD]
    second = [run.block for run in made if run.point == 2 and run.side is Side.HEAD]
    assert len(second) == 10, "until then it is not known"
    assert len(blocks) == 20


@pytest.mark.parametrize("seed", range(5))
def test_times_beside_a_ratio_are_those_that_it_is_of(seed: int) -> None:
    rng = np.random.default_rng(seed)
    made = pairs_of(40, effect=0.2, deviation=0.015, rng=rng, slowed=Slowed(both=0.4))
    (end,) = judged({1: made}).ends
    assert end.head_ns / end.base_ns == pytest.approx(end.ratio.value)
    assert end.base_ns == pytest.approx(1e8, rel=0.25)
    (apart,) = whole_runs([Point(1, "w", {}, "")], [replace(run, machine=run.block % 2) for run in runs({1: made})], CompareConfig()).ends
    assert apart.head_ns / apart.base_ns == pytest.approx(apart.ratio.value)


def test_times_of_runs_that_wait_are_of_the_cost_that_is_judged() -> None:
    made = pairs_of(20, effect=0.5, deviation=0.01, rng=np.random.default_rng(3))
    by_clock = [replace(run, wall_ns=3e8) for run in runs({1: made})]
    (end,) = whole_runs([Point(1, "w", {}, "")], by_clock, CompareConfig()).ends
    assert (end.by, end.standing) == ("cpu_ns", PointStanding.SLOWER)
    assert (end.base_ns, end.head_ns) == (pytest.approx(1e8, rel=0.02), pytest.approx(1.5e8, rel=0.02))
    (few,) = whole_runs([Point(1, "w", {}, "")], by_clock[:4], CompareConfig()).ends
    assert (few.ratio, few.by, few.head_ns) == (None, "wall_ns", 3e8)


def test_runs_that_a_clock_ends_exclude_nothing_and_no_more_of_them_would() -> None:
    still = {1: Pairs(np.zeros(20), np.zeros(20), np.zeros(20, int)), 2: Pairs(np.zeros(20), np.zeros(20), np.zeros(20, int))}
    made = [replace(run, clocked=run.point == 2 and run.block > 1) for run in runs(still)]
    found = whole_runs([Point(1, "w", {}, ""), Point(2, "bench", {}, "")], made, CompareConfig())
    assert [(end.standing, end.needed) for end in found.ends] == [(PointStanding.NOT_SLOWER, 0), (PointStanding.CLOCKED, 0)]
    assert not found.are_not_slower
    assert np.isinf(found.excluded)
    assert found.without({2}).are_not_slower


def test_pairs_that_were_made_at_the_same_time_tell_alone_where_there_are_enough_of_them() -> None:
    rng = np.random.default_rng(13)
    of = pairs_of(12, effect=0.0, deviation=0.005, rng=rng)
    odd = of._replace(head=np.where(np.arange(12) < 4, of.head + 0.13, of.head))  # four pairs that the machine slowed on one side alone
    for apart, expected in ((4, PointStanding.NOT_SLOWER), (8, PointStanding.OPEN)):
        made = [replace(run, together=run.block >= apart, wall_ns=run.wall_ns * (1 + (run.block >= apart))) for run in runs({1: odd})]
        (end,) = whole_runs([Point(1, "w", {}, "")], made, CompareConfig()).ends
        assert end.standing is expected
        assert end.ratio.runs_base == (8 if apart == 4 else 12)
        assert end.base_ns == pytest.approx(1e8, rel=0.05)  # the other's turns are not its own time


def test_a_slower_program_whose_function_is_not_found_is_not_settled() -> None:
    found = examples.findings(Verdict.REGRESSION, ())
    assert not settled(found, CompareConfig())
    assert settled(replace(found, verdict=Verdict.UNCHANGED), CompareConfig())


def test_what_is_open_says_how_many_pairs_would_decide() -> None:
    rng = np.random.default_rng(8)
    (end,) = judged({1: pairs_of(20, effect=0.02, deviation=0.06, rng=rng)}).ends
    assert end.standing is PointStanding.OPEN
    assert end.needed > 20
    assert pairs_of(3 * end.needed, effect=0.02, deviation=0.06, rng=rng).difference.upper(0.95) < INTEREST


FLAGS = ("gcc -O2 (1 file)",)
SORT = Point(0, "sort", {"n": 1000}, "./sort")


def placed_runs(built: float, others: tuple[float, float], pairs: int = 80, layouts: int = 20) -> list[Run]:
    """Return pairs in which the builds themselves differ by the ratio `built`, and other layouts by one ratio or the other in turn."""
    rng, runs = np.random.default_rng(3), []
    for block in range(pairs):
        layout = block % layouts
        ratio = built if layout == 0 else others[layout % 2]
        for side, cost in ((Side.BASE, 1e7), (Side.HEAD, 1e7 * ratio)):
            took = cost * float(np.exp(rng.normal(0, 0.01)))
            runs.append(Run(len(runs), Phase.PLAIN, 0, side, block, took, took, 1e6, 0.0, 0.0, "same", layout=layout))
    return runs


@pytest.mark.parametrize(
    ("built", "others", "told"),
    [
        (1.32, (0.78, 1.28), True),
        (0.74, (0.78, 1.28), True),
        (1.0, (0.78, 1.28), False),
        (1.04, (1.0, 1.0), False),
        (1.32, (1.32, 1.32), False),
        (1.32, (1.15, 1.16), False),
        (1.12, (0.98, 0.99), True),
        (0.88, (1.0, 1.01), True),
        (1.32, (0.85, 0.86), False),
    ],
    ids=[
        "slower as built",
        "faster as built",
        "as all layouts",
        "little",
        "slower in all",
        "slower",
        "slower as built, else as fast",
        "reverse",
        "by more than places make",
    ],
)
def test_what_the_builds_alone_show_is_told_where_other_layouts_do_not(built: float, others: tuple[float, float], told: bool) -> None:
    runs = placed_runs(built, others)
    ends = whole_runs([SORT], runs, CompareConfig()).ends
    notes = [*map(noted, layout_note(runs, ends, CompareConfig(), FLAGS))]
    assert [note.slug for note in notes] == ["layout-decides"] * told
    if told:
        assert "the CPU time of base at sort n=1000 (4 pairs), in 20 layouts of the same code ×" in notes[0].text
        assert f"head takes ×{built}"[:-1] in notes[0].text
        assert not [*layout_note(runs, ends, CompareConfig(), ())], "nothing was compiled"
        (by_clock,) = map(noted, layout_note(runs, [replace(end, by="wall_ns") for end in ends], CompareConfig(), FLAGS))
        assert "the time of base at sort n=1000 (4 pairs)" in by_clock.text


def test_what_the_builds_alone_show_is_told_by_their_pairs_that_were_made_apart_as_well() -> None:
    runs = [replace(run, together=run.block > 1, layout=max(0, run.layout - 2)) for run in placed_runs(1.32, (0.78, 1.28), pairs=18)]
    ends = whole_runs([SORT], runs, CompareConfig()).ends
    assert ends[0].ratio.runs_base == 16
    (note,) = map(noted, layout_note(runs, ends, CompareConfig(), FLAGS))
    assert "(3 pairs), in 16 layouts" in note.text


def made_in_two_ways(alone: float, together: float, count: int, *, deviation: float = 0.02) -> list[Run]:
    """Return `count` pairs that were made alone, of the builds as they are, and others made at the same time, with a ratio each."""
    rng, runs = np.random.default_rng(6), []
    for block in range(count + 8):
        is_alone = block < count
        for side in Side:
            ratio = 1.0 if side is Side.BASE else alone if is_alone else together
            ns = 1e8 * ratio * float(np.exp(rng.normal(0, deviation)))
            layout = 0 if is_alone else block - count
            runs.append(Run(len(runs), Phase.PLAIN, 0, side, block, ns, ns, 1e6, 0.0, 0.0, "", layout=layout, together=not is_alone))
    return runs


@pytest.mark.parametrize(
    ("alone", "together", "count", "standing", "is_told"),
    [
        (2.68, 1.0, 2, PointStanding.OPEN, True),
        (2.68, 1.0, 5, PointStanding.SLOWER, True),
        (1.0, 2.68, 5, PointStanding.SLOWER, True),
        (0.4, 1.0, 5, PointStanding.NOT_SLOWER, True),
        (1.1, 1.0, 5, PointStanding.NOT_SLOWER, False),
        (0.3, 0.5, 2, PointStanding.FASTER, False),
    ],
    ids=["few alone", "slower alone", "slower on one CPU", "faster alone", "by no more than places make", "faster both ways"],
)
def test_pairs_made_in_another_way_that_differ_by_more_than_layouts_judge_by_themselves(
    alone: float, together: float, count: int, standing: PointStanding, is_told: bool
) -> None:
    runs = made_in_two_ways(alone, together, count)
    (end,) = whole_runs([SORT], runs, CompareConfig()).ends
    assert end.standing is standing
    assert not is_told or not [*layout_note(runs, [end], CompareConfig(), FLAGS)]
    texts = [note.text for note in map(noted, ways_note(runs, [end], CompareConfig()))]
    assert bool(texts) is is_told
    assert all(f"({count} pairs), and where base and head share one CPU ×" in text and "(8 pairs)" in text for text in texts)


def test_noise_makes_no_other_way_of_few_pairs() -> None:
    found = []
    for shift in np.linspace(-0.3, 0.3, 13):
        runs = made_in_two_ways(float(np.exp(shift)), 1.0, 2, deviation=0.25)
        found += [*ways_note(runs, whole_runs([SORT], runs, CompareConfig()).ends, CompareConfig())]
    assert not found


def test_builds_that_were_linked_again_and_do_other_work_leave_it_open() -> None:
    runs = placed_runs(2.0, (1.0, 1.0), pairs=20)
    runs = [replace(run, together=True, layout=0 if run.block in (7, 12) else 1 + run.layout) for run in runs]
    runs = [replace(run, cpu_ns=2e7 if run.block in (7, 12) and run.side is Side.HEAD else 1e7, layout=run.layout) for run in runs]
    (end,) = whole_runs([SORT], runs, CompareConfig()).ends
    assert end.standing is PointStanding.OPEN
    (note,) = map(noted, ways_note(runs, [end], CompareConfig()))
    assert note.text.startswith("in runs of the builds as they are, head takes ×2 the CPU time of base at sort n=1000 (2 pairs), and where")


def test_few_pairs_of_the_builds_themselves_tell_nothing_of_their_layout() -> None:
    runs = placed_runs(1.32, (0.78, 1.28), pairs=40)
    assert not [*layout_note(runs, whole_runs([SORT], runs, CompareConfig()).ends, CompareConfig(), FLAGS)]


@pytest.mark.parametrize(("others", "by_layouts"), [((0.78, 1.28), True), ((1.04, 1.04), False)], ids=["layouts vary", "runs vary"])
def test_what_leaves_a_point_open_is_put_down_to_layouts_where_they_vary_most(others: tuple[float, float], by_layouts: bool) -> None:
    end = whole_runs([SORT], placed_runs(others[1], others), CompareConfig()).ends[0]
    assert end.by_layouts is by_layouts


@pytest.mark.parametrize(("layouts", "standing"), [(1, PointStanding.OPEN), (8, PointStanding.SLOWER)])
def test_slower_runs_in_few_layouts_stay_open_and_say_why(layouts: int, standing: PointStanding) -> None:
    rng, point = np.random.default_rng(5), Point(0, "sort", {"n": 1000}, "./sort")
    runs = []
    for block in range(40):
        for side in Side:
            ns = 1e8 * (1.12 if side is Side.HEAD else 1.0) * float(np.exp(rng.normal(0, 0.01)))
            runs.append(Run(len(runs), Phase.PLAIN, 0, side, block, ns, ns, 1e6, None, None, "", layout=block % layouts))
    (end,) = whole_runs([point], runs, CompareConfig()).ends
    assert (end.standing, end.needed) == (standing, 0)
    says = [note.text for note in map(noted, few_layouts_note(runs, [end], CompareConfig()))]
    assert bool(says) is (standing is PointStanding.OPEN)
    assert all("fewer than 3" in text and "15 %: raise measure.layouts" in text for text in says)
