"""Histories that several machines recorded: no change of machine is a change of the code, and no change of the code is lost by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from perfdiff.analysis.annotations.history import ELSEWHERE, Recording, history
from perfdiff.analysis.annotations.profiles import Profiles, profiles
from perfdiff.analysis.series import FunctionHistory
from perfdiff.cluster import relaying
from perfdiff.cluster.posts import Post
from perfdiff.cluster.protocol import Delivery, Failure, Record
from perfdiff.cluster.relaying import stretches
from perfdiff.cluster.workers import Worker
from perfdiff.config import CompareConfig
from perfdiff.progress import Silent
from perfdiff.records.recorded import RecordedExperiment
from perfdiff.records.relay import Relay, repeated
from perfdiff.records.schema import Machine, Note, Revision
from perfdiff.report import history as report
from perfdiff.revisions.pins import Pin
from test_log import recording, steps

CONFIG = CompareConfig()
# What a machine makes of the cost of a call at n: another clock, and another price of large inputs.
FAST = {"slow": lambda n: 1.6 * (2000 + 8 * n), "fast": lambda n: 2000 + 8 * n, "small": lambda n: 1500 + 11 * n + 0.0006 * n * n}


def cost(machine: str, factor: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda n: factor * FAST[machine](n)


def relay(seed: int, factors: Sequence[float], on: Sequence[str], **given: Sequence[Mapping[str, float]]) -> Relay:
    """Return revisions whose `insert` costs `factors` times as much, each recorded by its machine, the last one of a stretch by both."""
    rng = np.random.default_rng(seed)
    made: dict[tuple[str, int], RecordedExperiment | str] = {}
    for place, machine in enumerate(on):
        for at in {place, max(place - 1, 0) if machine != on[max(place - 1, 0)] else place}:
            more = {name: values[at] for name, values in given.items()}
            made[machine, at] = recording(rng, f"v{at}", cost=cost(machine, factors[at]), **more)[1]  # type: ignore[arg-type]
    names = dict.fromkeys(on)
    environment = next(found.experiment.environment for found in made.values() if isinstance(found, RecordedExperiment))
    return Relay(tuple(on), made, tuple(Machine(name, environment) for name in names))


def recordings(made: Relay) -> list[Recording]:
    of = [made.recorded(place) for place in range(len(made.on))]
    return [(recording(np.random.default_rng(0), f"v{place}")[0], found) for place, found in enumerate(of)]


def told(made: Relay) -> FunctionHistory:
    return history("insert", "src/list.c", recordings(made), (), CONFIG, relay=made)


def grown(made: Relay) -> Profiles:
    return profiles(recordings(made), CONFIG, lambda _: None, relay=made)


STRETCHES = ("slow", "slow", "slow", "fast", "fast", "small", "small")


@pytest.mark.statistical
def test_machines_of_other_speeds_make_no_change_points() -> None:
    """Over 10 histories of 7 revisions and 3 machines, whose costs differ by factors that depend on the input."""
    for seed in range(10):
        assert steps(told(relay(seed, [1.0] * 7, STRETCHES))) == {}


def test_without_a_revision_in_common_the_machine_would_have_been_a_change() -> None:
    """The same recordings taken for those of one machine."""
    made = relay(1, [1.0] * 7, STRETCHES)
    assert set(steps(history("insert", "src/list.c", recordings(made), (), CONFIG))) == {"v3", "v5"}


@pytest.mark.parametrize("culprit", [1, 2, 3, 4, 5, 6])
def test_a_slower_revision_is_found_at_its_place_wherever_machines_change(culprit: int) -> None:
    found = steps(told(relay(culprit, [1.0] * culprit + [1.4] * (7 - culprit), STRETCHES)))
    assert set(found) == {f"v{culprit}"}
    assert found[f"v{culprit}"] == pytest.approx(1.4, abs=0.06)


def test_small_steps_add_up_over_a_change_of_the_machine() -> None:
    """10 % on each side of the change, of which neither is told by itself."""
    made = relay(3, [1.0, 1.1, 1.1, 1.21, 1.21], ("slow", "slow", "slow", "fast", "fast"))
    found = told(made)
    (name,) = steps(found)
    step = next(entry.costs["wall_ns"].step for entry in found.entries if entry.revision.rev == name)
    assert name in ("v3", "v4")
    assert step is not None
    assert step.since.rev == "v0"
    assert 1.15 < step.ratio.value < 1.25
    assert steps(told(relay(3, [1.1, 1.1, 1.1, 1.21, 1.21], ("slow", "slow", "slow", "fast", "fast")))) == {}


def test_costs_are_told_as_the_first_machine_would_have_them() -> None:
    found = told(relay(4, [1.0, 1.0, 1.0, 1.0, 1.4, 1.4, 1.4], STRETCHES))
    n = found.reference["n"]
    costs = [entry.costs["wall_ns"] for entry in found.entries]
    assert [each.value / FAST["slow"](n) for each in costs] == pytest.approx([1, 1, 1, 1, 1.4, 1.4, 1.4], rel=0.05)
    assert all(each.low < factor * FAST["slow"](n) < each.high for each, factor in zip(costs, [1] * 4 + [1.4] * 3, strict=True))
    widths = [np.log(each.high / each.low) for each in costs]
    assert max(widths[:3]) < min(widths[3:5]) < min(widths[5:])  # each change of the machine adds its error
    assert [entry.machine for entry in found.entries] == list(STRETCHES)


def test_machines_and_what_they_recorded_are_told() -> None:
    found = told(relay(5, [1.0] * 7, STRETCHES))
    text = report.text(found, width=200)
    assert "Machines; costs are told as slow would have them" in text
    assert "(recorded-in-turn)" in text
    document = report.json_document(found)
    assert [each["machine"] for each in document["revisions"]] == list(STRETCHES)
    assert [each["name"] for each in document["machines"]] == ["slow", "fast", "small"]


def test_where_no_revision_is_in_common_a_level_begins_and_says_so() -> None:
    made = relay(6, [1.0] * 4, ("slow", "slow", "fast", "fast"))
    made.made["fast", 1] = "it does not build"  # type: ignore[index]
    found = told(made)
    assert steps(found) == {}
    assert [entry.costs["wall_ns"].broken for entry in found.entries] == [None, None, ELSEWHERE, None]


def test_a_revision_that_does_not_build_leaves_the_one_before_it_to_be_the_common_one() -> None:
    made = relay(7, [1.0, 1.0, 1.0, 1.5, 1.5], ("slow", "slow", "slow", "fast", "fast"))
    rng = np.random.default_rng(8)
    made.made["fast", 1] = recording(rng, "v1", cost=cost("fast", 1.0))[1]  # type: ignore[index]
    made.made["slow", 2] = made.made["fast", 2] = "it does not build"  # type: ignore[index]
    assert set(steps(told(made))) == {"v3"}


def test_a_function_that_only_a_later_machine_saw_is_new_there() -> None:
    functions = [{"other": 1.0}, {"other": 1.0}, {"other": 1.0}, {"other": 1.0, "insert": 1.0}]
    found = told(relay(9, [1.0] * 4, ("slow", "slow", "fast", "fast"), functions=functions))
    assert steps(found) == {}
    assert [bool(entry.reason) for entry in found.entries] == [True, True, True, False]
    assert found.entries[3].costs["wall_ns"].broken is None


def test_growth_is_that_of_the_code_and_not_of_machines() -> None:
    functions = [{"insert": 1.0, "find": 0.5, "rehash": 0.4}] * 4 + [{"insert": 1.0, "find": 0.8, "rehash": 0.4}] * 3
    found = grown(relay(10, [1.0] * 7, STRETCHES, functions=functions))
    assert [each.name for each in found.growths if each.grew] == ["find"]
    ratios = {each.name: np.array(each.self_ns, dtype=float) / each.self_ns[0] for each in found.growths}  # type: ignore[operator]
    assert ratios["insert"].tolist() == pytest.approx([1] * 7, rel=0.06)
    assert ratios["find"].tolist() == pytest.approx([1] * 4 + [1.6] * 3, rel=0.06)


def test_calls_that_depend_on_the_machine_are_no_growth() -> None:
    """A program that shares its work among as many threads as the machine has CPUs."""
    made = relay(11, [1.0] * 4, ("slow", "slow", "fast", "fast"), calls=[20, 20, 20, 20])
    rng = np.random.default_rng(12)
    for place in (1, 2, 3):
        made.made["fast", place] = recording(rng, f"v{place}", cost=cost("fast", 1.0), calls=40)[1]  # type: ignore[index]
    assert [each.calls_ratio for each in grown(made).growths] == [None]
    assert "as often" not in report.text(told(made))


def test_revisions_that_are_the_same_for_what_is_built_share_a_recording() -> None:
    made = repeated(relay(13, [1.0, 1.0, 1.5], ("slow", "slow", "fast")), [0, 0, 1, 2, 2])
    assert made.on == ("slow", "slow", "slow", "fast", "fast")
    assert list(made.handovers) == [3]
    assert set(steps(told(made))) == {"v3"}


@pytest.mark.parametrize(
    ("revisions", "workers", "expected"),
    [(1, 3, [1]), (2, 3, [2]), (3, 2, [2, 1]), (4, 3, [2, 1, 1]), (10, 3, [4, 3, 3]), (20, 4, [6, 5, 5, 4])],
)
def test_stretches_end_at_the_same_time(revisions: int, workers: int, expected: list[int]) -> None:
    """All but the first begin with one revision more; where another worker would gain nothing, it gets none."""
    found = stretches(revisions, workers)
    assert [len(each) for each in found] == expected
    assert [place for each in found for place in each] == list(range(revisions))


@dataclass(eq=False)
class Laid:
    """Stands in for posts: workers answer in any order; those that build nothing fail always, and some are lost on the way."""

    rng: np.random.Generator
    builds: Sequence[bool]
    broken: frozenset[int]
    left_out: list[Note] = field(default_factory=list)
    here: list[Post[int]] = field(default_factory=list)
    leaves: Callable[[Post[int]], None] = lambda _: None

    def open(self, *_: object) -> Iterator[tuple[Post[int], None]]:
        for number in range(len(self.builds)):
            self.here.append(Post(Worker("", f"w{number}", "host"), None, number, name=f"w{number}"))  # type: ignore[arg-type]
            yield self.here[-1], None

    def told(self, post: Post[int]) -> str:
        return post.name

    def answered(self, give: Callable[[Post[int]], Record | None], *, leaving_out: bool) -> Iterator[tuple[Post[int], object]]:
        assert not leaving_out
        while True:
            for post in [post for post in self.here if post.now is None]:
                give(post)
            busy = [post for post in self.here if post.now is not None]
            if not busy:
                return
            post = busy[self.rng.integers(len(busy))]
            if post.number and self.rng.random() < 0.08:
                self.remove(post)
            elif post.now in self.broken or not self.builds[post.number]:
                yield post, Failure("BuildError", "it does not build", "build-failed")
            else:
                yield post, Delivery(f"{post.now}", ())

    def leave_out(self, post: Post[int], _: Failure) -> None:
        assert not self.builds[post.number], "a worker that builds is blamed"
        self.remove(post)

    def remove(self, post: Post[int]) -> None:
        self.leaves(post)
        post.now = None
        post.rest.clear()
        self.here.remove(post)

    def require(self) -> None:
        assert self.here


@pytest.mark.statistical
def test_every_revision_is_recorded_whoever_is_lost_and_revisions_are_not_blamed_for_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over 300 histories, of up to 12 revisions and 5 workers, of which the first is never lost and builds."""
    stand_in = recording(np.random.default_rng(0), "v")[1]
    for name in ("bundled", "checkout"):
        monkeypatch.setattr(relaying, name, lambda *_: None)
    monkeypatch.setattr(relaying, "_loaded", lambda *_: stand_in)
    handovers = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        revisions, workers = int(rng.integers(1, 13)), int(rng.integers(1, 6))
        broken = frozenset(np.flatnonzero(rng.random(revisions) < 0.2).tolist()) - {0}
        laid = Laid(rng, [not number or bool(rng.random() < 0.8) for number in range(workers)], broken)
        pins = [Pin(Revision(f"v{place}", None, ""), None, "", "") for place in range(revisions)]  # type: ignore[arg-type]
        request = SimpleNamespace(config=None)
        made = relaying.Relaying(laid, pins, Path(), Silent()).record((), request)  # type: ignore[arg-type]
        assert [isinstance(made.recorded(place), str) for place in range(revisions)] == [place in broken for place in range(revisions)]
        builds = {f"w{number}" for number, able in enumerate(laid.builds) if able}
        assert {name for place, name in enumerate(made.on) if place not in broken} <= builds
        for place, handover in made.handovers.items():
            handovers += 1
            assert handover.before is not None or {*range(max(place - relaying.MOST_ANCHORS, 0), place)} <= broken
    assert handovers > 300
