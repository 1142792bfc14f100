"""What counted runs say, in words and tables: work apart from time, counters of a call, calls whose counters are not like base's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from perfdiff import units
from perfdiff.analysis.counts.own_work import work_finding
from perfdiff.analysis.findings import Anomaly, CountFinding, Findings, FunctionFinding
from perfdiff.analysis.oddcalls import OddCall
from perfdiff.models.detectors.detector import DetectorKind
from perfdiff.models.workcounter import work_counters
from perfdiff.records.schema import FunctionInfo, Point, Side
from perfdiff.report import wording
from perfdiff.report.blocks import Block, Cell, Column, Items, Plot, PlotSeries, Table

# More names than this in one list are no longer read.
_NAMED = 8
_INPUTS = 4  # of a call, those nearest to it
_SEES = (
    "counts are those of the project's own code, and do not see what waits for memory, other threads or the system: time decides what is "
    "slower, counts say why"
)
_SEES_BYTECODE = (
    "counts are those of the project's own code, and of its calls of other code by name; they do not see what such a call does, nor what "
    "waits: time decides what is slower, counts say why"
)
_SEES_LINES = (
    "counts are those of lines of the project's own code, and do not see what a line does with large values, nor what waits: time decides "
    "what is slower, counts say why"
)
_DISTANCE = {
    DetectorKind.AUTOENCODER: "reconstruction error of an autoencoder",
    DetectorKind.MAHALANOBIS: "Mahalanobis distance",
    DetectorKind.PCA: "reconstruction error of principal components",
    DetectorKind.ISOLATION: "score of an isolation forest",
    DetectorKind.ROBUST_Z: "largest robust z",
}


def work(findings: Findings) -> Items | None:
    """Return how the work of changed functions differs, or None where that of none was counted."""
    counted = [(finding.info, count) for finding in findings.functions if (count := work_finding(finding.counts)) is not None]
    suspects = [(info, count) for info, count in counted if info.change.is_suspect]
    if not suspects:
        return None
    counters = work_counters({count.counter for _, count in counted})
    what = " and ".join(counter.plain for counter in counters)
    differing = [(info, count) for info, count in suspects if count.grew or count.shrank]
    texts = [_work(*work_of_function) for work_of_function in differing[:_NAMED]]
    if len(differing) > _NAMED:
        texts.append(f"and {len(differing) - _NAMED} more")
    alike = len(suspects) - len(differing)
    if alike:
        exact = all(count.exact for _, count in suspects if not (count.grew or count.shrank))
        same = f"exactly as many {what} a call" if exact else f"no clearly different number of {what} a call"
        texts.append(f"{wording.plural(alike, 'changed function')}{' besides' if differing else ''}: {same}")
    unbounded = [counter.metric for counter in counters if not counter.is_bounded]
    sees = _SEES_LINES if "lines" in unbounded else _SEES_BYTECODE if unbounded else _SEES
    return Items(f"Work, counted in {what}", (*texts, sees))


def _work(info: FunctionInfo, count: CountFinding) -> str:
    numbers = f"{units.count(count.head)} a call, {units.count(count.base)} before"
    return f"{info.name}: {numbers} ({wording.interval(count.ratio, count.counter)}; {count.point.label})"


def count_tables(finding: FunctionFinding) -> Iterator[Table]:
    """Yield the table of a function's counters, base and head, each at the point where they differ most."""
    rows = tuple(_row(count) for count in finding.counts.values() if count.base or count.head)
    if rows:
        columns = (
            Column("counter"),
            Column("base", right=True),
            Column("head", right=True),
            Column("ratio", right=True),
            Column("where they differ most", minor=True),
        )
        yield Table("Counts of a call, without probed callees'", columns, rows)


def _row(count: CountFinding) -> tuple[Cell, ...]:
    return (
        Cell(wording.counter_says(count.counter)),
        Cell(wording.amount(count.counter, count.base)),
        Cell(wording.amount(count.counter, count.head)),
        Cell(wording.interval(count.ratio, count.counter)),
        Cell(count.point.label),
    )


def anomaly_blocks(anomaly: Anomaly, points: Mapping[int, Point]) -> Iterator[Block]:
    """Yield what a detector says of head's calls: how many are not like base's, by which counters, which, and the errors of all runs."""
    votes = tuple(
        (
            Cell(wording.counter_says(vote.counter)),
            Cell(wording.percent(vote.share)),
            Cell(wording.amount(vote.counter, vote.base)),
            Cell(wording.amount(vote.counter, vote.head)),
            Cell(wording.interval(vote.ratio, vote.counter)),
        )
        for vote in anomaly.votes
    )
    if votes:
        columns = (
            Column("counter that differs most"),
            Column("of these calls", right=True),
            Column("base", right=True),
            Column("head", right=True),
            Column("ratio", right=True),
        )
        yield Table(_share(anomaly), columns, votes)
    if anomaly.calls:
        yield Items("Calls of head least like base's", tuple(_call(call, points[call.point]) for call in anomaly.calls))
    yield _errors(anomaly)


def _share(anomaly: Anomaly) -> str:
    shares = f"{wording.percent(anomaly.anomalous_head)} of head's, {wording.percent(anomaly.anomalous_base)} of base's"
    return f"Calls whose counters are not like base's: {shares}"


def _call(call: OddCall, point: Point) -> str:
    values = {**call.inputs, **{name: point.parameters[name] for name in call.inputs if name in point.parameters}}
    shown = [f"{name} = {value if isinstance(value, str) else units.count(value)}" for name, value in values.items()]
    inputs = ", ".join([*shown[:_INPUTS], *(["…"] if len(shown) > _INPUTS else [])])
    where = f"call {call.call} of thread {call.thread} in {point.label}{f', {inputs}' if inputs else ''}"
    return f"{where}: {wording.counter_says(call.counter)}; `{point.command}` repeats it"


def _errors(anomaly: Anomaly) -> Plot:
    """Return the errors of single runs, 95 % quantiles of their calls, beside the threshold."""
    series = []
    first = 1
    for side in Side:
        high = [run.high for run in anomaly.errors if run.side is side]
        series.append(PlotSeries(side, "runs", tuple(float(first + place) for place in range(len(high))), tuple(high), line=False))
        first += len(high)
    ends = (1.0, float(max(first - 1, 2)))
    series.append(PlotSeries(Side.BASE, "threshold", ends, (anomaly.threshold, anomaly.threshold), line=True))
    return Plot(
        title="How far calls are from what is normal in base, run by run",
        caption="Each point is a run: 95 % of its calls are nearer than this. Calls beyond the line are counted as unlike base's.",
        x_label="run",
        y_label=_DISTANCE[anomaly.detector],
        x_unit="count",
        y_unit="count",
        x_log=False,
        y_log=False,
        series=tuple(series),
        ordinal=True,
    )
