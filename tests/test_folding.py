"""A program of tiny functions, measured as a whole: what is too short and too frequent for a probe is measured as part of its callers."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perfdiff import configuration, pipeline
from perfdiff.analysis.findings import Verdict
from perfdiff.pipeline import Request
from perfdiff.progress import Silent
from perfdiff.records.schema import Change, Side
from perfdiff.report.sentences.catalogue import noted, say
from programs import git

pytestmark = pytest.mark.integration

INTERPRETER = Path(__file__).parent.parent / "fixtures" / "overhead" / "interpreter"
POP = "	return machine->stack[--machine->depth];"
SLOWER = "	for (int i = machine->depth; i < 63; i++)\n		machine->stack[i + 1] = 0;\n" + POP
SIZES = (40_000, 80_000)
POPS = 13  # in each turn of the interpreted loop


def test_a_folded_function_shows_in_its_caller_with_its_time_and_its_counts(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    shutil.copytree(INTERPRETER, folder, copy_function=shutil.copyfile)
    git(folder, "init", "-q")
    for side in ("base", "head"):
        if side == "head":
            source = (folder / "vm.c").read_text()
            assert source.count(POP) == 1
            (folder / "vm.c").write_text(source.replace(POP, SLOWER))
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", side)
        git(folder, "tag", side)
    config = configuration.load(folder, environment={})
    config = replace(config, workloads=(replace(config.workloads[0], parameters={"n": SIZES}, runs=5),))
    outcome = pipeline.compare(
        Request(folder, ("base", "head"), config, tmp_path / "cache", {"PATH": "/usr/local/bin:/usr/bin:/bin"}), Silent()
    )
    findings, experiment = outcome.findings, outcome.experiment
    assert experiment is not None

    guilty, host = findings.functions[:2]
    assert (findings.verdict, guilty.verdict, host.verdict) == (Verdict.REGRESSION,) * 3
    assert [(each.info.name, each.rank) for each in (guilty, host)] == [("pop", 1), ("run", 2)]
    assert say(findings.sentence).startswith(
        "Regression: `pop`, whose calls are too short to be timed alone, makes its caller slower: `run`"
    )
    assert guilty.causes[0].name == "more-work"
    assert say(host.reason) == "its code is unchanged; it is slower because of `pop`"
    assert host.info.change is Change.AFFECTED
    assert [str(reason).partition(" (")[0] for reason in host.info.reasons][-1] == "holds function pop, which changed"
    (skipped,) = (each for each in findings.skipped if each.name == "pop")
    assert skipped.reason == "called, but too often for what a call takes to be timed by itself: its time counts as that of `run`"
    assert "functions-folded" in {note.slug for note in map(noted, findings.notes)}

    (folded,) = experiment.folded
    assert (folded.info.name, folded.hosts) == ("pop", (host.info.id,))
    for calls in (folded.base_calls, folded.head_calls):
        assert calls == {place: POPS * n for place, n in enumerate(SIZES)}
    assert "pop" not in {info.name for info in experiment.functions}
    counts = experiment.counts
    assert counts is not None
    blocks = {
        (function, side): np.mean(
            [counts.other["blocks"][row] for row in np.flatnonzero(counts.function == function) if runs[counts.run[row]] is side]
        )
        for runs in ({run.id: run.side for run in experiment.runs},)
        for function in (folded.info.id, host.info.id)
        for side in Side
    }
    grown = [blocks[function, Side.HEAD] - blocks[function, Side.BASE] for function in (folded.info.id, host.info.id)]
    assert grown[0] > POPS * np.mean(SIZES) * 50
    assert grown[1] == pytest.approx(grown[0], rel=0.02)  # the first block of a call is its caller's
