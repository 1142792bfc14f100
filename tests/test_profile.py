"""Profiles: functions by what they cost a run, and which of them grew over revisions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perfdiff import cli, pipeline
from perfdiff.analysis.annotations.history import Recording
from perfdiff.analysis.annotations.profiles import Profiles, classes, profiles
from perfdiff.analysis.sums.profile import profile
from perfdiff.config import CompareConfig
from perfdiff.progress import Progress
from perfdiff.records.recorded import RecordedExperiment
from perfdiff.records.schema import Phase, Revision
from perfdiff.report import profile as report
from perfdiff.report import profile_plot
from perfdiff.request import Request
from programs import git
from test_log import CALLS, RUNS, SIZES, commit, recording

CONFIG = CompareConfig()
MEAN_NS = 2000 + 8 * np.array(SIZES)  # of a call at each point


def recorded(name: str = "v1", seed: int = 1, **given: object) -> RecordedExperiment:
    _, found = recording(np.random.default_rng(seed), name, **given)  # type: ignore[arg-type]
    assert isinstance(found, RecordedExperiment)
    return found


def told(*recordings: Recording) -> Profiles:
    return profiles(recordings, CONFIG, lambda _: None)


def of(found: RecordedExperiment) -> Recording:
    return found.experiment.base, found


def test_functions_are_ordered_by_their_own_time_in_one_run_of_each_point() -> None:
    found = profile(recorded(functions={"light": 0.1, "heavy": 1.0, "middle": 0.5}))
    assert [line.info.name for line in found.lines] == ["heavy", "middle", "light"]
    heavy = found.lines[0]
    assert heavy.calls == CALLS * len(SIZES)
    assert heavy.self_ns == pytest.approx(CALLS * MEAN_NS.sum(), rel=0.03)
    assert [found.share(line) for line in found.lines] == pytest.approx([1 / 1.6, 0.5 / 1.6, 0.1 / 1.6], rel=0.05)


def test_time_with_callees_is_kept_apart_from_own_time() -> None:
    found = recorded()
    totals = replace(found.experiment.totals, self_ns=found.experiment.totals.wall_ns / 4)
    (line,) = profile(replace(found, experiment=replace(found.experiment, totals=totals))).lines
    assert line.wall_ns == pytest.approx(4 * line.self_ns)


def test_runs_of_the_survey_do_not_count_where_there_are_timed_ones() -> None:
    found = recorded()
    first, *others = found.experiment.runs
    surveyed = replace(found, experiment=replace(found.experiment, runs=(replace(first, phase=Phase.SURVEY), *others)))
    (line,) = profile(surveyed).lines
    assert line.calls == CALLS * len(SIZES)


def test_a_function_that_runs_in_few_runs_counts_by_its_median() -> None:
    found = recorded()
    totals = found.experiment.totals
    rarely = totals.run % RUNS == 0
    some = replace(totals, **{name: getattr(totals, name)[rarely] for name in ("run", "function", "calls", "wall_ns", "self_ns")}, other={})
    assert profile(replace(found, experiment=replace(found.experiment, totals=some))).lines == ()


def test_classes_of_growth_are_told_of_functions_worth_looking_at() -> None:
    found = recorded(cost=lambda n: 2000 + 0.004 * n * n)
    assert classes(found, profile(found).lines, CONFIG) == {1: "quadratic"}


def test_growth_names_slower_calls_more_calls_and_new_functions() -> None:
    base = recorded("v1", 1, functions={"slower": 1.0, "same": 1.0})
    head = recorded("v2", 2, functions={"slower": 1.5, "same": 1.05, "new": 0.3})
    found = told(of(base), of(head))
    assert [each.name for each in found.growths if each.grew] == ["slower", "new"]
    slower = found.growths[0]
    assert [(revision.rev, round(step.ratio.value, 1)) for revision, step in slower.steps] == [("v2", 1.5)]
    assert slower.added_ns == pytest.approx(0.5 * CALLS * MEAN_NS.sum(), rel=0.1)
    text = report.text(found, {}, width=120)
    assert "slower: " in text
    assert "it is new" in text
    assert "a call ×1.5" in text


def test_a_function_called_more_often_grew_although_a_call_costs_the_same() -> None:
    found = told(of(recorded("v1", 1)), of(recorded("v2", 2, calls=3 * CALLS)))
    (each,) = found.growths
    assert (each.grew, each.steps, each.calls_ratio) == (True, (), 3.0)
    assert "called ×3 as often" in report.text(found, {})


def test_drift_of_the_machine_is_no_growth() -> None:
    found = told(of(recorded("v1", 1)), of(recorded("v2", 2, drift=1.1)))
    assert not any(each.grew for each in found.growths)
    assert "No function clearly grew from v1 to v2." in report.text(found, {})


def test_functions_of_less_than_a_hundredth_are_left_out_of_growth() -> None:
    pair = [of(recorded(name, seed, functions={"heavy": 1.0, "tiny": 0.005 * seed})) for name, seed in (("v1", 1), ("v2", 1))]
    assert [each.name for each in told(*pair).growths] == ["heavy"]


def test_a_revision_without_a_profile_at_the_end_leaves_the_ends_to_those_that_have_one() -> None:
    broken: Recording = (Revision("v3", None, ""), "does not build")
    found = told(of(recorded("v1", 1)), of(recorded("v2", 2, drift=2.0)), broken)
    (each,) = found.growths
    assert each.grew
    assert each.self_ns[2] is None
    text = report.text(found, {})
    assert "Grew from v1 to v2" in text
    assert "v3: does not build" in text


def test_json_has_every_revision_with_its_functions_and_the_growth() -> None:
    base, head = recorded("v1", 1), recorded("v2", 2, drift=2.0)
    found = told(of(base), of(head))
    document = json.loads(json.dumps(report.json_document(found, classes(head, profile(head).lines, CONFIG))))
    assert document["schema"] == "perfdiff.profile/1"
    assert [each["rev"] for each in document["revisions"]] == ["v1", "v2"]
    (line,) = document["revisions"][1]["functions"]
    assert (line["name"], line["calls"], line["share"], line["class"]) == ("insert", 60, 1.0, "linear")
    (growth,) = document["growth"]
    assert growth["grew"] is True
    assert growth["changes"][0]["rev"] == "v2"
    assert len(growth["self_ns"]) == 2


def test_plots_are_the_same_bytes_each_time() -> None:
    one, two = told(of(recorded("v1", 1))), told(of(recorded("v1", 1)), of(recorded("v2\x1b", 2, drift=2.0)))
    for found in (one, two):
        assert profile_plot.draw(found, "svg") == profile_plot.draw(found, "svg")
        assert b"\x1b" not in profile_plot.draw(found, "svg")
        assert profile_plot.draw(found, "png").startswith(b"\x89PNG")


@pytest.fixture
def recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Stand in a repository of two commits, the first of them tagged v1, with a stand-in for measuring."""
    asked: list[tuple[str, ...]] = []

    def record(request: Request, progress: Progress) -> RecordedExperiment:
        asked.append(request.revisions)
        return recorded(*request.revisions or ("working tree",))

    git(tmp_path, "init", "-q", "-b", "main")
    for number in (1, 2):
        commit(tmp_path, f"c{number}")
    git(tmp_path, "tag", "v1", "HEAD~1")
    monkeypatch.setattr(pipeline, "record", record)
    monkeypatch.chdir(tmp_path)
    return asked


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        ([], [()]),
        (["v1"], [("v1",)]),
        (["v1", "HEAD"], [("v1",), ("HEAD",)]),
        (["v1..HEAD"], [("v1",), ("HEAD",)]),
        (["HEAD^{/[..]*1}"], [("HEAD^{/[..]*1}",)]),
        (["--tags"], [("v1",)]),
        (["--since", "v1"], [("v1",), ("HEAD",)]),
    ],
)
def test_the_command_takes_one_revision_or_several(
    recorder: list[tuple[str, ...]], capsys: pytest.CaptureFixture[str], arguments: list[str], asked: list[tuple[str, ...]]
) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["profile", *arguments, "-q", "--build", "make", "--", "./a"])
    assert left.value.code is None or left.value.code == 0
    head = git(Path(), "rev-parse", "--short=10", "HEAD")
    assert [tuple("HEAD" if name == head else name for name in names) for names in recorder] == asked
    assert "insert" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [([], "most own time: "), (["v1", "HEAD"], "No function clearly grew from v1 to HEAD.")],
)
def test_a_profile_in_a_file_leaves_the_answer_and_its_place_on_standard_error(
    recorder: list[tuple[str, ...]], capsys: pytest.CaptureFixture[str], arguments: list[str], answer: str
) -> None:
    with pytest.raises(SystemExit):
        cli.main(["profile", *arguments, "-o", "p.svg", "--build", "make", "--", "./a"])
    told, place = capsys.readouterr().err.splitlines()[-2:]
    assert told.startswith(f"perfdiff: {answer}")
    assert place == "perfdiff: written to p.svg"
