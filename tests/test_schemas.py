"""The JSON Schemas of `docs/schemas` hold for what perfdiff writes, and name every key of it."""

from __future__ import annotations

import copy
import json
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given

import findings as made
import hostile_texts
from experiments import HEAD, Made, World
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.claims import claim
from perfdiff.analysis.findings import (
    Acceptance,
    Anomaly,
    BorderShift,
    CountFinding,
    Findings,
    ModeShift,
    Ratio,
    Vote,
)
from perfdiff.analysis.kernel_use import KernelCaller, KernelFinding, KernelPoint, KernelRequest
from perfdiff.analysis.lasting import Keeper, LastingFinding, LastingPoint
from perfdiff.analysis.oddcalls import OddCall, RunErrors
from perfdiff.analysis.peaks import MemoryLine, MemoryStanding
from perfdiff.analysis.witnessed import Amount, BehaviourDifference, BehaviourDifferenceKind, OutputAmounts, PointBehaviour, SideBehaviour
from perfdiff.config import CompareConfig
from perfdiff.models.detectors.detector import DetectorKind
from perfdiff.records.behaviour import Concurrency
from perfdiff.records.kinds import MachinePart
from perfdiff.records.schema import Change, Point, Side
from perfdiff.report import annotations, json_report
from perfdiff.report.document import build
from test_annotate import linear, logs, perfdiff
from test_report_annotations import SCOPED, SINGLE

DOCS = Path(__file__).parent.parent / "docs"
NAMES = ("report-1", "annotation-1", "check-1", "check-trends-1", "sweep-1", "trends-1", "prediction-1", "production-1", "search-1")


def schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DOCS / "schemas" / f"{name}.json").read_text(encoding="utf-8"))
    return found


def closed(part: Any) -> Any:
    """Return a schema that admits no key but those it names: what it does not know of was not documented."""
    if isinstance(part, list):
        return [closed(item) for item in part]
    if not isinstance(part, dict):
        return part
    inner = {key: closed(item) for key, item in part.items()}
    return {**inner, "additionalProperties": False} if isinstance(part.get("properties"), dict) and part.get("type") == "object" else inner


VALIDATORS = {name: jsonschema.Draft202012Validator(closed(schema(name))) for name in NAMES}


def rendered(findings: Findings) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json_report.render(build(findings)))
    return found


def full() -> Findings:
    """Return findings in which nothing that can be absent is."""
    first = made.regressed()
    ratio = Ratio(3.0, 2.9, 3.1, 10, 10)
    wall = replace(
        first.metrics["wall_ns"],
        modes=(ModeShift(1.0, 0.1, 0.2, 0.05, 0.15, 0.01),),
        borders=(BorderShift("n", 1.0, 2.0),),
        points={0: ratio},
        machines={"lab-1": ratio},
        machines_q=0.01,
    )
    anomaly = Anomaly(
        detector=next(iter(DetectorKind)),
        threshold=1.0,
        normal=0.1,
        quantile=0.5,
        anomalous_base=0.01,
        anomalous_head=0.9,
        runs_base=6,
        runs_head=6,
        p=0.001,
        is_anomalous=True,
        open=None,
        votes=(Vote("blocks", 0.9, 1.0, 2.0, ratio),),
        calls=(OddCall(1, 0, 0, 7, {"n": 3.0}, 2.0, "blocks"),),
        errors=(RunErrors(1, 0, Side.BASE, 0.1, 0.2, 0.01),),
    )
    count = CountFinding("blocks", Point(0, "sort", {}, "./sort"), 10.0, 30.0, ratio, True, True, False, 1.0, math.nan)
    accepted = Acceptance("insert", "src/list.c", "wall_ns", 331.4, 318.0, 346.2, "lists are short")
    function = replace(first, metrics={**first.metrics, "wall_ns": wall}, anomaly=anomaly, counts={"blocks": count}, accepted=(accepted,))
    whole = made.findings(functions=(function, *made.others()))
    end = replace(whole.end_to_end[0], machines={"lab-1": ratio}, disagree=True)
    written = OutputAmounts(5, Amount(1, 2), Amount(9, 18))
    side = SideBehaviour(5, {0: 5}, written, written, {"out": written}, Amount(0, 5), 1, ("sh",), 1e6, Concurrency(0.5, 1.5, 1.2))
    behaviour = PointBehaviour(
        whole.points[0],
        side,
        side,
        (BehaviourDifference(BehaviourDifferenceKind.ERRORS, claim("prints-in-another-order", where=claim("on-standard-error"))),),
        checked=True,
    )
    part = MachinePart("lab-1", 1, whole.environment, 10, 10)
    point = LastingPoint(whole.points[0], 0, 960, 960, 960, MemoryStanding.MORE)
    keeper = Keeper("insert", "src/list.c", 40, "node = malloc(96);", 0, 960, 0, 10)
    lasting = LastingFinding((point,), (MemoryLine("sort", "n", (0.0, 0.0), (0.0, 96.0)),), (keeper,), ("sort n=3",))
    asked = KernelPoint(whole.points[0], KernelRequest.READS, 5, 1005, 1000, 1000, MemoryStanding.MORE)
    line = (KernelRequest.READS, lasting.lines[0])
    kernel = KernelFinding((asked,), (line,), (KernelCaller("insert", "read", 0.0, 1000.0),))
    whole = replace(whole, lasting=lasting, kernel=kernel)
    return replace(whole, end_to_end=(end, *whole.end_to_end[1:]), machines=(part,), behaviour=(behaviour,))


def analysed() -> Findings:
    """Return what the analysis finds of a made-up program with one change."""

    def cost(side: Side, inputs: Any) -> np.ndarray:
        return np.asarray(inputs["n"] * (3.0 if side is HEAD else 1.0))

    world = World((Made("slow", cost, Change.CHANGED), Made("same", lambda side, inputs: inputs["n"])))
    return analyse(world.experiment(), world.samples, CompareConfig())


@pytest.fixture
def standing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand outside of any checkout, with a cache and signal handlers of the test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PERFDIFF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_schemas(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_told_of_in_the_documentation(name: str) -> None:
    assert f"schemas/{name}.json" in (DOCS / "report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("findings", [made.findings, made.hostile, full, analysed], ids=lambda findings: str(findings.__name__))
def test_reports_are_as_their_schema_says(findings: Callable[[], Findings]) -> None:
    VALIDATORS["report-1"].validate(rendered(findings()))


@hostile_texts.few
@given(hostile_texts.findings())
def test_reports_with_any_texts_are_as_their_schema_says(findings: Findings) -> None:
    VALIDATORS["report-1"].validate(rendered(findings))


def test_numbers_that_are_not_finite_are_null_where_the_schema_lets_them() -> None:
    finding = made.regressed()
    nothing = Ratio(math.nan, math.nan, math.inf, 10, 10)
    wall = replace(finding.metrics["wall_ns"], ratio=nothing, overall=nothing, mix=nothing, q=math.nan, floor=math.inf, crosses=math.nan)
    bad = replace(finding, metrics={"wall_ns": wall}, share=math.nan, extra_ns=math.nan, calls_base=math.nan)
    VALIDATORS["report-1"].validate(rendered(replace(made.findings(functions=(bad,)), overhead=math.nan)))


def test_annotations_are_as_their_schema_says() -> None:
    VALIDATORS["annotation-1"].validate(json.loads(json.dumps(annotations.json_document([SINGLE, SCOPED]))))


@pytest.mark.usefixtures("standing")
def test_what_the_commands_write_is_as_the_schemas_say(tmp_path: Path) -> None:
    base = logs(tmp_path / "base", linear(1.0), seed=1)
    head = logs(tmp_path / "head", linear(3.0), seed=2, functions=("f", "g"))
    assert perfdiff("annotate", base, "-q", "-o", "annotations") == 0
    perfdiff("annotate", base, "-q", "--format", "json", "-o", "annotation.json")
    assert perfdiff("compare", base, head, "-q", "-o", "report.json") == 1
    assert perfdiff("check", "annotations", head, "-q", "-o", "check.json") == 1
    for name in ("report", "annotation", "check"):
        VALIDATORS[f"{name}-1"].validate(json.loads(Path(f"{name}.json").read_text(encoding="utf-8")))


def places(document: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the way to every key of a document."""
    items = document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    for key, item in items:
        if isinstance(key, str):
            yield (*path, key)
        yield from places(item, (*path, key))


def test_a_report_without_one_of_its_keys_breaks_the_schema() -> None:
    whole = rendered(replace(full(), functions=full().functions[:1]))
    free = {
        "parameters",
        "metrics",
        "counts",
        "inputs",
        "ranges",
        "twins",
        "points",
        "machines",
        "exit_codes",
        "files",
    }  # whose keys are names of the program or of metrics
    for path in places(whole):
        if len(path) > 1 and path[-2] in free:
            continue
        broken = copy.deepcopy(whole)
        holder = broken
        for key in path[:-1]:
            holder = holder[key]
        del holder[path[-1]]  # type: ignore[arg-type]
        assert not VALIDATORS["report-1"].is_valid(broken), path


@pytest.mark.parametrize(("key", "value"), [("verdict", "worse"), ("schema", "perfdiff.report/2"), ("functions", {}), ("confidence", None)])
def test_wrong_values_break_the_schema(key: str, value: object) -> None:
    assert not VALIDATORS["report-1"].is_valid({**rendered(made.findings()), key: value})
