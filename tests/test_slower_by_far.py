"""Heads that are slower by far: few pairs show it, and the runs of other points end soon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from perfdiff.analysis.verdicts.wholeruns import slower_by_far
from perfdiff.collect.choosing.tally import Tally
from perfdiff.collect.runs.schedule import Block, Made
from perfdiff.config import CompareConfig, MeasureConfig
from perfdiff.deadline import Deadline
from perfdiff.measuring import longruns, patience
from perfdiff.measuring.surveying import SurveyPoints
from perfdiff.measuring.wholepairs import WholePairs
from perfdiff.progress import Silent
from perfdiff.records.schema import Phase, Point, Run, Side
from perfdiff.statistics.pairs import FEWEST_PAIRS, FIRST_LOOK

LAYOUTS = (0, 0, 0, 1, 2)  # of the first pairs of a point
BASE_NS = 1e8
POINTS = (Point(1, "w", {"n": 1.0}, ""), Point(2, "w", {"n": 2.0}, ""), Point(3, "w", {"n": 3.0}, ""))
Noise = Callable[[np.random.Generator], np.ndarray]


def few_pairs(head_log: np.ndarray, base_log: np.ndarray, point: int = 1) -> list[Run]:
    """Return the runs of five pairs whose CPU times have these logarithms beyond base's usual ones."""
    return [
        Run(0, Phase.PLAIN, point, side, block, ns, ns, 1e6, None, None, "", layout=LAYOUTS[block], together=True)
        for block, logs in enumerate(zip(base_log, head_log, strict=True))
        for side, ns in zip((Side.BASE, Side.HEAD), BASE_NS * np.exp(logs), strict=True)
    ]


def share_told(noise: Noise, effect: float, sequences: int) -> float:
    """Return in which share of sequences five pairs have head slower by far."""
    rng = np.random.default_rng(1)
    told = [slower_by_far(POINTS[:1], few_pairs(np.log(effect) + noise(rng), noise(rng)), CompareConfig()) for _ in range(sequences)]
    return sum(map(bool, told)) / sequences


def now_and_then(times: float, share: float) -> Noise:
    """Return the noise of neighbours that have a share of all runs take so many times as long."""
    return lambda rng: np.where(rng.random(FEWEST_PAIRS) < share, np.log(times), 0.0) + rng.normal(0, 0.02, FEWEST_PAIRS)


@pytest.mark.statistical
@pytest.mark.parametrize(
    "noise",
    [
        lambda rng: rng.normal(0, 0.2, FEWEST_PAIRS),
        now_and_then(1.5, 0.5),
        now_and_then(10.0, 0.5),
    ],
    ids=["normal", "half as long again", "ten times as long"],
)
def test_few_pairs_of_the_same_code_are_hardly_ever_slower_by_far(noise: Noise) -> None:
    assert share_told(noise, 1.0, 1500) <= 0.004  # 0.11 % of 20,000 sequences at worst: 0.4 % is the quantile of 99.6 % for 1,500


@pytest.mark.statistical
def test_few_pairs_tell_what_takes_half_as_long_again() -> None:
    assert share_told(lambda rng: rng.normal(0, 0.025, FEWEST_PAIRS), 1.5, 200) >= 0.8
    assert share_told(lambda rng: rng.normal(0, 0.025, FEWEST_PAIRS), 1.1, 200) == 0.0, "places of code make as much"


def plain_runs(seconds: dict[int, float]) -> list[Run]:
    """Return a run of each side of points that take so long."""
    return [
        Run(0, Phase.PLAIN, point, side, 0, 1e9 * took_s, 1e9 * took_s, 1e6, None, None, "")
        for point, took_s in seconds.items()
        for side in Side
    ]


@pytest.mark.parametrize(
    ("seconds", "far", "untimed", "uncounted"),
    [
        ((0.01, 0.02, 0.04, 0.08, 0.16), 3, [], []),  # all afforded
        ((0.01, 0.02, 0.04, 0.5, 3.0), 3, [5], [5]),
        ((0.01, 0.02, 0.04, 0.5, 3.0), 5, [], []),  # where it shows is kept, however long it takes
        ((1.0, 2.0, 4.0, 8.0, 16.0), 1, [3, 4, 5], [4, 5]),  # two sizes tell that it grows, three how
        ((16.0, 8.0, 4.0, 2.0, 1.0), 4, [1, 2, 3], [1, 2]),
    ],
)
def test_long_points_are_not_needed_to_locate_what_shorter_ones_show(
    seconds: tuple[float, ...], far: int, untimed: list[int], uncounted: list[int]
) -> None:
    points = [Point(number, "w", {"n": float(number)}, "") for number in range(1, 6)]
    runs = plain_runs({point.id: took_s for point, took_s in zip(points, seconds, strict=True)})
    ends = [SimpleNamespace(point=points[far - 1])]
    for sizes, spared in ((longruns.TIMED_SIZES, untimed), (longruns.COUNTED_SIZES, uncounted)):
        assert [point.id for point in longruns.beyond_need(points, runs, ends, 5, sizes)] == spared


def test_a_point_that_alone_calls_a_function_is_surveyed_as_ever() -> None:
    calls = {(1, Side.BASE): {7: 10.0}, (1, Side.HEAD): {7: 10.0}, (2, Side.BASE): {7: 90.0}, (2, Side.HEAD): {7: 90.0}}
    places = SurveyPoints(POINTS[:2], spared=POINTS[1:2])
    assert [point.id for point in places.timed(Tally({}, calls, {}, {}))] == [1]
    assert [point.id for point in places.timed(Tally({}, calls | {(2, Side.HEAD): {7: 90.0, 8: 1.0}}, {}, {}))] == [1, 2]


@dataclass
class Steady:
    """Makes pairs in which head takes so many `times` as long, by point, each as long by the test's clock as its head's run."""

    times: dict[int, float]
    count: int = 1
    now_s: float = 0.0
    order: list[int] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.now_s

    def made(self, blocks: Iterator[Block]) -> Iterator[Made]:
        rng = np.random.default_rng(2)
        for (pair,) in blocks:
            point, block = pair[0].point.id, pair[0].block
            seconds = point**2 * self.times[point]
            runs = [
                Run(0, Phase.PLAIN, point, side, block, ns, ns, 1e6, None, None, "", layout=max(0, block - 2), together=True)
                for side, of_base in ((Side.BASE, 1.0), (Side.HEAD, self.times[point]))
                for ns in (point**2 * 1e8 * of_base * float(np.exp(rng.normal(0, 0.01))),)
            ]
            self.now_s += seconds
            self.order.append(point)
            yield Made(pair, [(run, []) for run in runs], seconds)


class Listening(Silent):
    """Keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def listener() -> Listening:
    return Listening()


@pytest.fixture
def pairs_made(listener: Listening, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """Return what makes pairs and returns at which points, one after the other."""

    def make(times: dict[int, float], *, is_fast: bool = False, of_all: bool = False) -> list[int]:
        maker = Steady(times)
        monkeypatch.setattr(patience, "time", maker)
        config, deadline = SimpleNamespace(compare=CompareConfig(), measure=MeasureConfig(fast=is_fast)), Deadline(clock=maker.monotonic)
        bench = SimpleNamespace(points=POINTS, request=SimpleNamespace(config=config, deadline=deadline), progress=listener)
        pairs, runs = WholePairs(bench, maker, 1000.0, " of all cases" if of_all else ""), list[Run]()
        pairs.make(runs)
        pairs.say_what_is_open(runs)
        return maker.order

    return make


def test_the_point_that_shows_it_soonest_is_run_first_and_ends_the_runs(pairs_made: Callable[..., list[int]]) -> None:
    order = pairs_made({1: 1.0, 2: 2.0, 3: 8.0})
    assert order[:7] == [1, 2, 3, 2, 2, 2, 2], "a pair of each, then what costs 8 s a pair and not 72"
    assert (order.count(1), order.count(2)) == (FEWEST_PAIRS, FEWEST_PAIRS)
    assert order.count(3) == 3, "113 s until it is seen, and as long again"


def test_small_effects_have_as_many_pairs_as_ever(pairs_made: Callable[..., list[int]]) -> None:
    order = pairs_made({1: 1.0, 2: 1.12, 3: 1.0})
    assert min(map(order.count, (1, 2, 3))) >= FEWEST_PAIRS
    assert order.count(2) == FIRST_LOOK


def test_a_fast_answer_ends_with_the_first_point_that_is_slower(pairs_made: Callable[..., list[int]]) -> None:
    assert pairs_made({1: 1.0, 2: 2.0, 3: 8.0}, is_fast=True) == [1, 2, 3, 2, 2, 2, 2]


def test_what_is_known_is_said_once_as_soon_as_it_is(pairs_made: Callable[..., list[int]], listener: Listening) -> None:
    pairs_made({1: 1.0, 2: 2.0, 3: 8.0})
    assert listener.notes == ["after 113 s, preliminary: slower, ×1.99 at w n=2.0, and as it seems ×7.95 at w n=3.0"]


def test_that_nothing_is_slower_is_said_where_every_point_is_decided(pairs_made: Callable[..., list[int]], listener: Listening) -> None:
    pairs_made({1: 1.0, 2: 1.0, 3: 1.0})
    (words,) = listener.notes
    assert "preliminary: not slower at any point, ×1.0" in words


def test_what_stays_open_is_said_where_no_more_pairs_follow(pairs_made: Callable[..., list[int]], listener: Listening) -> None:
    pairs_made({1: 1.05, 2: 1.0, 3: 1.0}, of_all=True)
    (words,) = listener.notes
    assert "preliminary of all cases: open, ×1.05 [1.0" in words
    assert words.endswith("pairs; 2 of 3 points decided")
