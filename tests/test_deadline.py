"""Until when a comparison measures: what fits into the time that is left, and what ends measuring where it stands."""

from __future__ import annotations

import math
import pickle
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest

from perfdiff.collect.runs.schedule import Block, Made
from perfdiff.config import CompareConfig, MeasureConfig, WorkloadConfig
from perfdiff.deadline import CutShortError, Deadline, Ending
from perfdiff.measuring import calls
from perfdiff.measuring.wholepairs import WholePairs
from perfdiff.processes import signals_held
from perfdiff.progress import Progress, Silent
from perfdiff.records.schema import Phase, Point, Run, Side
from perfdiff.statistics.pairs import FEWEST_PAIRS


@dataclass
class Clock:
    """A clock that goes on as the test says."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_reserve_for_the_analysis_is_no_time_to_measure_in() -> None:
    clock = Clock()
    short, long, shortest = (Deadline(time_s, clock) for time_s in (20.0, 200.0, 1.0))
    assert [deadline.left_s for deadline in (short, long, shortest)] == [18.0, 190.0, 0.5]
    clock.now += 5
    assert (short.left_s, short.remaining_s) == (13.0, 15.0)
    assert Deadline().left_s == math.inf


def test_a_step_that_does_not_fit_is_left_out_and_that_is_kept_in_mind() -> None:
    deadline = Deadline(20.0, Clock())
    assert deadline.allows(18.0)
    assert (deadline.is_cut, deadline.ended_by) == (False, None)
    assert not deadline.allows(18.1)
    assert (deadline.is_cut, deadline.ended_by) == (True, Ending.TIME)
    assert Deadline().allows(1e9)


def test_time_that_is_over_ends_whatever_is_waited_for() -> None:
    deadline = Deadline(0.2)
    with pytest.raises(CutShortError) as cut, deadline.enforced():
        time.sleep(60)
    assert (cut.value.ending, deadline.ending) == (Ending.TIME, Ending.TIME)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_time_that_is_over_waits_until_what_belongs_together_is_done() -> None:
    steps = []

    def work() -> None:
        with signals_held():
            end = time.monotonic() + 0.2
            while time.monotonic() < end:
                pass
            steps.append("done")

    with pytest.raises(CutShortError), Deadline(0.1).enforced():
        work()
    assert steps == ["done"]


def test_measuring_is_ended_once_and_the_answer_is_not() -> None:
    deadline = Deadline()
    assert not deadline.is_answerable
    with pytest.raises(CutShortError), deadline.enforced():
        deadline.end(Ending.INTERRUPTED)
    deadline.end(Ending.TERMINATED)
    assert deadline.ending is Ending.INTERRUPTED
    assert deadline.is_answerable


def test_another_machine_keeps_no_time_by_its_own_clock() -> None:
    assert pickle.loads(pickle.dumps(Deadline(20.0))).left_s == math.inf


@dataclass(frozen=True)
class Simulated:
    """Makes pairs of runs that take so many seconds of a clock by point; those of head take twice as long where `slower` says so."""

    seconds: dict[int, float]
    clock: Clock
    slower: bool = False
    count: int = 1
    order: list[int] = field(default_factory=list)

    def made(self, blocks: Iterable[Block]) -> Iterator[Made]:
        for (pair,) in blocks:
            point = pair[0].point.id
            self.order.append(point)
            self.clock.now += self.seconds[point]
            runs = [
                Run(0, Phase.PLAIN, point, slot.side, slot.block, cost, cost, 1e6, None, None, "", together=True)
                for slot in pair
                if (cost := 4e7 * (1 + slot.block % 3 / 1000) * (1 + (self.slower and slot.side is Side.HEAD)))
            ]
            yield Made(pair, [(run, []) for run in runs], self.seconds[point])


class Uneven(Simulated):
    """Its pairs decide nothing, and the time ends where it is over, as by a timer."""

    def made(self, blocks: Iterable[Block]) -> Iterator[Made]:
        for pair in super().made(blocks):
            if self.clock.now >= 195.0:
                raise CutShortError(Ending.TIME)
            factor = (1.0, 1.3, 0.8, 1.1, 0.7)[pair.pair[0].block % 5]
            runs = [replace(run, cpu_ns=4e7 * (factor if run.side is Side.HEAD else 1.0)) for run, _ in pair.runs]
            yield replace(pair, runs=[(run, []) for run in runs])


def pairs_in(time_s: float, maker: Simulated, points: int, progress: Progress | None = None) -> tuple[WholePairs, Deadline]:
    """Return the pairs of whole runs of a comparison with so much time to measure in, after they were made."""
    deadline = Deadline(time_s, maker.clock)
    config = SimpleNamespace(compare=CompareConfig(), measure=MeasureConfig(budget_s=1000.0))
    bench = SimpleNamespace(
        points=[Point(number, "w", {"n": number}, "") for number in range(points)],
        request=SimpleNamespace(config=config, deadline=deadline),
        progress=progress or Silent(),
    )
    pairs = WholePairs(bench, maker, 1000.0)
    pairs.make([])
    return pairs, deadline


def test_of_points_that_do_not_all_fit_those_that_do_have_the_fewest_pairs_that_tell_anything() -> None:
    maker = Simulated(dict.fromkeys(range(10), 5.0), Clock())
    _, deadline = pairs_in(110.0, maker, 10)
    assert [maker.order.count(point) for point in range(10)] == [FEWEST_PAIRS] * 4 + [0] * 6  # 25 s each of 104.5 s
    assert deadline.is_short
    assert deadline.left_s >= 0


def test_the_last_point_goes_on_where_no_point_has_what_tells_anything() -> None:
    maker = Uneven(dict.fromkeys(range(3), 30.0), Clock(95.0))
    with pytest.raises(CutShortError):
        pairs_in(110.0, maker, 3)
    assert sorted(maker.order.count(point) for point in range(3))[-1] >= 3
    assert maker.clock.now >= 195.0


def test_a_point_whose_runs_are_too_long_is_left_to_others_that_are_not() -> None:
    maker = Simulated({0: 1.0, 1: 40.0}, Clock())
    _, deadline = pairs_in(100.0, maker, 2)
    assert maker.order.count(1) == 1
    assert maker.order.count(0) >= FEWEST_PAIRS
    assert deadline.is_short


def test_whole_runs_leave_half_of_the_time_at_first_and_go_on_when_they_are_asked_again() -> None:
    maker = Uneven({0: 1.0, 1: 1.0}, Clock())
    pairs, deadline = pairs_in(100.0, maker, 2)
    assert pairs.was_halted
    assert 45 <= deadline.left_s <= 48
    assert not deadline.is_short
    first = len(maker.order)
    with pytest.raises(CutShortError):
        pairs.make([])
    assert len(maker.order) > first + 40


def test_where_everything_is_decided_early_nothing_is_left_out() -> None:
    maker = Simulated({0: 0.1}, Clock(), slower=True)
    pairs, deadline = pairs_in(100.0, maker, 1)
    assert not pairs.was_halted
    assert not deadline.is_cut


class Knowing(Silent):
    """Keeps what is known."""

    def __init__(self) -> None:
        self.known: list[str] = []

    def know(self, text: str) -> None:
        self.known.append(text)


def test_progress_tells_what_whole_runs_show_by_now() -> None:
    progress = Knowing()
    pairs_in(1000.0, Simulated({0: 2.0, 1: 0.1}, Clock(), slower=True), 2, progress)
    assert progress.known[0] == "whole runs: too few yet (1 of 5 pairs)"
    assert progress.known[-1] == "whole runs: ×2 [2.00, 2.00] at w n=0, 5 pairs; 2 of 2 points decided"


class Torn:
    """An assembly of recordings; a timer ends measuring while the first one is added."""

    def __init__(self, *_: object) -> None:
        self.added: list[Run] = []

    def add(self, run: Run, _: object) -> None:
        if not self.added:
            signal.raise_signal(signal.SIGALRM)
        self.added.append(run)


class Probing(Simulated):
    """The same with builds that have probes."""

    def fitted(self, _: object) -> SimpleNamespace:
        return SimpleNamespace(skipped=(), probes={})

    def made(self, blocks: Iterable[Block], planned: int = 0) -> Iterator[Made]:
        assert planned
        yield from super().made(blocks)


def test_a_pair_of_runs_with_probes_is_there_with_all_its_recordings_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "Assembly", Torn)
    config = SimpleNamespace(workloads=(WorkloadConfig("w", runs=5),), compare=CompareConfig())
    bench = SimpleNamespace(
        points=[Point(0, "w", {"n": 1}, "")], sides=tuple(Side), request=SimpleNamespace(config=config), progress=Silent()
    )
    timed = calls.TimedCalls(bench, Probing({0: 1.0}, Clock()))
    with pytest.raises(CutShortError), Deadline(60.0).enforced():
        timed.make(None, 10.0, lambda _: False)
    assert [run.side for run in timed.runs] == [run.side for run in timed.assembly.added]
    assert {run.side for run in timed.runs} == set(Side)
