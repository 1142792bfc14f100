"""Annotations as text and as JSON."""

from __future__ import annotations

import json
import math

from perfdiff.models.annotation import Annotation, Condition, CostClass, Operator, Scope, Term
from perfdiff.models.language import parse, parse_all
from perfdiff.report.annotations import json_document, text

FAST = Condition("mode", Operator.IN, (1.0,), ("FAST",))
LINE = (Term(400.0), Term(12.0, (("n", "x"),)))
SINGLE = Annotation(
    "f",
    "wall_ns",
    CostClass.LINEAR,
    (Scope(CostClass.LINEAR, LINE, 30.0, 1.0, 10),),
    ("n",),
    {"n": ("m",)},
    {"n": (1.0, 9.0)},
    0.9,
    0.8,
    10,
)
SCOPED = Annotation(
    "a::b<int, 3>",
    "alloc_bytes",
    CostClass.PIECEWISE,
    (
        Scope(CostClass.CONSTANT, (Term(64.0),), 0.0, 0.25, 5, (FAST,)),
        Scope(CostClass.LINEAR, LINE, 3.0, 0.75, 15, (FAST.negated(),)),
    ),
    ("mode", "n"),
    {},
    {"mode": (0.0, 1.0), "n": (1.0, 9.0)},
    math.nan,
    math.nan,
    20,
)


def test_text_of_several_annotations_can_be_read_again() -> None:
    assert parse_all(text([SINGLE, SINGLE])) == [SINGLE, SINGLE]


def test_json_of_one_regime_has_no_scopes() -> None:
    document = json_document([SINGLE])
    assert document["schema"] == "perfdiff.annotation/1"
    (found,) = document["annotations"]
    assert {key: found[key] for key in ("function", "metric", "class", "features", "twins", "r2", "cv_r2", "n", "scopes")} == {
        "function": "f",
        "metric": "wall_ns",
        "class": "linear",
        "features": ["n"],
        "twins": {"n": ["m"]},
        "r2": 0.9,
        "cv_r2": 0.8,
        "n": 10,
        "scopes": [],
    }
    assert parse(found["text"]) == SINGLE


def test_json_tells_scopes_and_leaves_no_number_that_json_lacks() -> None:
    (found,) = json.loads(json.dumps(json_document([SCOPED]), allow_nan=False))["annotations"]
    assert found["r2"] is None
    assert [(scope["condition"], scope["class"], scope["features"], scope["share"]) for scope in found["scopes"]] == [
        ("mode == FAST", "constant", [], 0.25),
        ("mode != FAST", "linear", ["n"], 0.75),
    ]
    assert [scope["text"] for scope in found["scopes"]] == ["[mode == FAST] Norm(64, 0)", "[mode != FAST] Norm(400 + 12*n, 3)"]
