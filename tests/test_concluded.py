"""Findings are kept: an experiment is analysed once, as long as neither what was measured nor what decides changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from experiments import BASE, Made, World
from perfdiff import concluded
from perfdiff.analysis import analysis
from perfdiff.analysis.findings import Findings
from perfdiff.concluded import StoredFindings
from perfdiff.config import CompareConfig
from perfdiff.models.distribution import Binomial, Exponential, Normal
from perfdiff.outcome import analysed
from perfdiff.progress import Silent
from perfdiff.records import codec, recorded, store
from perfdiff.records.recorded import RecordedExperiment
from perfdiff.records.schema import Change, Side


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a recorded comparison in which one function got slower."""
    world = World((Made("sort", lambda side, x: (20 if side == BASE else 90) * x["n"], Change.CHANGED),))
    tables = [table for side in Side if (table := world.samples(1, side)) is not None]
    store.save(tmp_path / "experiments" / "one", world.experiment(), tables)
    return tmp_path / "experiments" / "one"


def place(folder: Path, found: RecordedExperiment, config: CompareConfig) -> StoredFindings:
    return concluded.concluded(folder.parents[1], folder, found.experiment, config)


def test_an_experiment_is_analysed_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, config = recorded.load(folder), CompareConfig()
    kept = place(folder, found, config)
    first = analysed(found, config, Silent(), kept)
    monkeypatch.setattr(analysis, "analyse", lambda *_: pytest.fail("analysed again"))
    again = analysed(found, config, Silent(), place(folder, recorded.load(folder), config))
    assert first.findings.verdict == "regression"
    assert repr(replace(again.findings, stages={})) == repr(replace(first.findings, stages={}))  # NaN is not equal to itself
    assert again.samples(1, Side.HEAD) is not None


@pytest.mark.parametrize("change", ["threshold", "name", "calls", "code"])
def test_what_decides_otherwise_is_analysed_anew(folder: Path, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found, config = recorded.load(folder), CompareConfig()
    before = place(folder, found, config)
    match change:
        case "threshold":
            config = replace(config, min_effect=0.5)
        case "name":
            renamed = replace(found.experiment.head, rev="v2")
            found = replace(found, experiment=replace(found.experiment, head=renamed))
        case "calls":
            store.save(folder.with_name("two"), found.experiment, ())
            folder = folder.with_name("two")
        case "code":
            monkeypatch.setattr(concluded, "_code", lambda: "of another version")
    assert place(folder, found, config) != before


@pytest.mark.parametrize("content", ["", "{}", "[1, 2", '{"verdict": 3}'])
def test_damaged_findings_are_made_again(folder: Path, content: str) -> None:
    found, config = recorded.load(folder), CompareConfig()
    kept = place(folder, found, config)
    kept.path.parent.mkdir()
    kept.path.write_text(content)
    assert kept.load() is None
    assert analysed(found, config, Silent(), kept).findings.verdict == "regression"
    assert isinstance(kept.load(), Findings)


def test_findings_that_cannot_be_kept_are_told_all_the_same(folder: Path) -> None:
    found, config = recorded.load(folder), CompareConfig()
    kept = place(folder, found, config)
    kept.path.parent.write_text("no folder")
    assert analysed(found, config, Silent(), kept).findings.verdict == "regression"


@pytest.mark.parametrize("scatter", [Normal(2.0, 0.1), Exponential(3.0), Binomial(0.5, 4), None])
def test_one_of_several_kinds_of_values_comes_back_as_its_own_kind(scatter: Normal | Exponential | Binomial | None) -> None:
    back = codec.decode(tuple[Normal | Exponential | Binomial | None, ...], codec.encode((scatter,)))
    assert back == (scatter,)
