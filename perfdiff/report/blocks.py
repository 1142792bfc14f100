"""The pieces of a document: what is said, apart from how any format shows it. All texts are printable and on one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from perfdiff.analysis.findings import Verdict
from perfdiff.records.schema import Side


class Tone(StrEnum):
    """The meaning of a text, which each format colours in its own way."""

    PLAIN = "plain"
    STRONG = "strong"
    MUTED = "muted"
    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Sentence:
    """A paragraph."""

    text: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True)
class Fact:
    """A labelled statement, such as `time: 80 µs → 456 µs per call`."""

    label: str
    text: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True)
class Facts:
    """Labelled statements, one below the other."""

    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Items:
    """A list of statements; `ordered` where each follows from the one before."""

    title: str
    texts: tuple[str, ...]
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table. `code` marks names from the program; `target` is the id of the section it leads to."""

    text: str
    tone: Tone = Tone.PLAIN
    code: bool = False
    target: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. `minor` columns are left out where the page is too narrow for all."""

    title: str
    right: bool = False
    minor: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells, as many in each row as there are columns."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class TextListing:
    """Text in the program's or the annotation's own language, line by line."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a source diff with its numbers on both sides. `mark` is `+`, `-`, a space, or `@` where lines are left out.

    `guilty` are the changed lines of a function whose change made it slower. `times` is how often a line of head ran, "" where that was not
    counted, and `shade` grows with it from 0 (`heat.shade`).
    """

    mark: str
    base: int | None
    head: int | None
    text: str
    guilty: bool = False
    times: str = ""
    shade: int = 0


@dataclass(frozen=True, slots=True)
class Diff:
    """The source of a function on both sides, as a unified diff; `point` is where its lines were counted, "" where they were not."""

    title: str
    lines: tuple[DiffLine, ...]
    point: str = ""


@dataclass(frozen=True, slots=True)
class Band:
    """Where most calls lie about a curve, at each of its points."""

    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class PlottedCalls:
    """What is known of the calls behind points, in columns.

    `point` are labels of workload points; `inputs` by feature, as people write them, "" where absent; `ratio` is the measured over the
    fitted cost, None where nothing was fitted.
    """

    point: tuple[str, ...]
    inputs: Mapping[str, tuple[str, ...]]
    ratio: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class PlotSeries:
    """Points of one side, or a curve through them where `line`.

    `label` names the scope, "" where one serves all calls; `calls` tells of points, `band` stands about a curve.
    """

    side: Side
    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    line: bool
    band: Band | None = None
    calls: PlottedCalls | None = None


@dataclass(frozen=True, slots=True)
class Plot:
    """Cost over an input, or shares of calls over their cost. `caption` says what is drawn; units are those of `units.quantity`.

    `ordinal` says that x only numbers things.
    """

    title: str
    caption: str
    x_label: str
    y_label: str
    x_unit: str
    y_unit: str
    x_log: bool
    y_log: bool
    series: tuple[PlotSeries, ...]
    ordinal: bool = False


Block = Sentence | Facts | Items | Table | TextListing | Diff | Plot


@dataclass(frozen=True, slots=True)
class RatioSpan:
    """A ratio and its interval, to be drawn beside others on one axis."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class FunctionSection:
    """All that is said of one function.

    `standing` is the verdict as tables tell it, `figure` its ratio in words, `facts` the answer, `chain` the way from the change to the
    cost, `details` the evidence.
    """

    id: str
    name: str
    place: str
    verdict: Verdict
    standing: str
    rank: int | None
    figure: str
    span: RatioSpan | None
    headline: str
    facts: Facts
    chain: Items | None
    plot: Plot | None
    diff: Diff | None
    details: tuple[Block, ...]
