"""Counts of lines in a comparison: made where something is slower or open, within a budget, kept, and told by every report."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import runtimes
from perfdiff import configuration, pipeline
from perfdiff.cli import samples
from perfdiff.cli.explain import explanation
from perfdiff.collect.counts import placing
from perfdiff.config import BuildConfig, Config, CountersConfig, MeasureConfig
from perfdiff.errors import BuildError, DiskFilledError, WorkloadError
from perfdiff.measuring import linecounts
from perfdiff.measuring.linecounts import LineCounts
from perfdiff.measuring.site import Variant
from perfdiff.outcome import analysed
from perfdiff.progress import Silent, Stopwatch
from perfdiff.records import recorded
from perfdiff.records.places import PlaceCounts
from perfdiff.records.schema import Note, Phase, Point, Run, Side
from perfdiff.report import html, json_report, markdown, terminal
from perfdiff.report.document import build
from perfdiff.report.sentences.catalogue import say
from perfdiff.request import Request
from programs import PROGRAMS, Case, repository

WALK = "while (*end)"


@pytest.fixture(scope="module")
def list_append(tmp_path_factory: pytest.TempPathFactory) -> Request:
    """Return what asks to compare two lists, of which one walks to its end at every append."""
    room = tmp_path_factory.mktemp("list")
    folder = repository(Case(PROGRAMS / "list-append", {}), room / "project")
    config = replace(configuration.load(folder, environment={}), measure=MeasureConfig(budget_s=3.0, layouts=1))
    return Request(folder, ("base", "head"), config, runtimes.lent_to(room / "cache"), {"PATH": "/usr/local/bin:/usr/bin:/bin"})


@pytest.mark.integration
def test_the_line_that_makes_a_list_quadratic_is_named_by_every_report(list_append: Request, tmp_path: Path) -> None:
    outcome = pipeline.compare(list_append, Silent())
    guilty = outcome.findings.functions[0]
    walk = guilty.lines[0]
    assert (walk.text, walk.file, walk.line, walk.base, walk.head) == (WALK, "list.c", 18, 0.0, 8000 * 8001 / 2)
    assert (walk.feature, walk.head_says, walk.is_new, walk.is_steeper) == ("n", "0.5·n²", True, True)
    assert "new line 18 runs 0.5·n² times" in say(outcome.findings.sentence)
    assert guilty.line_counts[10] == 8001

    told = f"list.c:18, `{WALK}`, new: 0.5·n²; 32,004,000 times at prog n=8000"
    document = build(outcome.findings, outcome.samples)
    assert told in " ".join(terminal.render(document).split())
    assert told in " ".join(explanation(outcome, "list_fill").split())
    assert told in markdown.render(document)
    assert '<td class="h9">3.2e7<td>+ \t\twhile (*end)'.replace("\t", " " * 8) in html.render(document)
    assert json.loads(json_report.render(document))["functions"][0]["lines"][0]["head_says"] == "0.5·n²"

    assert outcome.recorded is not None
    samples.save(tmp_path / "saved", outcome.recorded)
    again = analysed(recorded.load(tmp_path / "saved"), list_append.config.compare, Silent())
    assert again.findings.functions[0].lines == guilty.lines
    without = analysed(replace(recorded.load(tmp_path / "saved"), lines=recorded.no_lines), list_append.config.compare, Silent())
    assert (without.findings.verdict, without.findings.functions[0].lines) == (outcome.findings.verdict, ())


POINTS = tuple(Point(number, "prog", {"n": 10**number}, f"./prog {10**number}") for number in range(4))


@dataclass
class Bench:
    """What `count_lines` asks a bench for; plain runs of the points take a second each, of point i."""

    config: Config
    problem: Exception | None = None
    placed_builds: int = 0
    followed: frozenset[tuple[str, int]] = frozenset()
    points: tuple[Point, ...] = POINTS
    sides: tuple[Side, ...] = tuple(Side)
    progress: Stopwatch = field(default_factory=lambda: Stopwatch(Silent()))
    pins: Any = field(default_factory=lambda: SimpleNamespace(base=SimpleNamespace(revision="base"), head=SimpleNamespace(revision="head")))

    @property
    def request(self) -> Any:
        return SimpleNamespace(config=self.config, followed=self.followed)

    def collector(self, targets: Mapping[object, object]) -> Any:
        return SimpleNamespace(targets=targets)

    def placed(self, site: object, files: object) -> Variant:
        self.placed_builds += 1
        if isinstance(self.problem, BuildError):
            return Variant({}, {}, {}, notes=(placing.failed(str(self.problem)),))
        return Variant({}, {"placed": None}, dict.fromkeys(Side))  # type: ignore[dict-item]


@dataclass
class Asked:
    """What counts lines of a bench."""

    bench: Bench
    runs: list[Run]

    def count(self) -> LineCounts:
        site, collector = SimpleNamespace(notes=()), SimpleNamespace(targets={})
        return linecounts.count(self.bench, site, collector, self.runs, self.bench.points)  # type: ignore[arg-type]


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Asked]:
    """Return what makes counts of lines whose runs take as long as plain ones by a clock of their own."""
    clock = itertools.count()

    def made(*, problem: Exception | None = None, seconds: int = 1, **counters: object) -> Asked:
        now = [0.0]

        def counted(collector: object, side: Side, built: object, points: tuple[Point, ...], advance: object) -> PlaceCounts:
            if problem is not None:
                raise problem
            ran = []
            for point in points:
                now[0] += seconds
                ran.append(point)
            return PlaceCounts(tuple(ran), (), None, {}, {}, (Note("places-lost", "lost"),))  # type: ignore[arg-type]

        monkeypatch.setattr(linecounts.variants, "placed", Bench.placed)
        monkeypatch.setattr(linecounts.placing, "counted", counted)
        monkeypatch.setattr(linecounts.counterparts, "heads", lambda pins, base, head: (base.points, head.points))
        monkeypatch.setattr(linecounts.time, "monotonic", lambda: now[0])
        bench = Bench(Config(build=BuildConfig(command="make"), workloads=(), counters=CountersConfig(**counters)), problem)  # type: ignore[arg-type]
        runs = [
            Run(next(clock), Phase.PLAIN, point.id, side, 0, 1e9 * (4 - point.id), 1e9, 1e6, 0.0, 0.0, "same")
            for point in POINTS
            for side in Side
        ]
        return Asked(bench, runs)

    return made


def test_the_shortest_points_that_fit_the_budget_are_counted(counting: Callable[..., Asked]) -> None:
    found = counting(
        budget_s=60.0
    ).count()  # runs of 1, 2, 3 and 4 s, four times as long with counts, on two sides: three fit into a minute
    assert found.experiment is not None
    assert [point.id for point in found.experiment.points] == [3, 2, 1]
    assert found.notes == (Note("places-lost", "lost"),)


def test_head_that_takes_longer_than_half_of_the_budget_leaves_fewer_points_on_both_sides(counting: Callable[..., Asked]) -> None:
    found = counting(budget_s=60.0, seconds=20).count().experiment
    assert found is not None
    assert [[point.id for point in side.points] for side in found.sides.values()] == [[3, 2], [3, 2]]
    assert counting(budget_s=60.0, seconds=40).count().experiment is None


@pytest.mark.parametrize(
    ("setting", "followed"),
    [({"budget_s": 20.0}, frozenset()), ({"software": False}, frozenset()), ({}, frozenset({("a.c", 1)}))],
    ids=["one-point-fits", "switched-off", "functions-are-followed"],
)
def test_no_lines_are_counted_where_they_tell_nothing(
    counting: Callable[..., Asked], setting: dict[str, object], followed: frozenset[tuple[str, int]]
) -> None:
    asked = counting(**setting)
    asked.bench.followed = followed
    assert asked.count() == LineCounts()
    assert asked.bench.placed_builds == 0


@pytest.mark.parametrize("problem", [BuildError("make exited 2", slug="build-failed"), WorkloadError("exited 1", slug="workload-failed")])
def test_a_build_or_run_that_fails_costs_the_lines_alone(counting: Callable[..., Asked], problem: Exception) -> None:
    found = counting(budget_s=60.0, problem=problem).count()
    assert found.experiment is None
    assert [note.slug for note in found.notes] == ["lines-not-counted"]
    assert str(problem) in found.notes[0].text


def test_a_full_disk_ends_the_comparison(counting: Callable[..., Asked]) -> None:
    with pytest.raises(DiskFilledError):
        counting(budget_s=60.0, problem=DiskFilledError("full", slug="disk-full")).count()
