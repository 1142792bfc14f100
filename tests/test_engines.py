"""The same numbers, to the last digit, whoever does the work: this process, several, or a cluster's workers."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments import Columns, Made, World, same
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.counts.anomaly import find_all
from perfdiff.config import CompareConfig
from perfdiff.engines import tables
from perfdiff.engines.cluster import ClusterEngine
from perfdiff.engines.engine import Engine
from perfdiff.engines.processes import Processes
from perfdiff.engines.serial import Serial
from perfdiff.errors import MeasurementError, RecordingError
from perfdiff.models.detectors.detector import DetectorKind
from perfdiff.records import codec, recorded, store
from perfdiff.records.schema import Change, SampleTable, Side
from simulated_counts import PROGRAMS, Edit, Setting, pair

CONFIG = CompareConfig()


@pytest.fixture(scope="module")
def workers() -> Iterator[ClusterEngine]:
    """Return the engine of a cluster of two worker processes."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=2, processes=True, dashboard_address=":0", host="127.0.0.1") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield ClusterEngine(client, least=0)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an experiment of eight functions, of which one got slower and one faster."""
    factors = {1: 1.4, 5: 0.7}
    functions = [
        Made(
            f"f{number}",
            cost=functools.partial(_cost, factors.get(number, 1.0)),
            change=Change.CHANGED if number in (1, 3, 5) else Change.UNCHANGED,
            calls=lambda side, n: {"": 400},
            inputs=lambda side, n, count, rng: {"n": rng.uniform(n / 2, n, count), "k": rng.integers(0, 3, count)},
        )
        for number in range(8)
    ]
    world = World(tuple(functions), sizes=(1000, 3000), kept=50)
    folder = tmp_path_factory.mktemp("saved") / "experiment"
    found = (table for number in world.ids.values() for side in Side if (table := world.samples(number, side)) is not None)
    store.save(folder, world.experiment(), found)
    return folder


def _cost(factor: float, side: Side, inputs: Columns) -> np.ndarray:
    return np.asarray((500 + 20 * inputs["n"]) * (factor if side is Side.HEAD else 1.0))


def concluded(folder: Path, engine: Engine) -> str:
    found = recorded.load(folder)
    findings = analyse(found.experiment, found.samples, CONFIG, engine=engine)
    return json.dumps(codec.encode(replace(findings, stages={})), default=float, sort_keys=True)


def test_findings_are_the_same_to_the_last_digit_by_every_engine(saved: Path, workers: ClusterEngine) -> None:
    serial = concluded(saved, Serial())
    assert '"regression"' in serial
    assert concluded(saved, Processes(least=0, processes=2)) == serial
    assert concluded(saved, workers) == serial


def test_workers_that_see_no_files_of_ours_are_sent_the_tables(
    saved: Path, workers: ClusterEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = []
    held = tables._in_memory
    monkeypatch.setattr(ClusterEngine, "agree", lambda self, load: False)
    monkeypatch.setattr(tables, "_in_memory", lambda samples, batch: (sent.append(batch), held(samples, batch))[1])
    assert concluded(saved, workers) == concluded(saved, Serial())
    assert sum(len(batch) for batch in sent) == 8


def test_workers_agree_where_they_read_what_is_read_here(workers: ClusterEngine, tmp_path: Path) -> None:
    (tmp_path / "shared").write_text("the same")
    assert workers.agree((tmp_path / "shared").read_text)
    assert not workers.agree(_own_process)


def _own_process() -> str:
    import os

    return str(os.getpid())


def test_autoencoders_of_workers_judge_as_ours_do(workers: ClusterEngine) -> None:
    judged = {1: pair(Setting(PROGRAMS[2], threads=1, runs=8), Edit.LOCALITY, seed=1)}
    here = find_all(judged, CONFIG, kind=DetectorKind.AUTOENCODER)
    assert here[1].is_anomalous
    assert find_all(judged, CONFIG, kind=DetectorKind.AUTOENCODER, engine=workers) == here


@pytest.mark.parametrize("kind", ["serial", "processes", "cluster"])
def test_results_come_in_the_order_of_the_items(kind: str, workers: ClusterEngine) -> None:
    engine: Engine = {"serial": Serial(), "processes": Processes(processes=2), "cluster": workers}[kind]
    assert [*engine.map(_slower_first, range(40), 40)] == [*range(40)]


def _slower_first(item: int, items: int) -> int:
    np.linalg.svd(np.ones((items - item, 60)))
    return item


@pytest.mark.parametrize("kind", ["processes", "cluster"])
def test_what_a_worker_finds_damaged_is_told_as_here(kind: str, workers: ClusterEngine) -> None:
    engine: Engine = {"processes": Processes(processes=2), "cluster": workers}[kind]
    with pytest.raises(RecordingError, match="7 is damaged") as raised:
        list(engine.map(_damaged, range(10)))
    assert raised.value.slug == "damaged-recording"


def _damaged(item: int) -> int:
    if item == 7:
        raise RecordingError("7 is damaged", slug="damaged-recording")
    return item


def test_a_few_functions_wait_for_no_workers() -> None:
    assert isinstance(tables.chosen(None, 20), Serial)
    assert isinstance(tables.chosen(None, 1000), Processes)


def test_tables_in_memory_are_sent_a_batch_at_a_time() -> None:
    world = World((Made("f", cost=same(100.0)), Made("g", cost=same(100.0))), kept=4000)
    loaders = [*tables.with_tables(Processes(), [[1], [2]], recorded.TablesInMemory(_tables(world)))]
    assert [loader(1, Side.BASE) is not None for loader in loaders] == [True, False]
    assert [loader(2, Side.HEAD) is not None for loader in loaders] == [False, True]


def _tables(world: World) -> list[SampleTable]:
    made = [world.samples(number, side) for number in world.ids.values() for side in Side]
    return [replace(table.rows(np.tile(np.arange(len(table)), 4000))) for table in made if table is not None]


def test_a_cluster_that_is_gone_is_an_error_with_a_remedy() -> None:
    distributed = pytest.importorskip("distributed")
    dask = pytest.importorskip("dask")
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        made = distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1", silence_logs=50)
    with made as cluster, distributed.Client(cluster) as client:
        with pytest.raises(MeasurementError, match="compare again") as raised:
            list(ClusterEngine(client).map(_killed, range(2)))
        assert raised.value.slug == "cluster-lost"


def test_workers_that_are_gone_and_come_back_elsewhere_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A nanny starts them again, at other addresses than those that a comparison has looked at."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr("perfdiff.engines.cluster.LOOK_S", 0.2)
    monkeypatch.setattr("perfdiff.engines.cluster.GONE_S", 2.0)
    made = distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1", silence_logs=50)
    with made as cluster, distributed.Client(cluster) as client:
        (before,) = client.nthreads()
        with pytest.raises(MeasurementError, match="its workers are gone") as raised:
            list(ClusterEngine(client, workers=(before,)).map(_killed, range(2)))
        assert raised.value.slug == "cluster-lost"
        client.wait_for_workers(1)
        assert before not in client.nthreads()


def _killed(item: int) -> int:
    import os

    os._exit(1)
    return item
