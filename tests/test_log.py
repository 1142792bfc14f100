"""The history of a function: which revisions, where its cost changed, and that the machine's drift is no change."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from findings import findings
from perfdiff import cli, pipeline
from perfdiff.analysis.annotations.history import Recording, history
from perfdiff.analysis.series import FunctionHistory
from perfdiff.cli import log
from perfdiff.config import CompareConfig
from perfdiff.errors import BuildError, RevisionError, UsageError
from perfdiff.progress import Progress
from perfdiff.records.recorded import RecordedExperiment
from perfdiff.records.schema import Change, Edges, Experiment, FunctionInfo, Phase, Point, Revision, Run, SampleTable, Side, Totals
from perfdiff.report import history as report
from perfdiff.report import history_plot
from perfdiff.report.sentences.catalogue import say
from perfdiff.request import Request
from perfdiff.revisions.lineage import RevisionRange, lineage
from perfdiff.revisions.repository import find_repository
from programs import git
from sampled import table

CONFIG = CompareConfig()
SIZES = (1000.0, 3000.0, 10_000.0)
RUNS, CALLS = 8, 20
NONE = np.empty(0, dtype=np.int64)


def recording(
    rng: np.random.Generator,
    name: str,
    *,
    cost: Callable[[np.ndarray], np.ndarray] = lambda n: 2000 + 8 * n,
    drift: float = 1.0,
    alloc: float = 0.0,
    calls: int = CALLS,
    functions: Mapping[str, float] | None = None,
) -> Recording:
    """Return a revision whose functions (`insert` alone unless told) cost what `cost` says times a factor each, `drift` in all runs."""
    point = np.repeat(np.arange(len(SIZES)), RUNS * CALLS)
    run = np.repeat(np.arange(len(SIZES) * RUNS), CALLS)
    n = np.array(SIZES)[point]
    infos, tables, totals = [], {}, []
    for number, (function, factor) in enumerate((functions or {"insert": 1.0}).items(), 1):
        levels = np.exp(0.02 * rng.standard_normal(run.max() + 1))[run]
        wall = cost(n) * factor * drift * levels * (1 + 0.03 * rng.standard_normal(len(n)))
        samples = table({"n": n}, wall, run=run, point=point)
        tables[number] = _with(samples, number, {"wall_ns": wall, "self_ns": wall, "alloc_bytes": np.floor(alloc * n)})
        infos.append(FunctionInfo(number, function, "src/list.c", 1, "c", Change.UNCHANGED))
        totals += [(one, number, calls, wall[run == one].sum() * calls / CALLS) for one in range(run.max() + 1)]
    made = tuple(
        Run(each, Phase.TIMED, each // RUNS, Side.BASE, each % RUNS, 1e7, 1e7, 1e6, 0.0, 0.0, "same") for each in range(run.max() + 1)
    )
    whole = np.array(totals)
    sums = Totals(whole[:, 0].astype(int), whole[:, 1].astype(int), whole[:, 2], whole[:, 3], whole[:, 3], {})
    experiment = Experiment(
        base=Revision(name, None, f"Commit {name}"),
        head=Revision(name, None, ""),
        environment=findings().environment,
        workloads=(),
        points=tuple(Point(i, "sort", {"n": size}, "") for i, size in enumerate(SIZES)),
        functions=tuple(infos),
        skipped=(),
        runs=made,
        totals=sums,
        edges=Edges(NONE, NONE, NONE, np.empty(0), np.empty(0)),
        notes=(),
    )
    return experiment.base, RecordedExperiment(experiment, lambda function, side: tables.get(function) if side is Side.BASE else None)


def _with(samples: SampleTable, number: int, metrics: Mapping[str, np.ndarray]) -> SampleTable:
    from dataclasses import replace

    return replace(samples, function=number, metrics=metrics)


def told(*recordings: Recording, metrics: tuple[str, ...] = ()) -> FunctionHistory:
    return history("insert", "src/list.c", recordings, metrics, CONFIG)


def steps(found: FunctionHistory, metric: str = "wall_ns") -> dict[str, float]:
    """Return the change points of a metric as ratios by revision."""
    return {
        entry.revision.rev: entry.costs[metric].step.ratio.value  # type: ignore[union-attr]
        for entry in found.entries
        if metric in entry.costs and entry.costs[metric].step is not None
    }


@pytest.mark.statistical
def test_a_machine_that_drifts_by_twelve_percent_makes_no_change_points() -> None:
    """Twelve histories of six revisions, each recorded on a machine up to 12 % faster or slower than on average, as was seen."""
    found: list[dict[str, float]] = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        drifts = rng.uniform(1 / 1.06, 1.06, 6)
        found.append(steps(told(*(recording(rng, f"r{i}", drift=drift) for i, drift in enumerate(drifts)), metrics=("wall_ns",))))
    assert found == [{}] * len(found)


@pytest.mark.statistical
def test_a_slower_revision_is_found_at_its_place_and_nowhere_else() -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        factors = [1.0, 1.04, 1.35, 1.33, 1.37]
        found = steps(told(*(recording(rng, f"r{i}", drift=factor) for i, factor in enumerate(factors)), metrics=("wall_ns",)))
        assert list(found) == ["r2"]
        assert found["r2"] == pytest.approx(1.35, rel=0.05)


def test_small_steps_add_up_to_a_change_against_the_revision_that_began_the_level() -> None:
    rng = np.random.default_rng(3)
    found = told(*(recording(rng, f"r{i}", drift=1.07**i) for i in range(5)), metrics=("wall_ns",))
    (first, *_) = steps(found)
    assert first in {"r3", "r4"}
    step = next(entry.costs["wall_ns"].step for entry in found.entries if entry.revision.rev == first)
    assert step is not None
    assert step.since.rev == "r0"


def test_a_faster_revision_is_a_change_too_and_the_way_back_another() -> None:
    rng = np.random.default_rng(4)
    found = steps(told(*(recording(rng, f"r{i}", drift=factor) for i, factor in enumerate((1.0, 0.6, 1.0)))))
    assert {rev: round(ratio, 1) for rev, ratio in found.items()} == {"r1": 0.6, "r2": 1.7}


def test_exact_counts_change_from_the_smallest_effect_of_interest_on() -> None:
    rng = np.random.default_rng(5)
    found = told(*(recording(rng, f"r{i}", alloc=alloc) for i, alloc in enumerate((16.0, 16.5, 17.5))))
    assert steps(found) == {}, "times are equal"
    assert steps(found, "alloc_bytes") == {"r2": pytest.approx(17.5 / 16, rel=1e-3)}


def test_allocation_out_of_nothing_is_a_change() -> None:
    rng = np.random.default_rng(5)
    found = told(recording(rng, "r0"), recording(rng, "r1", alloc=8.0))
    assert list(steps(found, "alloc_bytes")) == ["r1"]
    assert "bytes allocated from nothing, against r0" in report.text(found)


def test_another_class_of_growth_is_told_with_its_cost_at_the_same_input() -> None:
    rng = np.random.default_rng(6)
    found = told(recording(rng, "r0"), recording(rng, "r1", cost=lambda n: 2000 + 0.004 * n * n), metrics=("wall_ns",))
    before, after = (entry.costs["wall_ns"] for entry in found.entries)
    assert (before.annotation.cost_class, after.annotation.cost_class) == ("linear", "quadratic")
    assert found.reference == {"n": 3000.0}
    assert before.value == pytest.approx(26_000, rel=0.03)
    assert after.value == pytest.approx(38_000, rel=0.03)
    assert before.low < before.value < before.high < after.low
    assert list(steps(found)) == ["r1"]


@pytest.mark.statistical
def test_a_revision_whose_first_calls_cost_more_is_no_obstacle_to_those_without_such() -> None:
    def first(n: np.ndarray) -> np.ndarray:
        return np.asarray(np.where(np.arange(len(n)) % CALLS < 4, 8, 1) * (2000 + 8 * n))

    rng = np.random.default_rng(3)
    found = told(_numbered(recording(rng, "v1", cost=first)), _numbered(recording(rng, "v2")), _numbered(recording(rng, "v3", drift=2.0)))
    assert steps(found) == {"v3": pytest.approx(2.0, rel=0.15)}
    costs = [entry.costs["wall_ns"] for entry in found.entries]
    assert costs[0].value == pytest.approx(costs[1].value, rel=0.1), "of steady calls"
    assert not any(cost.broken for cost in costs)


def _numbered(revision: Recording) -> Recording:
    """Return a revision whose calls have their numbers in their runs."""
    name, found = revision
    assert isinstance(found, RecordedExperiment)
    return name, replace(found, samples=lambda function, side: _in_order(found.samples(function, side)))


def _in_order(samples: SampleTable | None) -> SampleTable | None:
    return samples and replace(samples, call=np.arange(len(samples)) % CALLS + 1)


def test_intervals_of_the_cost_hold_the_truth() -> None:
    """50 recordings; at 95 % in truth, fewer than 42 would hold it once in 10,000 times."""
    rng = np.random.default_rng(7)
    costs = [told(recording(rng, "r"), metrics=("wall_ns",)).entries[0].costs["wall_ns"] for _ in range(50)]
    assert sum(cost.low <= 26_000 <= cost.high for cost in costs) >= 42


def test_revisions_without_the_function_are_listed_with_the_reason_and_change_nothing() -> None:
    rng = np.random.default_rng(8)
    broken: Recording = (Revision("r1", None, "Broken"), "'make' exited 2 [build-failed]")
    found = told(recording(rng, "r0"), broken, recording(rng, "r2", functions={"other": 1.0}), recording(rng, "r3"))
    assert [say(entry.reason) for entry in found.entries] == ["", "'make' exited 2 [build-failed]", "no function of this name", ""]
    assert steps(found) == {}


def test_inputs_that_cannot_be_compared_begin_a_new_level() -> None:
    rng = np.random.default_rng(9)
    revision, later = recording(rng, "r1", drift=3.0)
    assert isinstance(later, RecordedExperiment)
    renamed = RecordedExperiment(later.experiment, lambda function, side: _renamed(later.samples(function, side)))
    found = told(recording(rng, "r0"), (revision, renamed), recording(rng, "r2", drift=3.0), metrics=("wall_ns",))
    assert say(found.entries[1].costs["wall_ns"].broken) == "its input `n` is not recorded any more"
    assert steps(found) == {}


def _renamed(samples: SampleTable | None) -> SampleTable | None:
    from dataclasses import replace

    return None if samples is None else replace(samples, features=tuple(replace(each, name="m") for each in samples.features))


def test_text_json_and_plot_tell_the_same() -> None:
    rng = np.random.default_rng(10)
    found = told(recording(rng, "v1"), recording(rng, "v2", drift=1.5, calls=60), metrics=("wall_ns",))
    text = report.text(found, width=160)
    assert "- v2: time, callees included ×1.5" in text
    assert "called ×3 as often" in text
    document = json.loads(json.dumps(report.json_document(found)))
    assert document["schema"] == "perfdiff.log/1"
    first, second = document["revisions"]
    assert (first["calls"], second["calls"]) == (60, 180)  # in one run of each of three points
    assert first["metrics"]["wall_ns"]["change"] is None
    change = second["metrics"]["wall_ns"]["change"]
    assert change["since"] == "v1"
    assert change["ci"][0] < change["ratio"] < change["ci"][1]
    assert {term["term"] for term in second["metrics"]["wall_ns"]["coefficients"]} == {"1", "n"}
    svg = history_plot.draw(found, "svg")
    assert svg == history_plot.draw(found, "svg")
    assert ET.fromstring(svg).tag.endswith("svg")
    assert history_plot.draw(found, "png").startswith(b"\x89PNG")


def test_names_of_strangers_are_printable() -> None:
    rng = np.random.default_rng(11)
    evil = "in\x1b[31msert\u202e"
    found = history(evil, "src/list.c", [recording(rng, "v\x07", functions={evil: 1.0})], ("wall_ns",), CONFIG)
    assert not {"\x1b", "\u202e", "\x07"} & set(report.text(found))
    assert b"\x1b" not in history_plot.draw(found, "svg")


def commit(repository: Path, name: str) -> None:
    """Commit one more source."""
    (repository / f"{name}.c").touch()
    git(repository, "add", f"{name}.c")
    git(repository, "commit", "-q", "-m", name)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository of five commits, a merged branch and one more; v1 is the first, v2 the fifth, v9 was never merged."""
    git(tmp_path, "init", "-q", "-b", "main")
    for number in range(1, 6):
        commit(tmp_path, f"c{number}")
    git(tmp_path, "tag", "v1", "HEAD~4")
    git(tmp_path, "tag", "v2")
    for branch in ("side", "other"):
        git(tmp_path, "checkout", "-q", "-b", branch, "main~2")
        commit(tmp_path, branch)
    git(tmp_path, "tag", "-a", "-m", "Never released", "v9")
    git(tmp_path, "checkout", "-q", "main")
    git(tmp_path, "merge", "-q", "--no-ff", "-m", "merge", "side")
    commit(tmp_path, "c6")
    return tmp_path


def subjects(repository: Path, wanted: RevisionRange) -> list[str]:
    names = lineage(find_repository(repository), wanted)
    return [git(repository, "log", "-1", "--format=%s", name) for name in names]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (RevisionRange(), ["c1", "c2", "c3", "c4", "c5", "merge", "c6"]),
        (RevisionRange(("v1..v2",)), ["c1", "c2", "c3", "c4", "c5"]),
        (RevisionRange(("v2..",)), ["c5", "merge", "c6"]),
        (RevisionRange(("other...v2",)), ["c3", "c4", "c5"]),
        (RevisionRange(("v2...other",)), ["c3", "other"]),
        (RevisionRange(("HEAD^{/[..]*4}",)), ["c4"]),
        (RevisionRange(since="HEAD~3"), ["c4", "c5", "merge", "c6"]),
        (RevisionRange(tags=True), ["c1", "c5"]),
        (RevisionRange(tags=True, since="v2"), ["c5"]),
        (RevisionRange(("HEAD", "v1", "HEAD~2")), ["c1", "c5", "c6"]),
        (RevisionRange(("v1..HEAD",), most=3), ["c1", "c4", "c6"]),
        (RevisionRange(("HEAD", "side", "v1")), ["c1", "side", "c6"]),
    ],
)
def test_revisions_go_from_the_oldest_to_the_newest(repository: Path, wanted: RevisionRange, expected: list[str]) -> None:
    assert subjects(repository, wanted) == expected


@pytest.mark.parametrize(
    ("wanted", "slug"),
    [
        (RevisionRange(("v2..v1",)), "not-an-ancestor"),
        (RevisionRange(("v1", "v7")), "unknown-revision"),
        (RevisionRange(("v1",), tags=True), "bad-specification"),
        (RevisionRange(since="--all"), "unknown-revision"),
    ],
)
def test_wrong_ranges_are_refused(repository: Path, wanted: RevisionRange, slug: str) -> None:
    with pytest.raises(RevisionError) as raised:
        lineage(find_repository(repository), wanted)
    assert raised.value.slug == slug


def test_a_history_without_tags_says_so(repository: Path) -> None:
    git(repository, "tag", "-d", "v1", "v2")
    with pytest.raises(RevisionError) as raised:
        lineage(find_repository(repository), RevisionRange(tags=True))
    assert raised.value.slug == "no-revisions"


@pytest.fixture
def recorder(repository: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stand in the repository, with a stand-in for measuring that keeps what it was asked for; v2 does not build."""
    asked: list[str] = []
    rng = np.random.default_rng(12)

    def record(request: Request, progress: Progress) -> RecordedExperiment:
        (name,) = request.revisions
        asked.append(name)
        if name == "v2":
            raise BuildError("'make' exited 2", slug="build-failed")
        _, found = recording(rng, name, functions={"insert": 1.0, "table_insert": 0.5})
        assert isinstance(found, RecordedExperiment)
        return found

    monkeypatch.setattr(pipeline, "record", record)
    monkeypatch.chdir(repository)
    return asked


def code(*arguments: str, quiet: bool = True) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main([*arguments, *(["-q"] if quiet else []), "--build", "make", "--", "./a"])
    return int(left.value.code or 0)


def test_the_command_records_each_revision_and_goes_on_past_one_that_fails(recorder: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert code("log", "insert", "v1", "HEAD", "v2", "--format", "json") == 0
    assert recorder == ["v1", "v2", "HEAD"]
    document = json.loads(capsys.readouterr().out)
    assert [entry["reason"] for entry in document["revisions"]] == [None, "'make' exited 2 [build-failed]", None]


def test_where_all_revisions_fail_the_failure_is_the_answer(recorder: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert code("log", "insert", "v2") == 3
    assert "[build-failed]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "start"), [("h.json", b"{"), ("h.svg", b"<?xml"), ("h.png", b"\x89PNG"), ("h.txt", b"insert  src/list.c")]
)
def test_the_suffix_chooses_the_form(recorder: list[str], name: str, start: bytes) -> None:
    assert code("log", "insert", "v1", "-o", name) == 0
    assert Path(name).read_bytes().startswith(start)


def test_a_history_in_a_file_leaves_the_answer_and_its_place_on_standard_error(
    recorder: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert code("log", "insert", "v1", "-o", "h.svg", quiet=False) == 0
    assert capsys.readouterr().err.splitlines()[-2:] == [
        "perfdiff: insert: No change beyond what can be told over 1 revision.",
        "perfdiff: written to h.svg",
    ]


@pytest.mark.parametrize(
    ("arguments", "slug"),
    [
        (["insrt", "v1"], "unknown-function"),
        (["insert", "v1", "--format", "png"], "format-unknown"),
        (["insert", "v1", "--metric", "time"], "unknown-metric"),
    ],
)
def test_what_cannot_be_told_is_refused(recorder: list[str], capsys: pytest.CaptureFixture[str], arguments: list[str], slug: str) -> None:
    assert code("log", *arguments) == 2
    assert f"[{slug}]" in capsys.readouterr().err


def test_namesakes_are_told_apart_by_their_file() -> None:
    rng = np.random.default_rng(13)
    revision, found = recording(rng, "v1", functions={"insert": 1.0, "other": 2.0})
    assert isinstance(found, RecordedExperiment)
    from dataclasses import replace

    twins = tuple(replace(info, name="insert", file=f"src/{info.id}.c") for info in found.experiment.functions)
    twin: Recording = revision, replace(found, experiment=replace(found.experiment, functions=twins))
    with pytest.raises(UsageError) as raised:
        log.history_of("insert", [twin], ("wall_ns",), CONFIG)
    assert raised.value.slug == "ambiguous-function"
    told_of = log.history_of("2.c:insert", [twin], ("wall_ns",), CONFIG)
    assert told_of.file == "src/2.c"
    assert told_of.entries[0].costs["wall_ns"].value == pytest.approx(52_000, rel=0.03)


SCAN = """
#include <stdio.h>
#include <stdlib.h>
static long scan(const int *values, int n)
{
	long sum = 0;
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < n; i++)
			sum += values[i] % (7 + round);
	return sum;
}
int main(int argc, char **argv)
{
	int n = atoi(argv[1]);
	long sum = 0;
	int *values = calloc(n, sizeof *values);
	for (int k = 0; k < 40; k++)
		sum += scan(values, n - 11 * k);
	printf("%ld\\n", sum);
	free(values);
	return 0;
}
"""
SCAN_TOML = """
[build]
command = "cc -O1 -g -o scan scan.c"
[[workload]]
name = "scan"
command = "./scan {n}"
parameters = { n = [10000, 30000] }
runs = 4
"""


@pytest.mark.integration
def test_a_real_program_shows_where_it_became_slower_and_documentation_is_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "perfdiff.toml").write_text(SCAN_TOML)
    for rounds in (1, 1, 8):
        (tmp_path / "scan.c").write_text(SCAN.replace("ROUNDS", str(rounds)))
        with (tmp_path / "README.md").open("a") as readme:
            readme.write("More words.\n")
        git(tmp_path, "add", "scan.c", "README.md", "perfdiff.toml")
        git(tmp_path, "commit", "-q", "-m", f"rounds {rounds}")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left:
        cli.main(["log", "scan", "--metric", "wall_ns", "--format", "json", "--cache", str(tmp_path.parent / "cache")])
    assert left.value.code == 0
    out, err = capsys.readouterr()
    assert err.count("\nperfdiff: measuring (") == 2
    changes = [entry["metrics"]["wall_ns"]["change"] for entry in json.loads(out)["revisions"]]
    assert changes[:2] == [None, None]
    assert 3 < changes[2]["ratio"] < 24  # recorded one after the other: what else the machine did in between, up to twice or half, is in it
