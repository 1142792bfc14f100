"""The page of trends: one self-contained HTML file with a sortable table of clusters, their plots, fits and source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from perfdiff.analysis.trends.findings import COSTLY_SHARE, GrowthDifference, PlaceCluster, TrendFindings
from perfdiff.models.trend import Law, TrendPrediction
from perfdiff.records.schema import Side
from perfdiff.report import wording as names
from perfdiff.report.blocks import Block, Cell, Column, Fact, Facts, Items, Plot, Table
from perfdiff.report.page import asset, environment, policy
from perfdiff.report.trends import document, source, wording
from perfdiff.report.trends.clean import clean
from perfdiff.report.trends.plot import cluster_plot, difference_plot
from perfdiff.report.trends.source import PlacesByLine, SourceListing
from perfdiff.report.wording import ABSENT, TONES, percent, plural

# A longer page is searched, not read; the JSON holds all. The largest clusters have sections, the others a row each.
MOST_SECTIONS = 100
MOST_DIFFERENCES = 50
# Of all plots together: keeps a page of 100 clusters under 4 MB (about 60 bytes a point, drawn and told).
_ALL_POINTS = 24_000
_MOST_POINTS = 400
# Fits of a cluster, the best first, and features of the runs, of which a program that counts calls may have hundreds.
_MOST_FITS = 12
_MOST_FEATURES = 40
# So few points are drawn as larger dots, which do not hide each other.
_SPARSE = 60
# Places of all sections together whose source is shown, each with lines around it (about 400 bytes).
_ALL_PLACES = 4_000
_MOST_PLACES = 100
# Functions by which a row is found, beyond its representative.
_MOST_WORDS = 200


@dataclass(frozen=True, slots=True)
class Row:
    """A cluster in the table, with the best fit and its `furthest` prediction. `target` is "" where it has no section.

    `words` are names by which it is found besides what it shows.
    """

    rank: int
    target: str
    cluster: PlaceCluster
    fit: Law | None
    furthest: TrendPrediction | None
    words: str


@dataclass(frozen=True, slots=True)
class Heat:
    """Source of one side with counts at one point. `rest` says how many places it leaves out, "" where none."""

    side: Side
    listings: tuple[SourceListing, ...]
    point: str
    rest: str


@dataclass(frozen=True, slots=True)
class TrendSection:
    """All that is shown of a cluster or a difference."""

    id: str
    name: str
    place: str
    text: str
    tone: str
    chip: str
    figure: str
    facts: Facts
    plot: Plot | None
    heat: Heat | None
    tables: tuple[Table, ...]


def page(findings: TrendFindings, search: Sequence[Block] = ()) -> str:
    """Return the page as HTML, with the sentences, facts and tables of the `search` that led to it; the same bytes each time."""
    shown = clean(findings)
    side = wording.shown_side(shown)
    compared = side is Side.HEAD
    style, script = ("".join(asset(f"{name}.{kind}") for name in ("report", "sorting", "trends")) for kind in ("css", "js"))
    clusters = shown.sides[side].clusters
    revisions = shown.experiment.revisions
    return (
        environment(amount=wording.amount, amounts=wording.amounts, percent=percent, exponent=wording.exponent, quality=wording.quality)
        .get_template("trends.html.j2")
        .render(
            title=document.title(shown),
            said=wording.answer(shown),
            tone=shown.verdict.value if compared else "unchanged",
            compared=compared,
            search=search,
            tiles=list(_tiles(shown)),
            differences=replace(document.differences(shown.differences), title="") if shown.differences else None,
            differing=list(_differing(shown)),
            more_differences=max(0, len(shown.differences) - MOST_DIFFERENCES),
            moved=document.moved(shown),
            of=names.revision(revisions[side]),
            rows=list(_rows(shown)),
            sections=list(_sections(shown)),
            left_out=max(0, len(clusters) - MOST_SECTIONS),
            costly=percent(COSTLY_SHARE),
            overtaking=list(wording.overtaking(shown.sides[side])),
            apart=list(wording.apart(shown.sides[side])),
            apart_title=document.APART,
            notes=[f"{note.text} ({note.slug})" for note in shown.experiment.notes],
            counted=_counted(shown),
            constant=_constant(shown),
            sides=[(side.value, revision) for side, revision in sorted(revisions.items())],
            sparse=len(shown.experiment.points) <= _SPARSE,
            style=style,
            script=script,
            policy=policy(style, script),
        )
    )


def _tiles(findings: TrendFindings) -> Iterator[Fact]:
    """Yield the figures of what the answer is about."""
    if Side.HEAD in findings.sides:
        leading = next((difference for difference in findings.differences if difference.verdict is findings.verdict), None)
        if leading is not None:
            yield from _difference_tiles(leading)
        return
    trends = findings.sides[Side.BASE]
    costly = [cluster for cluster in trends.clusters if cluster.is_costly]
    steepest = wording.steepest(trends)
    if steepest is not None:
        cluster, fit = steepest
        yield Fact(f"growth of {wording.called(cluster)}", fit.says)
        yield Fact("its exponent, with the 95 % interval", wording.exponent(fit))
        if fit.predictions:
            last = fit.predictions[-1]
            yield Fact(f"times at {fit.feature} = {wording.amount(last.at)}", wording.amount(last.cost))
    yield Fact(f"of {plural(len(trends.clusters), 'cluster')} make up {percent(COSTLY_SHARE)} of some run", f"{len(costly):,}")


def _difference_tiles(difference: GrowthDifference) -> Iterator[Fact]:
    yield Fact(f"blocks that {difference.place.function} executes", wording.change(difference))
    exponent = wording.exponent_difference(difference)
    if exponent != ABSENT:
        yield Fact("in the exponent, with the 95 % interval", exponent)
    at = f"{difference.feature} = {wording.amount(difference.at)}"
    yield Fact(f"times at {at}, 10 times what was measured", wording.both(difference))


def _rows(findings: TrendFindings) -> Iterator[Row]:
    side = wording.shown_side(findings)
    places = findings.experiment.sides[side].places
    for rank, cluster in enumerate(findings.sides[side].clusters, 1):
        words = dict.fromkeys(places[member].function for member in cluster.members)
        fit = wording.best(cluster)
        target = f"cluster-{rank}" if rank <= MOST_SECTIONS else ""
        furthest = fit.predictions[-1] if fit and fit.predictions else None
        yield Row(rank, target, cluster, fit, furthest, " ".join([*words][:_MOST_WORDS]))


def _sections(findings: TrendFindings) -> Iterator[TrendSection]:
    side = wording.shown_side(findings)
    lines = source.lines_of(findings, side)
    clusters = findings.sides[side].clusters[:MOST_SECTIONS]
    points = min(_MOST_POINTS, _ALL_POINTS // max(len(clusters), 1))
    costly = sum(cluster.is_costly for cluster in clusters)
    places = min(_MOST_PLACES, _ALL_PLACES // max(costly, 1))
    for rank, cluster in enumerate(clusters, 1):
        yield TrendSection(
            id=f"cluster-{rank}",
            name=wording.called(cluster) if cluster.place is None else cluster.place.function,
            place="" if cluster.place is None else wording.where(cluster.place),
            text="" if cluster.place is None else cluster.place.text,
            tone="unchanged",
            chip=percent(cluster.share) + " of a run",
            figure=wording.grows(cluster),
            facts=_cluster_facts(cluster),
            plot=cluster_plot(findings, cluster, points),
            heat=_heat(lines, cluster.members, places, source.telling_point(cluster.costs)) if cluster.is_costly else None,
            tables=tuple(_tables(cluster)),
        )


def _cluster_facts(cluster: PlaceCluster) -> Facts:
    largest = f"{wording.amount(cluster.largest)} in one run, {percent(cluster.share)} of all counts of a run at most"
    facts = [Fact("places", f"{len(cluster.members):,}"), Fact("largest cost", largest)]
    facts += [Fact("remark", remark) for remark in wording.remarks(cluster)]
    return Facts(tuple(facts))


def _differing(findings: TrendFindings) -> Iterator[TrendSection]:
    shown = findings.differences[:MOST_DIFFERENCES]
    lines = {side: source.lines_of(findings, side) for side in findings.sides} if shown else {}
    for rank, difference in enumerate(shown, 1):
        side = difference.side
        counted = findings.experiment.sides[side]
        point = source.telling_point(counted.counts[counted.places.index(difference.place)]) if difference.place in counted.places else 0
        yield TrendSection(
            id=f"difference-{rank}",
            name=difference.place.function,
            place=wording.where(difference.place),
            text=difference.place.text,
            tone=difference.verdict.value,
            chip=difference.verdict.value,
            figure=wording.change(difference),
            facts=_difference_facts(difference),
            plot=difference_plot(findings, difference, _MOST_POINTS),
            heat=_heat(lines[side], difference.members, _MOST_PLACES, point),
            tables=tuple(_side_fits(difference)),
        )


def _difference_facts(difference: GrowthDifference) -> Facts:
    facts = [Fact("what differs", f"{wording.KINDS[difference.kind]}, in {plural(len(difference.members), 'place')} that grow alike")]
    exponent = wording.exponent_difference(difference)
    if exponent != ABSENT:
        facts.append(Fact("exponent", f"{exponent}, 95 % interval"))
    at = f"at {difference.feature} = {wording.amount(difference.at)}, 10 times what was measured"
    facts.append(Fact("cost", f"{wording.both(difference)} times {at}", TONES[difference.verdict]))
    return Facts(tuple(facts))


def _side_fits(difference: GrowthDifference) -> Iterator[Table]:
    fits = [(side, fit) for side, fit in (("base", difference.base), ("head", difference.head)) if fit is not None]
    if fits:
        columns = (Column("side"), *_FIT_COLUMNS)
        yield Table(f"Fits over {difference.feature}", columns, tuple((Cell(side), *_fit(fit)) for side, fit in fits))


def _heat(lines: PlacesByLine, members: Sequence[int], most: int, point: int) -> Heat | None:
    shown = source.listings(lines, members[:most], point)
    if not shown:
        return None
    rest = f"The source of {len(members) - most:,} more places is left out; the JSON names them." if len(members) > most else ""
    return Heat(lines.side, shown, lines.findings.experiment.points[point].label, rest)


_FIT_COLUMNS = (
    Column("growth"),
    Column("class"),
    Column("exponent b"),
    Column("coefficient a"),
    Column("R²", right=True),
    Column("points", right=True),
)


def _fit(fit: Law) -> tuple[Cell, ...]:
    ignored = f" of {fit.n + fit.ignored:,}" if fit.ignored else ""
    return (
        Cell(fit.says),
        Cell(fit.growth.value),
        Cell(wording.exponent(fit)),
        Cell(wording.coefficient(fit)),
        Cell(wording.quality(fit.r2)),
        Cell(f"{fit.n:,}{ignored}"),
    )


def _tables(cluster: PlaceCluster) -> Iterator[Table]:
    """Yield the fits over every feature, and what the best one predicts."""
    if cluster.fits:
        best = cluster.fits[:_MOST_FITS]
        over = tuple((Cell(fit.feature, code=True), *_fit(fit), Cell(fit.diagnosis or ABSENT)) for fit in best)
        of = "every feature" if len(best) == len(cluster.fits) else f"the {len(best)} best of {len(cluster.fits):,} features"
        yield Table(f"Fits over {of}, a·x^b", (Column("over"), *_FIT_COLUMNS, Column("residuals")), over)
    fit = wording.best(cluster)
    if fit is not None and fit.predictions:
        columns = (Column("at"), Column("times a run", right=True), Column("95 % interval"))
        rows = tuple(
            (
                Cell(f"{fit.feature} = {wording.amount(prediction.at)}"),
                Cell(wording.amount(prediction.cost)),
                Cell(wording.amounts(prediction.ci)),
            )
            for prediction in fit.predictions
        )
        yield Table("Predictions", columns, rows)


def _counted(findings: TrendFindings) -> Facts:
    experiment = findings.experiment
    named = len(experiment.revisions) > 1
    facts = [
        Fact(side.value if named else "revision", f"{names.revision(revision)} {revision.summary}")
        for side, revision in sorted(experiment.revisions.items())
    ]
    side = wording.shown_side(findings)
    facts.append(Fact("places", f"{len(experiment.sides[side].places):,}, of which {len(findings.sides[side].constant):,} never vary"))
    facts.append(Fact("points", f"{len(experiment.points):,}"))
    features = list(experiment.sides[side].features.items())
    facts += [Fact("feature", wording.spans(name, values)) for name, values in features[:_MOST_FEATURES]]
    if len(features) > _MOST_FEATURES:
        facts.append(Fact("features", f"{len(features) - _MOST_FEATURES:,} more, in the JSON"))
    return Facts(tuple(facts))


def _constant(findings: TrendFindings) -> Items | None:
    """Return the places that never vary, as they would otherwise stand nowhere; the first of them where they are many."""
    side = wording.shown_side(findings)
    trends, counted = findings.sides[side], findings.experiment.sides[side]
    shown = trends.constant[:_MOST_WORDS]
    never_varying = [(counted.places[index], wording.amount(float(counted.counts[index, 0]))) for index in shown]
    texts = [f"{wording.where(place)} in {place.function}, {times} times" for place, times in never_varying]
    if len(trends.constant) > len(shown):
        texts.append(f"{len(trends.constant) - len(shown):,} more; the JSON names them")
    return Items("Places that never vary", tuple(texts)) if texts else None
