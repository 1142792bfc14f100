"""Trends read back from what `trends -o FILE.json` wrote. It may come from strangers: its size is bounded, and nothing in it is trusted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfdiff.analysis.trends.assertions import SavedCluster, SavedExponent, SavedTrends
from perfdiff.errors import RecordingError, UsageError
from perfdiff.models.annotation import CostClass
from perfdiff.records import bounds, codec
from perfdiff.records.arrays import Floats
from perfdiff.records.places import Place
from perfdiff.records.schema import Revision
from perfdiff.report.printable import printable_values
from perfdiff.report.trends.json_document import SCHEMA
from perfdiff.report.trends.wording import where

_ANY_VERSION = SCHEMA.partition("/")[0] + "/"


@dataclass(frozen=True, slots=True)
class _Fit:
    feature: str
    b: float | None
    ci_b: tuple[float | None, ...]
    growth: CostClass


@dataclass(frozen=True, slots=True)
class _Representative:
    feature: str | None = None
    function: str = ""
    file: str = ""
    line: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Cluster:
    representative: _Representative
    places: tuple[Place, ...]
    costly: bool
    costs: tuple[float | None, ...]
    fits: tuple[_Fit, ...]


@dataclass(frozen=True, slots=True)
class _Point:
    label: str
    features: Mapping[str, Mapping[str, float | None]]


@dataclass(frozen=True, slots=True)
class _TrendsDocument:
    base: Revision
    head: Revision | None
    points: tuple[_Point, ...]
    clusters: tuple[_Cluster, ...]
    constant: tuple[Place, ...]
    instances: bool = False


def saved_trends(text: str, name: str) -> SavedTrends | None:
    """Return the trends in the text of a file called `name`, None where it is no JSON of trends; their texts are printable.

    Raise UsageError where it is of another version, damaged, or has no costly cluster, so that nothing can be asserted.
    """
    if not text.lstrip().startswith("{"):
        return None
    try:
        data = bounds.parsed(text)
    except ValueError as error:
        raise UsageError(f"'{name}' begins as JSON and is none: {str(error)[:200]}", slug="trends-unreadable") from error
    schema = data.get("schema")
    if schema != SCHEMA:
        is_version = isinstance(schema, str) and schema.startswith(_ANY_VERSION)
        says = f"is of another version than this perfdiff reads, '{SCHEMA}'" if is_version else f"is JSON, but no '{SCHEMA}'"
        raise UsageError(f"'{name}' {says}; write it anew with `perfdiff trends REV -o {name}`", slug="trends-unreadable")
    try:
        trends = _saved(codec.decode(_TrendsDocument, _with_growth(data)))
    except (RecordingError, TypeError, ValueError) as error:
        raise UsageError(
            f"'{name}' is damaged: {error}; write it anew with `perfdiff trends REV -o {name}`", slug="trends-unreadable"
        ) from error
    if not any(cluster.is_costly for cluster in trends.clusters):
        raise UsageError(f"'{name}' has no costly cluster, so nothing to check: no count of that revision varies", slug="trends-unreadable")
    clean: SavedTrends = printable_values(trends)
    return clean


def _with_growth(data: dict[str, Any]) -> dict[str, Any]:
    """Return the document with the class of each fit under a name that a field can have, and only what is read of clusters."""
    return {**data, "clusters": [{**cluster, "fits": list(_fits(cluster))} for cluster in _listed(data, "clusters")]}


def _fits(cluster: Any) -> Iterator[dict[str, Any]]:
    for fit in _listed(cluster, "fits"):
        if not isinstance(fit, dict):
            raise TypeError("a fit is no object")
        yield {**fit, "growth": fit.get("class")}


def _listed(data: Any, key: str) -> list[Any]:
    items = data.get(key) if isinstance(data, dict) else None
    if not isinstance(items, list):
        raise TypeError(f"{key} is no list")
    return items


def _saved(document: _TrendsDocument) -> SavedTrends:
    side = "base" if document.head is None else "head"
    names = dict.fromkeys(name for point in document.points for name in point.features.get(side, {}))
    return SavedTrends(
        revision=document.head or document.base,
        labels=tuple(point.label for point in document.points),
        features={name: _floats(point.features.get(side, {}).get(name) for point in document.points) for name in names},
        clusters=tuple(_cluster(cluster, len(document.points), names) for cluster in document.clusters),
        constant=document.constant,
        instances=document.instances,
    )


def _cluster(cluster: _Cluster, points: int, features: Mapping[str, None]) -> SavedCluster:
    if len(cluster.costs) != points:
        raise ValueError(f"{len(cluster.costs)} costs at {points} points")
    exponents = tuple(exponent for fit in cluster.fits if (exponent := _exponent(fit)) is not None)
    unknown = next((exponent.feature for exponent in exponents if exponent.feature not in features), None)
    if unknown is not None:
        raise ValueError(f"no point has the feature {unknown}")
    of = cluster.representative
    name = (
        f"{of.function} ({where(Place(of.function, of.file, of.line, of.text))})"
        if of.feature is None
        else f"places that follow {of.feature}"
    )
    return SavedCluster(name, cluster.costly, cluster.places, _floats(cluster.costs), exponents)


def _exponent(fit: _Fit) -> SavedExponent | None:
    """Return the exponent of a fit, None where it tells nothing of the growth."""
    if len(fit.ci_b) != 2:
        raise ValueError("an interval has two ends")
    values = [math.nan if value is None else value for value in (fit.b, *fit.ci_b)]
    if fit.growth is CostClass.NONE or not all(map(math.isfinite, values)):
        return None
    return SavedExponent(fit.feature, values[0], (values[1], values[2]))


def _floats(values: Any) -> Floats:
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)
