"""Findings of trends built by hand for the tests of reports: one revision, two, many clusters, and names that strangers would choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

import findings as made
from perfdiff.analysis.findings import Verdict
from perfdiff.analysis.trends.findings import GrowthDifference, GrowthDifferenceKind, PlaceCluster, TrendFindings, Trends
from perfdiff.models.annotation import CostClass
from perfdiff.models.trend import JointLaw, Law, TrendPrediction
from perfdiff.records.arrays import Floats
from perfdiff.records.places import Instances, Place, PlaceCounts, PlaceExperiment
from perfdiff.records.schema import Note, Point, Revision, Side

BASE, HEAD = Side.BASE, Side.HEAD
SIZES = (100, 200, 400, 700, 1_000, 2_000, 4_000, 7_000, 10_000)

LIST = """#include <stdlib.h>

struct list { struct node *head; long size; };

static struct node *last_node(struct list *list)
{
	struct node *n = list->head;

	while (n->next)
		n = n->next;
	return n;
}

int main(int argc, char **argv)
{
	struct list list = { 0 };
	long count = atol(argv[1]);

	for (long i = 0; i < count; i++)
		append(&list, i);
	printf("%ld\\n", list.size);
	return 0;
}
"""
LOOP = Place("last_node", "list.c", 9, "while (n->next)")
STEP = Place("last_node", "list.c", 10, "n = n->next;")
CALL = Place("main", "list.c", 20, "append(&list, i);")
HEADER = Place("main", "list.c", 19, "for (long i = 0; i < count; i++)")
PRINT = Place("main", "list.c", 21, 'printf("%ld\\n", list.size);')
PLACES = (LOOP, STEP, HEADER, CALL, PRINT)


def fit(
    feature: str, a: float, b: float, values: Sequence[float], *, growth: CostClass, says: str, diagnosis: str = "", ignored: int = 0
) -> Law:
    """Return a power law with narrow intervals and its predictions at twice and ten times the 95th percentile of `values`."""
    top = float(np.percentile(values, 95))
    costs = [(at, a * at**b) for at in (2 * top, 10 * top)]
    return Law(
        feature=feature,
        a=a,
        b=b,
        ci_a=(0.98 * a, 1.02 * a),
        ci_b=(b - 0.02, b + 0.02),
        r2=0.9987,
        n=len(values) - ignored,
        ignored=ignored,
        predictions=tuple(TrendPrediction(at, cost, (0.96 * cost, 1.04 * cost)) for at, cost in costs),
        growth=growth,
        says=says,
        diagnosis=diagnosis,
    )


def linear(a: float, values: Sequence[float] = SIZES, feature: str = "n") -> Law:
    """Return the fit of a cost that grows linearly."""
    return fit(feature, a, 1.0, values, growth=CostClass.LINEAR, says=f"{a:g}·{feature}")


def quadratic(a: float, values: Sequence[float] = SIZES, feature: str = "n", diagnosis: str = "", ignored: int = 0) -> Law:
    """Return the fit of a cost that grows with the square."""
    says = f"{a:g}·{feature}²"
    return fit(feature, a, 2.0, values, growth=CostClass.QUADRATIC, says=says, diagnosis=diagnosis, ignored=ignored)


def cluster(
    counts: Floats, members: Sequence[int], fits: Sequence[Law], *, feature: str | None = None, place: Place | None = None
) -> PlaceCluster:
    """Return a cluster of places whose counts (places, points) are given."""
    costs = counts[list(members)].sum(axis=0)
    share = float((costs / counts.sum(axis=0)).max())
    return PlaceCluster(feature, place, tuple(members), costs, float(costs.max()), share, tuple(fits))


def points(sizes: Sequence[int] = SIZES) -> tuple[Point, ...]:
    """Return a point for each size."""
    return tuple(Point(number, "lists", {"n": n}, f"./list {n}") for number, n in enumerate(sizes))


def counts(rows: Sequence[Floats], places: tuple[Place, ...] = PLACES, source: str = LIST) -> PlaceCounts:
    """Return counts of places of `list.c` at each size, with n and the bytes of a made-up file as features."""
    n = np.array(SIZES, dtype=np.float64)
    sources = {"list.c": tuple(source.split("\n"))}
    return PlaceCounts(points(), places, np.array(rows, dtype=np.float64), {"n": n, "bytes": 12 * n + 7}, sources)


def walking() -> PlaceCounts:
    """Return counts of a list whose tail is walked to at each append."""
    n = np.array(SIZES, dtype=np.float64)
    return counts([n * (n - 1) / 2 + n, n * (n - 1) / 2, n + 1, n, np.ones_like(n)])


def pointing() -> PlaceCounts:
    """Return counts of a list that remembers its tail."""
    n = np.array(SIZES, dtype=np.float64)
    return counts([np.round(2.1 * n), np.round(1.1 * n), n + 1, n, np.ones_like(n)])


def walking_trends(overtakes: float | None = 3.1e6) -> Trends:
    """Return the clusters of `walking`: a quadratic one, which `overtakes`, one that follows n, and a place that never varies."""
    matrix = walking().counts
    bytes_read = tuple(12.0 * n + 7 for n in SIZES)
    fits = (
        quadratic(1.0, diagnosis="curved: a lower-order term or a logarithm", ignored=1),
        quadratic(0.0069, bytes_read, feature="bytes"),
    )
    steep = replace(cluster(matrix, (0, 1), fits, place=LOOP), overtakes=overtakes, joint=JointLaw(("n", "bytes"), "2.1·n·bytes", 0.9991))
    flat = replace(cluster(matrix, (2, 3), (linear(2.0),), feature="n"), share=0.0123)
    return Trends((steep, flat), (4,), matrix.sum(axis=0))


def pointing_trends() -> Trends:
    """Return the clusters of `pointing`: all places but one follow n."""
    matrix = pointing().counts
    return Trends((cluster(matrix, (0, 1, 2, 3), (linear(5.2),), feature="n"),), (4,), matrix.sum(axis=0))


BEFORE = Revision("v1.4", "a1b2c3d4e5f60718293a4b5c6d7e8f9001122334", "Release 1.4")
AFTER = Revision("HEAD", "b7e1c0ffee60718293a4b5c6d7e8f90011223344", "Keep the list without a tail pointer")
NOTE = Note("uncounted", "plugin.so was not counted.")


def one() -> TrendFindings:
    """Return what is known of one revision: a quadratic cluster, a linear one below 2 % of any run, and a place that never varies."""
    experiment = PlaceExperiment({BASE: BEFORE}, {BASE: walking()}, np.array([], dtype=np.int64), (NOTE,))
    return TrendFindings(experiment, {BASE: walking_trends()}, (), Verdict.UNCHANGED)


def difference(verdict: Verdict = Verdict.REGRESSION, kind: GrowthDifferenceKind = GrowthDifferenceKind.EXPONENT) -> GrowthDifference:
    """Return the difference of the loop: worse or better, or there on one side alone."""
    slow, fast = quadratic(0.5), linear(2.1)
    base, head = (slow, fast) if verdict is Verdict.IMPROVEMENT else (fast, slow)
    ends = [0.0 if each is None else each.a * 1e5**each.b for each in (base, head)]
    ci: tuple[float, float] | None = (head.b - base.b - 0.02, head.b - base.b + 0.02)
    n = np.array(SIZES, dtype=np.float64)
    counts = [
        np.zeros_like(n) if gone else each.a * n**each.b
        for each, gone in ((base, kind is GrowthDifferenceKind.NEW), (head, kind is GrowthDifferenceKind.GONE))
    ]
    found = GrowthDifference(kind, LOOP, (0, 1), "n", counts[0], counts[1], base, head, ci, 1e5, ends[0], ends[1], verdict)
    if kind is GrowthDifferenceKind.NEW:
        return replace(found, base=None, ci=None, base_cost=0.0)
    if kind is GrowthDifferenceKind.GONE:
        return replace(found, head=None, ci=None, head_cost=0.0, side=BASE)
    return found


def two(verdict: Verdict = Verdict.REGRESSION, differences: Sequence[GrowthDifference] | None = None) -> TrendFindings:
    """Return what is known of two revisions; without `differences`, the loop that walks to the tail in one of them."""
    sides = {BASE: pointing(), HEAD: walking()}
    trends = {BASE: pointing_trends(), HEAD: walking_trends()}
    if verdict is Verdict.IMPROVEMENT:
        sides, trends = {BASE: sides[HEAD], HEAD: sides[BASE]}, {BASE: trends[HEAD], HEAD: trends[BASE]}
    experiment = PlaceExperiment({BASE: BEFORE, HEAD: AFTER}, sides, np.arange(len(PLACES)))
    told = (difference(verdict),) if differences is None else tuple(differences)
    return TrendFindings(experiment, trends, told, verdict)


def instantiated(*, compared: bool = False) -> TrendFindings:
    """Return findings in which the loop stands in a template: an instance of base, and a second one that runs ten times a run."""
    found = two() if compared else one()
    sides = {}
    for side, counted in found.experiment.sides.items():
        loop = counted.places.index(LOOP)
        rest = counted.counts[loop] - 10
        names = "last_node<int>", "last_node<char>" if compared and side is BASE else "last_node<long>"
        sides[side] = replace(counted, instances=Instances(np.array([loop, loop]), names, np.array([rest, np.full_like(rest, 10)])))
    return replace(found, experiment=replace(found.experiment, sides=sides))


def hostile(text: str = made.HOSTILE) -> TrendFindings:
    """Return findings of two revisions in which every text that a stranger can choose is `text`, a hostile one."""

    def places(side: PlaceCounts) -> PlaceCounts:
        named = tuple(Place(text, text, place.line, text) for place in side.places)
        features: Mapping[str, Floats] = {text: side.features["n"], "=1+1": side.features["bytes"]}
        ran = tuple(Point(point.id, text, {text: text}, text) for point in side.points)
        return replace(side, points=ran, places=named, features=features, sources={text: (text,) * 30})

    def of(trend: Law) -> Law:
        return replace(trend, feature=text, says=text, diagnosis=text)

    def clusters(trends: Trends) -> Trends:
        named = []
        for each in trends.clusters:
            place = None if each.place is None else Place(text, text, each.place.line, text)
            feature, joint = (None if each.feature is None else text), JointLaw((text,), text, 0.9)
            named.append(replace(each, place=place, feature=feature, fits=tuple(map(of, each.fits)), joint=joint))
        return replace(trends, clusters=tuple(named))

    whole = two()
    experiment = replace(
        whole.experiment,
        revisions={BASE: Revision(text, None, text), HEAD: Revision(text, None, text)},
        sides={side: places(found) for side, found in whole.experiment.sides.items()},
        notes=(Note("uncounted", text),),
    )
    told = replace(difference(), place=Place(text, text, 9, text), feature=text, base=of(linear(2.1)), head=of(quadratic(0.5)))
    return replace(whole, experiment=experiment, sides={side: clusters(found) for side, found in whole.sides.items()}, differences=(told,))


def many(clusters: int, places: int, points_: int, *, files: int = 40) -> TrendFindings:
    """Return one revision of so many clusters, which share so many places of long files, at so many points."""
    rng = np.random.default_rng(7)
    n = np.round(np.geomspace(100, 1e5, points_))
    exponents = rng.uniform(0.5, 2.2, clusters)
    matrix = np.empty((places, points_))
    listed = []
    for index in range(places):
        matrix[index] = np.round(rng.uniform(0.5, 3) * n ** exponents[index % clusters] * rng.lognormal(0, 0.05, points_))
        name = f"f{index // 12 % 900}"
        listed.append(Place(name, f"src/part{index % files}.c", 10 + 3 * (index // files), f"weight[{index}] += value({index});"))
    sources = {f"src/part{each}.c": tuple(f"    line {number} of a long file;" for number in range(1, 4_000)) for each in range(files)}
    found = []
    for index in range(clusters):
        b = float(exponents[index])
        own = fit("bytes", 1.5, b, n.tolist(), growth=CostClass.POWER, says=f"1.5·bytes^{b:.2f}")
        found.append(cluster(matrix, range(index, places, clusters), (own,), place=listed[index]))
    found.sort(key=lambda each: -each.largest)
    ran = tuple(Point(number, "corpus", {"input": f"corpus/input-{number}.c"}, "./p") for number in range(points_))
    counted = PlaceCounts(ran, tuple(listed), matrix, {"bytes": n}, sources)
    experiment = PlaceExperiment({BASE: BEFORE}, {BASE: counted}, np.array([], dtype=np.int64))
    return TrendFindings(experiment, {BASE: Trends(tuple(found), (), matrix.sum(axis=0))}, (), Verdict.UNCHANGED)
