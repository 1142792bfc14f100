"""Findings built by hand for the tests of reports: one function of every verdict, and names that strangers would choose."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from differing import reasons_of
from perfdiff.analysis.callgraph import CallCost, CallEdge, CallGraph
from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.findings import (
    Cause,
    CauseFigure,
    CoefficientShift,
    CostPrediction,
    EndToEnd,
    Findings,
    FunctionFinding,
    MetricFinding,
    Ratio,
    Verdict,
)
from perfdiff.analysis.linegrowth import LineGrowth
from perfdiff.models.annotation import Annotation, CostClass, Scope, Term
from perfdiff.records.differences import ChangeReason, ReasonKind, SkippedFunction
from perfdiff.records.schema import (
    Branch,
    Change,
    Environment,
    Feature,
    FunctionInfo,
    Note,
    Origin,
    Point,
    Revision,
    SampleTable,
    Side,
    Source,
    Workload,
)

HOSTILE = "<script>alert(1)</script>\x1b[31m|`[x](javascript:alert(2))\n@everyone\u202e"

INSERT_BASE = """static void insert(struct list *list, int key)
{
    struct node *node = node_new(key);

    if (!list->tail)
        list->head = node;
    else
        list->tail->next = node;
    list->tail = node;
    list->size++;
}
"""
INSERT_HEAD = """static void insert(struct list *list, int key)
{
    struct node *node = node_new(key);
    struct node **place = &list->head;

    while (*place)
        place = &(*place)->next;
    *place = node;
    list->size++;
}
"""


def worded(text: str) -> Claim:
    """Return a claim that says just that."""
    return claim("headline", happened=text, cause=None, also=())


def annotation(
    metric: str, cost_class: CostClass, terms: tuple[Term, ...], ranges: dict[str, tuple[float, float]], sigma: float
) -> Annotation:
    """Return an annotation of one scope."""
    return Annotation(
        function="f",
        metric=metric,
        cost_class=cost_class,
        scopes=(Scope(cost_class, terms, sigma, 1.0, 900),),
        features=tuple(ranges),
        twins={"list->size": ("n",)} if "list->size" in ranges else {},
        ranges=ranges,
        r2=0.9931,
        cv_r2=0.9904,
        n=900,
        typical={name: (low + high) / 2 for name, (low, high) in ranges.items()},
    )


def regressed() -> FunctionFinding:
    """Return the guilty function: an append that walks to the tail."""
    ranges = {"list->size": (0.0, 30_000.0)}
    wall = MetricFinding(
        metric="wall_ns",
        base=annotation("wall_ns", CostClass.CONSTANT, (Term(41.0),), ranges, 6.0),
        head=annotation("wall_ns", CostClass.LINEAR, (Term(38.0), Term(0.912, (("list->size", "x"),))), ranges, 85.0),
        feature="list->size",
        ratio=Ratio(331.4, 318.0, 346.2, 10, 10),
        stratum="",
        overall=Ratio(331.4, 318.0, 346.2, 10, 10),
        q=1.2e-9,
        mix=Ratio(1.0, 0.99, 1.01, 10, 10),
        calls=Ratio(1.0, 1.0, 1.0, 10, 10),
        total=Ratio(331.0, 317.0, 346.0, 10, 10),
        floor=0.031,
        coefficients=(
            CoefficientShift("1", 41.0, 38.0, -9.0, 3.0, 0.31),
            CoefficientShift("list->size", 0.0, 0.912, 0.88, 0.94, 1.2e-9),
        ),
        predictions=(
            CostPrediction({"list->size": 15_000.0}, 41.0, 13_718.0, False),
            CostPrediction({"list->size": 28_500.0}, 41.0, 26_030.0, False),
            CostPrediction({"list->size": 300_000.0}, 41.0, 273_638.0, True),
        ),
        crosses=48.0,
        class_changed=True,
    )
    allocated = MetricFinding(
        metric="alloc_bytes",
        base=annotation("alloc_bytes", CostClass.CONSTANT, (Term(32.0),), ranges, 0.0),
        head=annotation("alloc_bytes", CostClass.CONSTANT, (Term(32.0),), ranges, 0.0),
        feature=None,
        ratio=Ratio(1.0, 1.0, 1.0, 10, 10),
        stratum="",
        overall=None,
        q=1.0,
        mix=None,
        calls=None,
        total=None,
        floor=0.0,
    )
    return FunctionFinding(
        info=FunctionInfo(
            id=1,
            name="insert",
            file="src/list.c",
            line=42,
            language="c",
            change=Change.CHANGED,
            reasons=reasons_of(("body changed",)),
            base=Source("src/list.c", 42, INSERT_BASE),
            head=Source("src/list.c", 44, INSERT_HEAD),
        ),
        verdict=Verdict.REGRESSION,
        reason=worded("the interval lies beyond the threshold of 5 %"),
        rank=1,
        calls_base=30_000.0,
        calls_head=30_000.0,
        extra_ns=4.1e8,
        share=0.97,
        metrics={"wall_ns": wall, "alloc_bytes": allocated},
        causes=(
            Cause(
                "more-work",
                worded("The new loop `while (*place)` (src/list.c:49) runs 15,000 times a call at list->size = 15,000; base has no loop."),
                (CauseFigure("branches taken", 0.0, 15_000.0), CauseFigure("wall_ns", 41.0, 13_718.0)),
            ),
        ),
        chain=(
            worded("insert (src/list.c:44) changed: its loop walks the list"),
            worded("each of 30,000 calls a run pays it"),
            worded("main loses 410 ms a run"),
        ),
        happened=worded("insert costs ×331 at list->size = 28,500: constant became linear."),
        lines=(
            LineGrowth("insert", "src/list.c", 49, "while (*place)", "lists n=30000", 0.0, 450_015_000.0, "n", "", "0.5·n²", True, True),
            LineGrowth("node_new", "src/node.c", 7, "check(pool);", "lists n=30000", 30_000.0, 60_000.0, "n", "n", "2·n"),
        ),
        line_counts={44: 30_000.0, 46: 30_000.0, 49: 450_015_000.0, 50: 449_985_000.0, 51: 30_000.0},
    )


def plain(number: int, name: str, verdict: Verdict, change: Change, *, ratio: Ratio | None, reason: str) -> FunctionFinding:
    """Return a finding whose time follows `n` linearly on both sides."""
    ranges = {"n": (1_000.0, 30_000.0)}
    factor = ratio.value if ratio else 1.0
    base = (
        None if change is Change.ADDED else annotation("wall_ns", CostClass.LINEAR, (Term(250.0), Term(8.0, (("n", "x"),))), ranges, 400.0)
    )
    head = (
        None
        if change is Change.REMOVED
        else annotation("wall_ns", CostClass.LINEAR, (Term(250.0), Term(8.0 * factor, (("n", "x"),))), ranges, 400.0)
    )
    wall = MetricFinding(
        metric="wall_ns",
        base=base,
        head=head,
        feature="n",
        ratio=ratio,
        stratum="",
        overall=ratio,
        q=0.4 if verdict in (Verdict.UNCHANGED, Verdict.INCONCLUSIVE) else 0.0004,
        mix=None,
        calls=None,
        total=None,
        floor=0.18 if verdict is Verdict.INCONCLUSIVE else 0.024,
        predictions=(CostPrediction({"n": 28_000.0}, 224_250.0, 224_250.0 * factor, False),) if base and head else (),
    )
    return FunctionFinding(
        info=FunctionInfo(
            number, name, "src/table.c", 100 + number, "c", change, (ChangeReason(ReasonKind.ONE_SIDED, change.value),), (), None, None
        ),
        verdict=verdict,
        reason=worded(reason),
        rank=None,
        calls_base=None if change is Change.ADDED else 12.0,
        calls_head=None if change is Change.REMOVED else 12.0,
        extra_ns=0.0,
        share=None,
        metrics={"wall_ns": wall},
        causes=(),
        chain=(),
        happened=worded(f"{name}: {verdict.value}."),
    )


def others() -> tuple[FunctionFinding, ...]:
    """Return one function of every other kind."""
    faster, same, open_ = Ratio(0.612, 0.59, 0.64, 10, 10), Ratio(1.004, 0.982, 1.021, 10, 10), Ratio(1.09, 0.88, 1.31, 6, 6)
    disagree = "the runs disagree: 4 of 6 are slower, 2 faster"
    return (
        plain(2, "table_find", Verdict.IMPROVEMENT, Change.CHANGED, ratio=faster, reason="faster at equal inputs"),
        plain(3, "table_hash", Verdict.UNCHANGED, Change.AFFECTED, ratio=same, reason="the interval holds 1"),
        plain(4, "table_grow", Verdict.INCONCLUSIVE, Change.CALLER, ratio=open_, reason=disagree),
        plain(5, "table_check", Verdict.UNCHANGED, Change.ADDED, ratio=None, reason="only in head"),
        plain(6, "table_cache", Verdict.UNCHANGED, Change.REMOVED, ratio=None, reason="only in base"),
    )


def findings(verdict: Verdict = Verdict.REGRESSION, functions: tuple[FunctionFinding, ...] | None = None) -> Findings:
    """Return a whole conclusion; without `functions`, a regression with one function of every kind."""
    points = tuple(Point(i, "sort", {"n": n}, f"./bench/sort {n}") for i, n in enumerate((1_000, 10_000, 30_000)))
    return Findings(
        verdict=verdict,
        sentence=worded("insert (src/list.c:42) costs ×331 a call at list->size = 28,500; its cost grew from constant to linear."),
        base=Revision("v1.4", "a1b2c3d4e5f60718293a4b5c6d7e8f9001122334", "Release 1.4"),
        head=Revision("HEAD", "b7e1c0ffee60718293a4b5c6d7e8f90011223344", "Keep the list without a tail pointer"),
        environment=Environment(
            "AMD EPYC 7B13",
            2,
            "Linux 6.1.0",
            "performance",
            "gcc 12.2.0 -O2",
            False,
            "invariant TSC",
            "perfdiff 0.1.0",
            "2026-01-05T10:00:00Z",
        ),
        workloads=(Workload("sort", "./bench/sort {n}", ("n",)),),
        points=points,
        end_to_end=tuple(
            EndToEnd(point, 2.1e6 * (i + 1), 8.4e6 * (i + 1), Ratio(4.0, 3.9, 4.1, 10, 10), 0.008) for i, point in enumerate(points)
        ),
        functions=(regressed(), *others()) if functions is None else functions,
        skipped=(
            SkippedFunction("list_capacity", "src/list.h", "constexpr functions cannot carry a probe"),
            SkippedFunction("usage", "src/main.c", "no workload calls it"),
            SkippedFunction("parse_flags", "src/main.c", "no workload calls it"),
        ),
        notes=(Note("output-differs", "sort n=30000 printed something else in head than in base."),),
        overhead=0.009,
        calls=calls(),
    )


def calls() -> CallGraph:
    """Return calls of `insert` and of `table_find` by `table_grow`, which starts the thread; `table_find` saves a little."""
    return CallGraph(
        costs={
            4: CallCost(2.0e6, 2.1e6, 9.3e6, 4.188e8),
            1: CallCost(1.2e6, 4.112e8, 1.2e6, 4.112e8),
            2: CallCost(6.1e6, 5.5e6, 6.1e6, 5.5e6),
        },
        edges=(
            CallEdge(None, 4, 3.0, 3.0, 9.3e6, 4.188e8),
            CallEdge(4, 1, 30_000.0, 30_000.0, 1.2e6, 4.112e8),
            CallEdge(4, 2, 12.0, 12.0, 6.1e6, 5.5e6),
        ),
    )


def hostile() -> Findings:
    """Return findings in which every text a stranger can choose is hostile."""
    whole = findings()
    first = whole.functions[0]
    info = replace(first.info, name=HOSTILE, file=HOSTILE, reasons=reasons_of((HOSTILE,)), head=Source(HOSTILE, 44, INSERT_HEAD + HOSTILE))
    wall = replace(first.metrics["wall_ns"], stratum=HOSTILE, feature=HOSTILE)
    causes = (Cause(HOSTILE, worded(HOSTILE), (CauseFigure(HOSTILE, 1.0, 2.0),)),)
    lines = (LineGrowth(HOSTILE, HOSTILE, 49, HOSTILE, HOSTILE, 1.0, 2.0, HOSTILE, HOSTILE, HOSTILE),)
    bad = replace(
        first,
        info=info,
        happened=worded(HOSTILE),
        reason=worded(HOSTILE),
        causes=causes,
        chain=(worded(HOSTILE), worded(HOSTILE)),
        metrics={"wall_ns": wall},
        lines=lines,
    )
    return replace(
        whole,
        sentence=worded(HOSTILE),
        base=Revision(HOSTILE, "a1b2c3d4e5", HOSTILE),
        workloads=(Workload(HOSTILE, HOSTILE),),
        functions=(bad, *whole.functions[1:]),
        skipped=(SkippedFunction(HOSTILE, HOSTILE, HOSTILE),),
        notes=(Note("output-differs", HOSTILE),),
    )


def many(count: int) -> Findings:
    """Return findings of `count` regressed functions with long sources."""
    source = "".join(f"    total += weight[{i}] * value[{i}];\n" for i in range(120))
    functions = []
    for number in range(1, count + 1):
        name = f"accumulate_weighted_values_of_block_{number}"
        info = replace(
            regressed().info,
            id=number,
            name=name,
            base=Source("src/block.c", 10, f"void {name}(void)\n{{\n{source}}}\n"),
            head=Source("src/block.c", 10, f"void {name}(void)\n{{\n{source.replace('+=', '-=')}}}\n"),
        )
        functions.append(replace(regressed(), info=info, rank=number))
    return findings(functions=tuple(functions))


@dataclass(frozen=True, slots=True)
class Samples:
    """A loader of made-up calls that follow the annotations of `findings`, with 10 % of noise."""

    findings: Findings
    calls: int = 1_000

    def __call__(self, function: int, side: Side) -> SampleTable | None:
        metrics = next(finding.metrics for finding in self.findings.functions if finding.info.id == function)
        annotations = {name: metric.base if side is Side.BASE else metric.head for name, metric in metrics.items()}
        if any(fitted is None for fitted in annotations.values()):
            return None
        rng = np.random.default_rng((function, side is Side.HEAD))
        size = rng.uniform(10.0, 30_000.0, self.calls)
        noise = rng.lognormal(0.0, 0.1, self.calls)
        zeros = np.zeros(self.calls, dtype=np.int64)
        return SampleTable(
            function=function,
            side=side,
            metrics={name: fitted.predict({"list->size": size, "n": size}) * noise for name, fitted in annotations.items() if fitted},
            features=(Feature("list->size", Origin.FIELD), Feature("n", Origin.ARGUMENT)),
            values=np.column_stack([size, size]),
            branches=(Branch("while (*place)", 49),),
            executed=np.ones((self.calls, 1)),
            taken=np.ones((self.calls, 1)),
            run=rng.integers(0, 10, self.calls),
            point=zeros,
            thread=zeros,
            call=np.arange(self.calls),
            weight=np.ones(self.calls),
        )
