"""Reports in which every text that a program or its users choose is a name of 150 characters without a place to break it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import findings as made
import trends
from differing import reasons_of
from perfdiff.analysis.acceptances import Acceptance
from perfdiff.analysis.findings import (
    Anomaly,
    BorderShift,
    Cause,
    CauseFigure,
    CoefficientShift,
    CostPrediction,
    CountFinding,
    Findings,
    FunctionFinding,
    MetricFinding,
    Ratio,
    RequestFinding,
    Verdict,
    Vote,
)
from perfdiff.analysis.linegrowth import LineGrowth
from perfdiff.analysis.oddcalls import OddCall, RunErrors
from perfdiff.analysis.trends.findings import TrendFindings
from perfdiff.models.annotation import Condition, CostClass, Operator, Term
from perfdiff.models.detectors.detector import DetectorKind
from perfdiff.records.differences import SkippedFunction
from perfdiff.records.kinds import MachinePart
from perfdiff.records.schema import Feature, Note, Origin, Point, Revision, SampleTable, Side, Source, Workload

LENGTH = 150


def name(what: str) -> str:
    """Return a long name that begins with what it is of; `m` is the widest letter of code's and texts' fonts alike, or near it."""
    return what + "m" * (LENGTH - len(what))


FUNCTION, FILE, FEATURE, WORKLOAD, CODE, HOST = (name(what) for what in ("function", "file", "feature", "workload", "code", "host"))
SAYS = f"{FUNCTION} calls `{CODE}` at {FEATURE} = 15,000"
SLOWER = Ratio(1_331.4, 1_318.0, 1_346.2, 10, 10)


def _metric() -> MetricFinding:
    """Return the time of the guilty function, whose annotation has two scopes over a long feature."""
    wall = made.regressed().metrics["wall_ns"]
    assert wall.head is not None
    above = Condition(FEATURE, Operator.IN, (1.0,), (CODE,))
    scope = replace(wall.head.scopes[0], terms=(Term(38.0), Term(0.912, ((FEATURE, "x"),))), share=0.5)
    fitted = replace(
        wall.head,
        scopes=(replace(scope, conditions=(above,)), replace(scope, conditions=(above.negated(),))),
        features=(FEATURE,),
        twins={FEATURE: (name("twin"),)},
        ranges={FEATURE: (0.0, 30_000.0)},
        typical={FEATURE: 15_000.0},
    )
    return replace(
        wall,
        base=replace(fitted, cost_class=CostClass.CONSTANT),
        head=fitted,
        feature=FEATURE,
        ratio=SLOWER,
        stratum=f"{FEATURE} > 12",
        machines={HOST: SLOWER, name("other"): SLOWER},
        machines_q=1e-9,
        coefficients=(CoefficientShift(FEATURE, 0.0, 0.912, 0.88, 0.94, 1.2e-9),),
        predictions=(CostPrediction({FEATURE: 15_000.0, name("depth"): 3.0}, 41.0, 13_718.0, False),),
        borders=(BorderShift(FEATURE, 10.0, 20.0),),
    )


def _anomaly(point: int) -> Anomaly:
    votes = (Vote(name("counter"), 0.9, 1.0, 2.0, SLOWER),)
    calls = (OddCall(1, point, 0, 7, {FEATURE: 3.0}, 12.0, name("counter")),)
    errors = tuple(RunErrors(run, point, side, 0.1, 0.2 + run, 0.5) for run, side in enumerate(Side, 1))
    return Anomaly(DetectorKind.AUTOENCODER, 1.5, 1.2, 1.3, 0.01, 0.97, 10, 10, 1e-6, True, None, votes, calls, errors)


def _named(finding: FunctionFinding, point: Point) -> FunctionFinding:
    """Return a finding of which all names, the lines of its source and its point are long."""
    text = f"static void {FUNCTION}(void)\n{{\n\t{CODE}();\n}}\n"
    info = replace(
        finding.info,
        name=f"{FUNCTION}{finding.info.id}",
        file=FILE,
        reasons=reasons_of((SAYS,)),
        base=Source(FILE, 42, text),
        head=Source(FILE, 42, text.replace("();", "(1);")),
    )
    metrics = {metric: replace(of, feature=FEATURE) for metric, of in finding.metrics.items()}
    return replace(finding, info=info, metrics=metrics, happened=made.worded(SAYS), reason=made.worded(SAYS))


def _regressed(point: Point) -> FunctionFinding:
    finding = _named(made.regressed(), point)
    cause = Cause(name("cause"), made.worded(SAYS), (CauseFigure(name("counter"), 1.0, 15_000.0),))
    counted = CountFinding(name("counter"), point, 1.0, 15_000.0, SLOWER, True, True, False, 1.0, 1.0)
    return replace(
        finding,
        metrics={"self_ns": replace(_metric(), metric="self_ns"), "wall_ns": _metric(), "alloc_bytes": finding.metrics["alloc_bytes"]},
        causes=(cause, cause),
        chain=(made.worded(SAYS), made.worded(SAYS)),
        lines=(LineGrowth(FUNCTION, FILE, 44, CODE, point.label, 1.0, 2e9, FEATURE, f"2·{FEATURE}", f"{FEATURE}²", True, True),),
        line_counts={44: 450_015_000.0},
        counts={counted.counter: counted},
        anomaly=_anomaly(point.id),
        machines_say=made.worded(f"slower on {HOST}"),
    )


def findings() -> Findings:
    """Return a regression with one function of every kind, several machines, requests, an accepted function and notes, all long."""
    whole = made.findings()
    points = tuple(Point(number, WORKLOAD, {FEATURE: CODE}, CODE) for number in range(3))
    accepted = Acceptance(FUNCTION, FILE, "wall_ns", 1.5, 1.4, 1.6, SAYS)
    functions = [_named(finding, points[0]) for finding in whole.functions[1:]]
    environment = replace(
        whole.environment, cpu=name("cpu"), kernel=name("kernel"), compiler=name("cc"), flags=(name("-O"),), libraries=(name("lib"),) * 5
    )
    return replace(
        whole,
        sentence=made.worded(SAYS),
        base=Revision(name("branch"), "a1b2c3d4e5f60718293a4b5c6d7e8f9001122334", name("summary")),
        head=Revision(name("topic"), "b7e1c0ffee60718293a4b5c6d7e8f90011223344", name("summary")),
        environment=environment,
        workloads=(Workload(WORKLOAD, CODE, (FEATURE,)),),
        points=points,
        end_to_end=tuple(
            replace(end, point=point, disagree=True, machines={HOST: SLOWER}) for end, point in zip(whole.end_to_end, points, strict=True)
        ),
        functions=(_regressed(points[0]), replace(functions[0], accepted=(accepted,)), *functions[1:]),
        skipped=tuple(SkippedFunction(FUNCTION, f"{name(f'folder{number % 9}')}/{FILE}", SAYS) for number in range(30)),
        notes=(Note("output-differs", SAYS), Note(name("slug"), SAYS)),
        requests=tuple(RequestFinding(point, name("request"), 30, 0, 1e6, 2e6, 3e6, 4e6, SLOWER) for point in points),
        machines=tuple(MachinePart(name(host), 1, environment, 60, 59) for host in ("host", "other")),
    )


def unchanged() -> Findings:
    """Return an answer without a regression, which says in front what was measured."""
    whole = findings()
    return replace(whole, verdict=Verdict.UNCHANGED, functions=whole.functions[1:])


def samples(function: int, side: Side) -> SampleTable | None:
    """Return calls whose features, categories among them, have long names."""
    table = made.Samples(made.findings())(function, side)
    if table is None:
        return None
    codes = np.arange(len(table)) % 2
    named = (Feature(FEATURE, Origin.ARGUMENT), Feature(name("kind"), Origin.ARGUMENT, True, {0: CODE, 1: name("other")}))
    return replace(table, features=named, values=np.column_stack([table.values[:, 0], codes]))


def grown() -> TrendFindings:
    """Return trends of two revisions in which all names are long."""
    return trends.hostile(FUNCTION)
