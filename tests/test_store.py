"""Experiments survive the way to disk and back; damage is named, never loaded."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from differing import reasons_of
from perfdiff.errors import RecordingError
from perfdiff.records import recorded, store
from perfdiff.records.behaviour import Behaviour, Concurrency, Shape
from perfdiff.records.differences import SkippedFunction
from perfdiff.records.places import Place, PlaceCounts, PlaceExperiment
from perfdiff.records.requests import RequestTimes
from perfdiff.records.schema import (
    Branch,
    Change,
    Edges,
    Environment,
    Experiment,
    Feature,
    FunctionInfo,
    Note,
    Origin,
    Phase,
    Point,
    Revision,
    Run,
    SampleTable,
    Side,
    Source,
    Totals,
    Workload,
)

RUN = Run(0, Phase.TIMED, 0, Side.BASE, 0, 1.5, 2.5, 3.0, 0.25, 0.0, "d0")
SHAPE = Shape(2, 9, "d0", "d1", "d2")
DID = Behaviour(1, SHAPE, SHAPE, {"out": SHAPE}, 27, ("sh",), 1e6)
MET = Concurrency(0.5, 1.5, 1.4)
REQUESTS = RequestTimes("list", 40, {"500": 2}, 1.5e6, None, "GET /x")


@pytest.fixture
def experiment() -> Experiment:
    return Experiment(
        base=Revision("v1", "a" * 40, "one"),
        head=Revision("working tree", None, "two"),
        environment=Environment("cpu", 2, "6.1", None, "gcc 12", False, "tsc", "0.1.0", "2026-01-01T00:00:00"),
        workloads=(Workload("sort", "./sort {n}", ("n",)),),
        points=(Point(0, "sort", {"n": 10.0, "mode": "fast"}, "./sort 10"),),
        functions=(
            FunctionInfo(
                7,
                "f<é>",
                "a.c",
                3,
                "c",
                Change.CHANGED,
                reasons_of(("body changed",)),
                (),
                None,
                Source("a.c", 3, "int f;"),
                frozenset({1, 2}),
            ),
        ),
        skipped=(SkippedFunction("g", "a.c", "constexpr"),),
        runs=(
            Run(
                0,
                Phase.TIMED,
                0,
                Side.BASE,
                0,
                1.5,
                2.5,
                3.0,
                0.25,
                0.0,
                "d0",
                layout=3,
                requests=(REQUESTS,),
                behaviour=DID,
                concurrency=MET,
            ),
        ),
        totals=Totals(np.array([0]), np.array([7]), np.array([2.0]), np.array([3.0]), np.array([1.0]), {"alloc_bytes": np.array([8.0])}),
        edges=Edges(np.array([0]), np.array([0]), np.array([7]), np.array([2.0]), np.array([3.0])),
        notes=(Note("slug", "text"),),
    )


@pytest.fixture
def table() -> SampleTable:
    return SampleTable(
        function=7,
        side=Side.HEAD,
        metrics={"wall_ns": np.array([1.0, np.nan]), "perf::PAGE-FAULTS": np.array([3.0, 4.0])},
        features=(Feature("n", Origin.ARGUMENT), Feature("mode", Origin.ARGUMENT, True, {0: "slow", 1: "fast"})),
        values=np.array([[1.0, 0.0], [np.nan, 1.0]]),
        branches=(Branch("n > 0", 4),),
        executed=np.array([[1.0], [2.0]]),
        taken=np.array([[1.0], [0.0]]),
        run=np.array([0, 0]),
        point=np.array([0, 0]),
        thread=np.array([0, 0]),
        call=np.array([1, 2]),
        weight=np.array([1.0, 1.0]),
    )


def test_an_experiment_comes_back_as_it_was_saved(tmp_path: Path, experiment: Experiment, table: SampleTable) -> None:
    store.save(tmp_path / "x", experiment, [table])
    loaded = store.load(tmp_path / "x")
    bare = {"totals": experiment.totals, "edges": experiment.edges}
    assert replace(loaded, **bare) == experiment
    assert loaded.totals.other["alloc_bytes"].tolist() == [8.0]
    assert loaded.edges.callee.tolist() == [7]
    samples = store.samples(tmp_path / "x", 7, Side.HEAD)
    assert samples is not None
    assert samples.features == table.features
    assert samples.branches == table.branches
    np.testing.assert_array_equal(samples.values, table.values)
    np.testing.assert_array_equal(samples.executed, table.executed)
    assert set(samples.metrics) == set(table.metrics)
    for name, values in table.metrics.items():
        np.testing.assert_array_equal(samples.metrics[name], values)
    assert store.samples(tmp_path / "x", 7, Side.BASE) is None


def test_runs_that_nobody_looked_at_are_loaded(tmp_path: Path, experiment: Experiment) -> None:
    store.save(tmp_path / "x", experiment, [])
    file = tmp_path / "x" / "experiment.json"
    document = json.loads(file.read_text())
    for name in ("behaviour", "concurrency"):
        del document["experiment"]["runs"][0][name]
    file.write_text(json.dumps(document))
    digests = tmp_path / "x" / "digests.json"
    content = json.loads(digests.read_text()) | {file.name: hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()}
    digests.write_text(json.dumps(content))
    [run] = store.load(tmp_path / "x").runs
    assert (run.behaviour, run.concurrency) == (None, None)


@pytest.mark.parametrize("lines", [-1, 2**63])
def test_runs_that_wrote_what_no_machine_can_count_are_damaged(tmp_path: Path, experiment: Experiment, lines: int) -> None:
    [run] = experiment.runs
    hostile = replace(run, behaviour=replace(DID, files={"out": replace(SHAPE, lines=lines)}))
    store.save(tmp_path / "x", replace(experiment, runs=(hostile,)), [])
    with pytest.raises(RecordingError, match="counts of what a run did that no machine can have"):
        store.load(tmp_path / "x")


def test_a_damaged_file_is_named_and_not_loaded(tmp_path: Path, experiment: Experiment, table: SampleTable) -> None:
    store.save(tmp_path / "x", experiment, [table])
    path = tmp_path / "x" / "samples" / "7-head.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(RecordingError, match=r"7-head\.parquet is damaged"):
        store.samples(tmp_path / "x", 7, Side.HEAD)
    (tmp_path / "x" / "experiment.json").write_text('{"schema": "perfdiff.experiment/1", "experiment": {"base": 3}}')
    with pytest.raises(RecordingError, match="damaged"):
        store.load(tmp_path / "x")


@pytest.fixture
def lines(experiment: Experiment) -> PlaceExperiment:
    def counted(places: int) -> PlaceCounts:
        source = tuple(f"line {number}" for number in range(1, places + 1))
        found = tuple(Place("f<é>", "a.c", number, text) for number, text in enumerate(source, 1))
        return PlaceCounts(experiment.points, found, np.arange(places, dtype=np.float64)[:, None], {"n": np.array([10.0])}, {"a.c": source})

    revisions = {Side.BASE: experiment.base, Side.HEAD: experiment.head}
    return PlaceExperiment(revisions, {Side.BASE: counted(2), Side.HEAD: counted(3)}, np.array([-1, 2]))


def test_counts_of_lines_come_back_with_the_experiment(
    tmp_path: Path, experiment: Experiment, table: SampleTable, lines: PlaceExperiment
) -> None:
    store.save(tmp_path / "x", experiment, [table], (), lines)
    store.verify(tmp_path / "x")
    loaded = recorded.load(tmp_path / "x").lines()
    assert loaded is not None
    assert loaded.revisions == lines.revisions
    assert loaded.heads.tolist() == [-1, 2]
    for side in Side:
        assert loaded.sides[side].places == lines.sides[side].places
        assert np.array_equal(loaded.sides[side].counts, lines.sides[side].counts)
    store.save(tmp_path / "y", experiment, [table])
    assert recorded.load(tmp_path / "y").lines() is None


def test_damaged_counts_of_lines_are_told_and_leave_the_rest_readable(
    tmp_path: Path, experiment: Experiment, table: SampleTable, lines: PlaceExperiment
) -> None:
    store.save(tmp_path / "x", experiment, [table], (), lines)
    path = tmp_path / "x" / "lines" / "head" / "places.json"
    path.write_text(path.read_text().replace("line 1", "line 9"))
    found = recorded.load(tmp_path / "x")
    assert found.samples(7, Side.HEAD) is not None
    with pytest.raises(RecordingError, match=r"places\.json is damaged"):
        found.lines()
    with pytest.raises(RecordingError, match=r"places\.json is damaged"):
        store.verify(tmp_path / "x")


@pytest.mark.parametrize("heads", [[-1], [-1, 3], [0.5, 1.0]], ids=["too few", "beyond head", "fractions"])
def test_places_that_are_matched_with_none_there_are_damage(
    tmp_path: Path, experiment: Experiment, lines: PlaceExperiment, heads: list[float]
) -> None:
    store.save(tmp_path / "x", experiment, [], (), replace(lines, heads=np.array(heads)))
    with pytest.raises(RecordingError, match="its two sides do not fit each other"):
        recorded.load(tmp_path / "x").lines()


def test_runs_that_were_recorded_without_a_layout_were_made_in_the_build_itself(tmp_path: Path, experiment: Experiment) -> None:
    store.save(tmp_path / "x", experiment, [])
    path, digests = tmp_path / "x" / "experiment.json", tmp_path / "x" / "digests.json"
    document = json.loads(path.read_text())
    assert document["experiment"]["runs"][0].pop("layout") == 3
    path.write_text(json.dumps(document))
    content = json.loads(digests.read_text()) | {path.name: hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()}
    digests.write_text(json.dumps(content))
    assert [run.layout for run in store.load(tmp_path / "x").runs] == [0]


def test_another_format_version_is_refused(tmp_path: Path, experiment: Experiment) -> None:
    store.save(tmp_path / "x", experiment, [])
    path = tmp_path / "x" / "experiment.json"
    path.write_text(path.read_text().replace("perfdiff.experiment/1", "perfdiff.experiment/9"))
    with pytest.raises(RecordingError, match=r"perfdiff\.experiment/9"):
        store.load(tmp_path / "x")
