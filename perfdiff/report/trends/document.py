"""The document of trends, for a terminal and for a ticket."""

from __future__ import annotations

from collections.abc import Iterator

from perfdiff.analysis.trends.findings import GrowthDifference, PlaceCluster, TrendFindings, Trends
from perfdiff.records.schema import Side
from perfdiff.report import markdown as tickets
from perfdiff.report import terminal
from perfdiff.report import wording as names
from perfdiff.report.blocks import Block, Cell, Column, Items, Sentence, Table, Tone
from perfdiff.report.trends import wording
from perfdiff.report.trends.clean import clean
from perfdiff.report.wording import ABSENT, TONES, percent, plural

MOVED = "Lines that vary along with something else now"
APART = "Lines whose exponent is another than their cluster's"


def answer(findings: TrendFindings) -> str:
    """Return the answer in a sentence, its texts printable."""
    return wording.answer(clean(findings))


def text(findings: TrendFindings, *, width: int = 100, colour: bool = False, search: tuple[Block, ...] = ()) -> str:
    """Return the report as text of at most `width` columns where names allow it, with ANSI colours only if `colour`.

    The `search` that led to it stands ahead.
    """
    shown = clean(findings)
    report_blocks = [*search, Sentence(title(shown), Tone.MUTED), answered(shown), *blocks(shown)]
    return terminal.render_blocks(report_blocks, width=width, colour=colour, rows=terminal.ALL if search else terminal.MOST_ROWS)


def markdown(findings: TrendFindings, search: tuple[Block, ...] = ()) -> str:
    """Return the report as Markdown for a ticket: at most 60,000 bytes, the answer first."""
    shown = clean(findings)
    report_blocks: list[Block] = [*search, answered(shown), *blocks(shown)]
    first, *rest = report_blocks
    assert isinstance(first, Sentence)
    return tickets.render_blocks(first, title(shown), tuple(rest))


def blocks(findings: TrendFindings) -> tuple[Block, ...]:
    """Return what is said behind title and answer of findings whose texts are printable: what differs, and clusters of head or the one
    revision.
    """
    side = wording.shown_side(findings)
    trends = findings.sides[side]
    parts: list[Block] = []
    if findings.differences:
        parts.append(differences(findings.differences))
    if (items := moved(findings)) is not None:
        parts.append(items)
    costly = [cluster for cluster in trends.clusters if cluster.is_costly]
    if costly:
        of = f" of {names.revision(findings.experiment.revisions[side])}" if findings.differences or side is Side.HEAD else ""
        parts.append(clusters(f"Costly clusters{of}", costly))
    parts += _beside(trends, costly)
    if findings.experiment.notes:
        parts.append(Items("Notes", tuple(f"{note.text} ({note.slug})" for note in findings.experiment.notes)))
    return tuple(parts)


def moved(findings: TrendFindings) -> Items | None:
    """Return the lines that belong to another cluster in head, None if there are none."""
    return Items(MOVED, tuple(wording.moved(findings))) if findings.moves else None


def title(findings: TrendFindings) -> str:
    """Return what was counted: the revisions, points and places."""
    revisions = " → ".join(names.revision(revision) for _, revision in sorted(findings.experiment.revisions.items()))
    counted = findings.experiment.sides[wording.shown_side(findings)]
    points = plural(len(findings.experiment.points), "point")
    return f"{revisions}: counts of {plural(len(counted.places), 'place')} at {points}"


def answered(findings: TrendFindings) -> Sentence:
    """Return the answer in one sentence, in the colour of its verdict if it has one."""
    return Sentence(wording.answer(findings), TONES[findings.verdict] if Side.HEAD in findings.sides else Tone.STRONG)


def _beside(trends: Trends, costly: list[PlaceCluster]) -> Iterator[Block]:
    said = " ".join(wording.rest(trends))
    if said:
        yield Sentence(said, Tone.MUTED)
    apart = tuple(wording.apart(trends))
    if apart:
        yield Items(APART, apart)
    overtaking = tuple(wording.overtaking(trends))
    if overtaking:
        yield Items("Beyond what was run", overtaking)
    remarks = tuple(f"{wording.called(cluster)}: {'; '.join(notes)}" for cluster in costly if (notes := tuple(wording.remarks(cluster))))
    if remarks:
        yield Items("Remarks on fits", remarks)


def differences(differing: tuple[GrowthDifference, ...]) -> Table:
    """Return a row for each difference, the worst first."""
    columns = (
        Column("#", right=True, minor=True),
        Column("place"),
        Column("function"),
        Column("line", minor=True),
        Column("growth"),
        Column("exponent"),
        Column("at 10 times the inputs"),
        Column("base → head", right=True),
        Column("verdict"),
        Column("places", right=True, minor=True),
    )
    return Table("What differs", columns, tuple(_difference(rank, difference) for rank, difference in enumerate(differing, 1)))


def _difference(rank: int, difference: GrowthDifference) -> tuple[Cell, ...]:
    exponent = wording.exponent_difference(difference)
    return (
        Cell(str(rank)),
        Cell(wording.where(difference.place), code=True),
        Cell(difference.place.function, code=True),
        Cell(difference.place.text, code=True),
        Cell(wording.change(difference)),
        Cell(wording.KINDS[difference.kind] if exponent == ABSENT else exponent),
        Cell(f"{difference.feature} = {wording.amount(difference.at)}"),
        Cell(wording.both(difference)),
        Cell(difference.verdict.value, TONES[difference.verdict]),
        Cell(f"{len(difference.members):,}"),
    )


def clusters(caption: str, shown: list[PlaceCluster]) -> Table:
    """Return a row for each cluster, the largest first."""
    columns = (
        Column("#", right=True),
        Column("cluster"),
        Column("line"),
        Column("largest cost", right=True),
        Column("of a run", right=True),
        Column("growth"),
        Column("class"),
        Column("exponent"),
        Column("R²", right=True),
        Column("at 2 times the inputs"),
        Column("at 10 times the inputs"),
        Column("places", right=True, minor=True),
    )
    return Table(caption, columns, tuple(_cluster(rank, cluster) for rank, cluster in enumerate(shown, 1)))


def _cluster(rank: int, cluster: PlaceCluster) -> tuple[Cell, ...]:
    fit = wording.best(cluster)
    nearer, further = predictions(cluster)
    return (
        Cell(str(rank)),
        Cell(f"{wording.called(cluster)}{wording.and_others(cluster)}", code=True),
        Cell("" if cluster.place is None else cluster.place.text, code=True),
        Cell(wording.amount(cluster.largest)),
        Cell(percent(cluster.share)),
        Cell(wording.grows(cluster)),
        Cell(ABSENT if fit is None else fit.growth.value),
        Cell(ABSENT if fit is None else wording.exponent(fit)),
        Cell(ABSENT if fit is None else wording.quality(fit.r2)),
        Cell(nearer),
        Cell(further),
        Cell(f"{len(cluster.members):,}"),
    )


def predictions(cluster: PlaceCluster) -> tuple[str, str]:
    """Return what the best fit predicts at 2 and at 10 times the inputs, with intervals; `–` where there is no fit."""
    fit = wording.best(cluster)
    predicted = [wording.predicted(prediction, fit.feature) for prediction in fit.predictions] if fit else []
    nearer, further = [*predicted, ABSENT, ABSENT][:2]
    return nearer, further
