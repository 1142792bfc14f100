"""What changed in a function, as sentences cite it."""

from __future__ import annotations

from collections.abc import Mapping

from perfdiff.report.sentences.spelling import Facts, Wording, excerpt, filled


def _cites(facts: Facts) -> str:
    lines = "; ".join(f"{number}: `{excerpt(text)}`" for number, text in zip(facts["numbers"], facts["texts"], strict=True))
    return filled(" ({newly:joined}{newly:?; }{gone:?gone from }{file}, line {lines}{more:? and {more} more})", {**facts, "lines": lines})


def _depends(facts: Facts) -> str:
    more = f"; and {facts['more']} more like that" if facts["more"] else ""
    return f"its text is the same, but it {'; it '.join(facts['reasons'])}{more}"


WORDINGS: Mapping[str, Wording] = {
    "citing": "{says}{lines}",
    "cites": _cites,
    "cites-reasons": " ({reasons:joined})",
    "moved": "was {reason}",
    "differs": "{reason}",
    "is-elsewhere": "{reasons:joined}",
    "depends": _depends,
    "depends-on": "its text is the same, but {culprits:?{culprits:commas}|something it depends on} changed",
}
