"""Anomalous calls: found where a counter went astray, named with their inputs, and no alarm for what is harmless or too little."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace

import numpy as np
import pytest

from perfdiff.analysis.counts import anomaly
from perfdiff.analysis.counts.anomaly import MIN_RUNS, concluded, find, find_all
from perfdiff.analysis.counts.scoring import judge_together
from perfdiff.analysis.findings import Anomaly
from perfdiff.analysis.policy import POLICY
from perfdiff.config import CompareConfig
from perfdiff.models.detectors.detector import DetectorKind
from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.schema import SampleTable
from perfdiff.report.sentences.catalogue import say
from simulated_counts import PROGRAMS, Edit, Make, Program, Setting, counts, joined, pair, times

CONFIG = CompareConfig()
BY_NAME = {program.name: program for program in PROGRAMS}
MEDOIDS, TICKET, LOCK = BY_NAME["k-medoids"], BY_NAME["ticket dispenser"], BY_NAME["stats lock"]


def judged(
    program: Program = MEDOIDS, edit: Edit = Edit.NONE, *, threads: int = 4, runs: int = 10, seed: int = 1, make: Make = counts
) -> Anomaly:
    """Return what is found in calls of so many runs."""
    found = find(*pair(Setting(program, threads, runs), edit, seed, make), CONFIG)
    assert found is not None
    return found


def with_counter(table: SampleTable, name: str, values: Floats) -> SampleTable:
    """Return the table with a counter replaced or added."""
    return replace(table, metrics={**table.metrics, name: values})


@pytest.mark.parametrize("edit", [Edit.FALSE_SHARING, Edit.TRUE_SHARING, Edit.REMOTE, Edit.LOCALITY])
@pytest.mark.parametrize("program", [MEDOIDS, LOCK])
def test_a_defect_is_found_and_voted_for_by_its_counter(program: Program, edit: Edit) -> None:
    found = judged(program, edit)
    assert found.is_anomalous
    assert found.anomalous_head > found.anomalous_base + 0.2
    assert found.votes[0].counter in edit.guilty


def with_clean_lines(setting: Setting, edit: Edit, n: Floats, run: Ints, rng: np.random.Generator) -> dict[str, Floats]:
    """Return counts in which threads that share data also find lines that the one before them has already fetched: always alike."""
    seen = counts(setting, edit, n, run, rng)
    more = np.round(0.05 * seen["blocks"]) if edit is Edit.TRUE_SHARING else 0.0
    return {**seen, "l1d_misses": seen["l1d_misses"] + more, "l2_misses": seen["l2_misses"] + more}


@pytest.mark.parametrize("name", ["stats lock", "reverse index", "row counter"])
def test_votes_are_for_what_costs_most_and_not_for_what_repeats_best(name: str) -> None:
    """In standard deviations nine of ten calls would vote for misses of the second level."""
    found = find(*pair(Setting(BY_NAME[name], 4, 20, 30.0), Edit.TRUE_SHARING, 11, with_clean_lines), CONFIG)
    assert found is not None
    assert (found.votes[0].counter, found.votes[0].share > 0.75) == ("hitm", True)
    assert found.calls[0].counter == "hitm"


@pytest.mark.parametrize("edit", [Edit.NONE, Edit.INPUTS, Edit.WORK, Edit.STATE])
@pytest.mark.parametrize("program", [MEDOIDS, LOCK])
def test_harmless_changes_raise_no_alarm(program: Program, edit: Edit) -> None:
    found = judged(program, edit)
    assert not found.is_anomalous
    assert found.open is None


def test_one_thread_shares_nothing() -> None:
    assert not judged(edit=Edit.FALSE_SHARING, threads=1).is_anomalous


def test_a_defect_of_one_point_among_others_is_found() -> None:
    sides = [[pair(Setting(MEDOIDS, t, 8, point=p), edit, p)[side] for p, (t, edit) in enumerate(POINTS)] for side in (0, 1)]
    found = find(joined(sides[0]), joined(sides[1]), CONFIG)
    assert found is not None
    assert found.is_anomalous
    assert {call.point for call in found.calls} == {2}


POINTS = ((1, Edit.NONE), (2, Edit.NONE), (4, Edit.FALSE_SHARING))


def test_the_vote_says_by_how_much_its_counter_moved() -> None:
    vote = judged(edit=Edit.REMOTE).votes[0]
    assert vote.counter == "remote_dram"
    assert vote.ratio is not None
    assert vote.head / vote.base == pytest.approx(vote.ratio.value, rel=0.3)
    assert 10 < vote.ratio.low < vote.ratio.high


def test_a_counter_that_was_zero_and_is_a_thousand_is_glaring() -> None:
    base, head = pair(Setting(MEDOIDS, 1, 8), Edit.NONE, 1)
    base, head = with_counter(base, "hitm", np.zeros(len(base))), with_counter(head, "hitm", np.full(len(head), 1000.0))
    found = find(base, head, CONFIG)
    assert found is not None
    assert found.is_anomalous
    assert (found.anomalous_base < 0.1, found.anomalous_head) == (True, 1.0)
    assert (found.votes[0].counter, found.votes[0].base, found.votes[0].head) == ("hitm", 0.0, 1000.0)
    assert found.votes[0].ratio is not None
    assert found.votes[0].ratio.low > 1000


def test_exact_counters_that_jitter_by_a_few_misses_raise_no_alarm() -> None:
    base, head = pair(Setting(TICKET, 1, 10), Edit.NONE, 1)
    exact = {"blocks": 900.0, "loads": 400.0, "stores": 100.0, "l1d_misses": 12.0, "llc_misses": 0.0}
    jitter = {"blocks": 903.0, "loads": 400.0, "stores": 101.0, "l1d_misses": 14.0, "llc_misses": 0.0}
    base, head = (
        replace(table, metrics={name: np.full(len(table), value) for name, value in values.items()})
        for table, values in ((base, exact), (head, jitter))
    )
    found = find(base, head, CONFIG)
    assert found is not None
    assert not found.is_anomalous
    assert found.anomalous_head == 0.0


def test_anomalous_calls_are_named_with_their_inputs_worst_first() -> None:
    base, head = pair(Setting(MEDOIDS, 4, 10), Edit.NONE, 1)
    rows = head.values[:, 0] > np.quantile(head.values[:, 0], 0.6)
    hitm = np.where(rows, 1e4, head.metrics["hitm"])
    found = find(base, with_counter(head, "hitm", hitm), CONFIG)
    assert found is not None
    assert found.is_anomalous
    assert [call.counter for call in found.calls] == ["hitm"] * 5
    assert [call.error for call in found.calls] == sorted((call.error for call in found.calls), reverse=True)
    for call in found.calls:
        row = np.flatnonzero((head.run == call.run) & (head.call == call.call))[0]
        assert rows[row]
        assert call.inputs == {"n": head.values[row, 0], "threads": 4.0, "other": head.values[row, 2]}


@pytest.mark.parametrize("runs", range(2, MIN_RUNS))
def test_few_runs_cannot_tell_however_glaring(runs: int) -> None:
    found = judged(edit=Edit.FALSE_SHARING, runs=runs)
    assert not found.is_anomalous
    assert say(found.open) == f"only {runs} and {runs} runs of the same points: add runs"


def test_a_function_called_three_times_in_each_of_a_few_runs_cannot_tell() -> None:
    rare = replace(MEDOIDS, calls=3)
    assert find(*pair(Setting(rare, 4, 5), Edit.FALSE_SHARING, 1), CONFIG) is None


def test_a_function_called_three_times_a_run_is_judged_where_runs_are_many() -> None:
    rare = replace(MEDOIDS, calls=3)
    assert judged(rare, Edit.FALSE_SHARING, runs=15).is_anomalous
    assert not judged(rare, runs=15).is_anomalous


def test_nothing_is_said_of_inputs_that_base_never_had() -> None:
    base, head = pair(Setting(MEDOIDS, 1, 8), Edit.NONE, 1)
    far = head.values.copy()
    far[:, 0] *= 100
    assert find(base, replace(head, values=far), CONFIG) is None


def test_nothing_is_said_without_a_measure_of_work() -> None:
    base, head = (replace(table, metrics={"hitm": table.metrics["hitm"]}) for table in pair(Setting(MEDOIDS, 4, 8), Edit.NONE, 1))
    assert find(base, head, CONFIG) is None


def test_calls_without_a_counter_are_left_out() -> None:
    base, head = pair(Setting(MEDOIDS, 4, 8), Edit.FALSE_SHARING, 1)
    absent = np.where(head.call % 4 == 0, np.nan, head.metrics["hitm"])
    found = find(base, with_counter(head, "hitm", absent), CONFIG)
    assert found is not None
    assert found.is_anomalous
    assert all(call.call % 4 for call in found.calls)


@pytest.mark.parametrize("kind", [DetectorKind.MAHALANOBIS, DetectorKind.PCA, DetectorKind.ROBUST_Z])
def test_counts_that_no_counter_holds_are_absent(kind: DetectorKind) -> None:
    base, head = pair(Setting(MEDOIDS, 2, 8), Edit.NONE, 1)
    for wild in (np.inf, 1e300, -1.0):
        of_base, of_head = (with_counter(t, "hitm", np.where(t.call % 7 == 0, wild, t.metrics["hitm"])) for t in (base, head))
        found = find(of_base, of_head, CONFIG, kind=kind)
        assert found is not None
        assert not found.is_anomalous
        assert all(call.call % 7 for call in found.calls)


def test_inputs_that_are_absent_leave_all_calls_alike() -> None:
    sides = [replace(table, values=np.full(table.values.shape, np.nan)) for table in pair(Setting(MEDOIDS, 2, 8), Edit.NONE, 1)]
    found = find(*sides, CONFIG)
    assert found is not None
    assert not found.is_anomalous


def test_points_that_only_one_side_has_are_not_compared() -> None:
    base, head = pair(Setting(MEDOIDS, 2, 8), Edit.NONE, 1)
    found = find(base, replace(head, point=head.point + 1), CONFIG)
    assert found is not None
    assert say(found.open) == "only 0 and 0 runs of the same points: add runs"


def test_hardware_events_are_read_by_instructions() -> None:
    names = {"blocks": "PAPI_TOT_INS", "l1d_misses": "PAPI_L1_DCM", "hitm": "MEM_LOAD_L3_HIT_RETIRED.XSNP_HITM"}
    rng = np.random.default_rng(1)
    for edit in (Edit.NONE, Edit.FALSE_SHARING):
        sides = [
            replace(table, metrics={new: table.metrics[old] * rng.lognormal(0, 0.02, len(table)) for old, new in names.items()})
            for table in pair(Setting(MEDOIDS, 4, 10), edit, 1)
        ]
        found = find(*sides, CONFIG)
        assert found is not None
        assert found.is_anomalous is (edit is Edit.FALSE_SHARING)
    assert found.votes[0].counter == names["hitm"]


def test_times_and_software_metrics_alone_show_what_costs_much() -> None:
    assert judged(LOCK, Edit.FALSE_SHARING, make=times).is_anomalous
    assert not judged(LOCK, make=times).is_anomalous


def test_the_threshold_has_both_of_its_sources_beside_it() -> None:
    found = judged()
    assert found.threshold <= max(found.normal, found.threshold)
    assert min(found.normal, found.quantile) <= found.threshold
    assert {(each.side, each.point) for each in found.errors} == {("base", 0), ("head", 0)}
    assert len(found.errors) == found.runs_base + found.runs_head == 20


def test_the_same_calls_give_the_same_answer_and_it_fits_json() -> None:
    first, second = (judged(edit=Edit.FALSE_SHARING) for _ in range(2))
    assert first == second
    assert json.dumps(asdict(first)) == json.dumps(asdict(second))


EDITS = (Edit.NONE, Edit.FALSE_SHARING, Edit.LOCALITY, Edit.STATE)
FUNCTIONS = {number: pair(Setting(PROGRAMS[number + 2], 4, 10), edit, number) for number, edit in enumerate(EDITS)}


@pytest.mark.parametrize("models", [1, 2, 4])
def test_functions_that_share_models_keep_their_verdicts(models: int) -> None:
    found = judge_together(FUNCTIONS, DetectorKind.MAHALANOBIS, CONFIG, models=models)
    assert [concluded(found[number], CONFIG).is_anomalous for number in FUNCTIONS] == [False, True, True, False]


@pytest.mark.parametrize(("kind", "shared"), [(DetectorKind.MAHALANOBIS, False), (DetectorKind.ISOLATION, True)])
def test_only_costly_detectors_are_shared(kind: DetectorKind, shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(anomaly, "judge_together", lambda functions, kind, config, models: asked.append(models) or {})
    assert (len(find_all(FUNCTIONS, CONFIG, kind=kind, models=2)) == 0) == shared
    assert asked == ([2] if shared else [])


def test_the_autoencoder_finds_what_the_default_finds() -> None:
    for edit in (Edit.NONE, Edit.FALSE_SHARING):
        found = find(*pair(Setting(MEDOIDS, 4, 10), edit, 1), CONFIG, kind=DetectorKind.AUTOENCODER)
        assert found is not None
        assert found.detector is DetectorKind.AUTOENCODER
        assert found.is_anomalous is (edit is Edit.FALSE_SHARING)


def test_a_function_is_judged_in_half_a_second() -> None:
    tables = pair(Setting(MEDOIDS, 4, 20), Edit.FALSE_SHARING, 1)
    assert [len(table) for table in tables] == [1000, 1000]
    seconds = []
    for _ in range(3):
        start = time.process_time()
        find(*tables, CONFIG)
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.5


@pytest.mark.statistical
def test_false_alarms_are_rare() -> None:
    """Base against base, 36 comparisons of 8 runs a side over 6 programs: no alarm. The test asks for 1 in 1000."""
    alarms = [
        judged(replace(program, calls=15), runs=8, threads=threads, seed=seed).is_anomalous
        for program in PROGRAMS[2:]
        for threads in (1, 4)
        for seed in range(3)
    ]
    assert sum(alarms) == 0


@pytest.mark.statistical
def test_shares_of_anomalous_calls_differ_by_chance_as_often_as_p_says() -> None:
    """Of 60 comparisons of base with itself, p ≤ 0.05 in at most 8 (binomial, 99.5 %)."""
    p = [judged(replace(TICKET, calls=15), runs=8, threads=4, seed=seed).p for seed in range(60)]
    assert sum(each <= 0.05 for each in p) <= 8
    assert min(p) > POLICY.evidence
