"""Trends for programs: schema `perfdiff.trends/1`. Keys may be added within the version; none is renamed or removed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from perfdiff.analysis.trends.findings import GrowthDifference, Move, PlaceCluster, TrendFindings
from perfdiff.models.trend import Law
from perfdiff.records.places import Place, PlaceCounts
from perfdiff.records.schema import Side
from perfdiff.report.json_report import revision_of
from perfdiff.report.json_text import finite
from perfdiff.report.printable import printable_but_files
from perfdiff.report.trends import wording
from perfdiff.report.trends.clean import clean

SCHEMA = "perfdiff.trends/1"


def json_document(findings: TrendFindings) -> dict[str, Any]:
    """Return what `trends --format json` writes: the clusters of head or the one revision. Absent and non-finite numbers are None."""
    shown = clean(findings, printable_but_files)
    side = wording.shown_side(shown)
    trends, counted = shown.sides[side], shown.experiment.sides[side]
    revisions = shown.experiment.revisions
    document = {
        "schema": SCHEMA,
        "verdict": shown.verdict.value if side is Side.HEAD else None,
        "sentence": wording.answer(clean(findings)),
        "base": revision_of(revisions[Side.BASE]),
        "head": revision_of(revisions[Side.HEAD]) if side is Side.HEAD else None,
        "points": _points(shown),
        "instances": any(place.instance for place in counted.places),
        "clusters": [_cluster(cluster, counted) for cluster in trends.clusters],
        "constant": _places(trends.constant, counted),
        "totals": trends.totals.tolist(),
        "differences": [_difference(difference, shown) for difference in shown.differences],
        "moves": [_move(move) for move in shown.moves],
        "notes": [{"slug": note.slug, "text": note.text} for note in shown.experiment.notes],
    }
    result: dict[str, Any] = finite(document)
    return result


def _points(findings: TrendFindings) -> list[dict[str, Any]]:
    sides = findings.experiment.sides.items()
    return [
        {
            "label": point.label,
            "workload": point.workload,
            "parameters": dict(point.parameters),
            "features": {side.value: {name: float(values[index]) for name, values in counted.features.items()} for side, counted in sides},
        }
        for index, point in enumerate(findings.experiment.points)
    ]


def _cluster(cluster: PlaceCluster, counted: PlaceCounts) -> dict[str, Any]:
    joint = cluster.joint
    return {
        "representative": _representative(cluster),
        "places": _places(cluster.members, counted),
        "largest": cluster.largest,
        "share": cluster.share,
        "costly": cluster.is_costly,
        "costs": cluster.costs.tolist(),
        "fits": [_fit(fit) for fit in cluster.fits],
        "joint": {"features": list(joint.features), "says": joint.says, "r2": joint.r2} if joint else None,
        "overtakes": cluster.overtakes,
        "apart": [
            {"place": _place(other.place), "feature": other.feature, "shift": other.shift, "ci": list(other.ci), "share": other.share}
            for other in cluster.apart
        ],
    }


def _representative(cluster: PlaceCluster) -> dict[str, Any]:
    return {"feature": cluster.feature} if cluster.place is None else _place(cluster.place)


def _move(move: Move) -> dict[str, Any]:
    return {"place": _place(move.place), "base": _representative(move.base), "head": _representative(move.head), "share": move.share}


def _place(place: Place) -> dict[str, Any]:
    return {"function": place.function, "file": place.file, "line": place.line, "text": place.text}


def _places(members: Iterable[int], counted: PlaceCounts) -> list[dict[str, Any]]:
    return [{**_place(counted.places[member]), **_instances(member, counted)} for member in members]


def _instances(place: int, counted: PlaceCounts) -> dict[str, Any]:
    """Return under `instances` the functions that several instances of a template are, with their largest counts; else nothing."""
    numbers = counted.instances.of(place)
    largest = [
        {"function": counted.instances.names[number], "largest": float(counted.instances.counts[number].max())} for number in numbers
    ]
    return {"instances": largest} if len(numbers) > 1 else {}


def _fit(fit: Law) -> dict[str, Any]:
    return {
        "feature": fit.feature,
        "a": fit.a,
        "b": fit.b,
        "ci_a": list(fit.ci_a),
        "ci_b": list(fit.ci_b),
        "r2": fit.r2,
        "n": fit.n,
        "ignored": fit.ignored,
        "class": fit.growth.value,
        "says": fit.says,
        "diagnosis": fit.diagnosis or None,
        "predictions": [{"at": prediction.at, "cost": prediction.cost, "ci": list(prediction.ci)} for prediction in fit.predictions],
    }


def _difference(difference: GrowthDifference, findings: TrendFindings) -> dict[str, Any]:
    return {
        "place": _place(difference.place),
        "places": _places(difference.members, findings.experiment.sides[difference.side]),
        "kind": difference.kind.value,
        "verdict": difference.verdict.value,
        "feature": difference.feature,
        "base": None if difference.base is None else _fit(difference.base),
        "head": None if difference.head is None else _fit(difference.head),
        "ci": None if difference.ci is None else list(difference.ci),
        "at": difference.at,
        "ratios": None if difference.ratios is None else list(difference.ratios),
        "cause": None if difference.cause is None else {**_place(difference.cause.place), "side": difference.cause.side.value},
        "side": difference.side.value,
        "base_cost": difference.base_cost,
        "head_cost": difference.head_cost,
    }
