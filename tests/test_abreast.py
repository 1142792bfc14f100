"""Runs that only count: which pairs are made at the same time, and which are made apart after all."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from perfdiff.collect.counts.abreast import Abreast
from perfdiff.collect.hosts import machine
from perfdiff.collect.runs import schedule
from perfdiff.collect.runs.schedule import Slot
from perfdiff.config import WorkloadConfig
from perfdiff.errors import DiskFilledError, WorkloadError
from perfdiff.records.schema import Phase, Point, Run, Side

POINTS = [Point(number, "w", {"n": number}, "x") for number in range(3)]
CPUS = frozenset((0, 1))


@dataclass
class Scripted:
    """A collector that runs nothing: it notes which slots were made together; those of `threads` points have two."""

    alone: bool = False
    served: bool = False
    same_tree: bool = False
    threads: Collection[int] = ()
    fails: Exception | None = None
    prints: str = "as ever"
    together: list[int] = field(default_factory=list)
    apart_: list[int] = field(default_factory=list)

    @property
    def workloads(self) -> Mapping[str, WorkloadConfig]:
        return {"w": WorkloadConfig("w", "x", alone=self.alone)}

    def is_served(self, _slot: Slot) -> bool:
        return self.served

    def apart(self, _slots: Sequence[Slot]) -> bool:
        return not self.same_tree

    def collect(self, slots: Sequence[Slot], advance: Callable[[str], None]) -> Iterator[tuple[Run, list[Any]]]:
        self.apart_.append(slots[0].point.id)
        for slot in slots:
            advance("alone")
            yield self._made(slot, "as ever")

    def collect_together(self, slots: Sequence[Slot], cpus: Collection[int], advance: Callable[[str], None]) -> list[tuple[Run, list[Any]]]:
        assert cpus == CPUS
        self.together.append(slots[0].point.id)
        if self.fails:
            raise self.fails
        for _ in slots:
            advance("together")
        return [self._made(slot, self.prints) for slot in slots]

    def _made(self, slot: Slot, printed: str) -> tuple[Run, list[Any]]:
        return plain(slot.point, slot.side, printed), [SimpleNamespace(threads=1 + (slot.point.id in self.threads))]


def plain(point: Point, side: Side, printed: str = "as ever", rss: float = 1e6) -> Run:
    return Run(0, Phase.PLAIN, point.id, side, 0, 1e6, 1e6, rss, None, None, printed)


def made(collector: Scripted, before: Sequence[Run] = (), sides: Sequence[Side] = tuple(Side)) -> list[str]:
    """Make two blocks of all points, and return what progress was told; every slot gives one run in its place."""
    told: list[str] = []
    abreast = Abreast(collector)  # type: ignore[arg-type]
    for block in range(2):
        slots = schedule.counted_block(POINTS, block, 1, sides)
        runs = [run for run, _ in abreast.collect(slots, before, told.append)]
        assert [(run.point, run.side) for run in runs] == [(slot.point.id, slot.side) for slot in slots]
    return told


@pytest.fixture(autouse=True)
def _two_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: CPUS)


def test_runs_of_one_thread_are_made_in_pairs() -> None:
    collector = Scripted()
    assert made(collector) == ["together"] * 12
    assert (sorted(collector.together), collector.apart_) == ([0, 0, 1, 1, 2, 2], [])


@pytest.mark.parametrize("how", ["alone", "served", "same_tree"])
def test_runs_that_may_meet_are_made_one_after_the_other(how: str) -> None:
    collector = Scripted(**{how: True})  # type: ignore[arg-type]
    assert made(collector) == ["alone"] * 12
    assert not collector.together


def test_a_single_side_or_cpu_runs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert made(Scripted(), sides=(Side.BASE,)) == ["alone"] * 6
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert made(Scripted()) == ["alone"] * 12


def test_runs_for_which_memory_may_not_suffice_are_made_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_available_bytes", lambda: 3e9)
    collector = Scripted()
    made(collector, [plain(POINTS[point], side, rss=rss) for point, rss in ((0, 7e8), (1, 8e8)) for side in Side])
    assert (sorted(collector.together), collector.apart_) == ([0, 0, 2, 2], [1, 1])


@pytest.mark.parametrize(
    ("collector", "before"),
    [
        (Scripted(threads=[0, 1, 2]), []),
        (Scripted(fails=WorkloadError("the port is taken", slug="workload-failed")), []),
        (Scripted(prints="something else"), [plain(point, side) for point in POINTS for side in Side]),
    ],
    ids=["threads", "fails", "prints"],
)
def test_what_may_hang_on_the_other_side_is_made_again_alone_and_so_is_all_that_follows(collector: Scripted, before: list[Run]) -> None:
    assert made(collector, before) == ["alone"] * 12
    assert len(collector.together) == 1


def test_programs_that_always_print_something_new_are_made_in_pairs() -> None:
    before = [plain(POINTS[0], side, printed) for side in Side for printed in ("one time", "another")]
    assert made(Scripted(prints="a third"), before) == ["together"] * 12


def test_a_full_disk_is_no_reason_to_go_on() -> None:
    with pytest.raises(DiskFilledError):
        made(Scripted(fails=DiskFilledError("full", slug="workload-filled-disk")))
