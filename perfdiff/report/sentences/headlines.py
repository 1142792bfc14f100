"""How the cost of a function changed, in words: by which cost functions, where, from what to what, how surely."""

from __future__ import annotations

from collections.abc import Mapping

from perfdiff import units
from perfdiff.models.annotation import scaled
from perfdiff.records.metrics import metric_of
from perfdiff.report.sentences.spelling import Facts, Wording, percent


def _cost_changed(facts: Facts) -> str:
    growth = facts["growth"] or ""
    return f"{growth}{_where(facts)}{_change(facts)}({_surely(facts)})"


def _where(facts: Facts) -> str:
    place = f"{facts['feature']} = {units.count(facts['at'])}" if facts["feature"] else facts["stratum"] or ""
    at = f"at {place}, " if place else ""
    if not facts["switch"]:
        return at
    return f"for {facts['switch']}, {'' if place == facts['switch'] else at}"


def _change(facts: Facts) -> str:
    base, ratio, unit = facts["base"], facts["ratio"][0], metric_of(facts["metric"]).unit
    whose = " of its own" if facts["is_own"] else ""
    over = "" if facts["over"] is None else f"on average{facts['over']} "
    if base is not None:
        what = f" {metric_of(facts['metric']).says}" if unit == "count" else ""
        return f"{units.quantity(base, unit)} became {units.quantity(base * ratio, unit)}{what}{whose} a call {over}"
    return over if facts["growth"] else f"costs {'more' if ratio > 1 else 'less'}{whose} a call {over}"


def _surely(facts: Facts) -> str:
    value, low, high = facts["ratio"]
    base, head = facts["runs"]
    runs = f"{base} runs a side" if base == head else f"{base} and {head} runs"
    return f"{units.ratio(value)}, {percent(facts['confidence'])} CI {units.significant(low)}-{units.significant(high)}, {runs}"


def _formula(facts: Facts) -> str:
    unit, constant = facts["unit"], facts["constant"]
    lead = scaled(units.quantity(facts["coefficient"], unit), facts["grows"] or "")
    return f"{lead} {'-' if constant < 0 else '+'} {units.quantity(abs(constant), unit)}" if constant else lead


WORDINGS: Mapping[str, Wording] = {
    "happened-to-cost": "`{name}` {cost}{beside}",
    "cost-changed": _cost_changed,
    "formulas": "cost {base}, now {head}: ",
    "formula": _formula,
    "classes": "was {base} in {feature}, now {head}: ",
    "happened-in-all": "`{name}` takes {head} in all its {head_calls:count} calls of {run}, {base} before",
    "happened-in-all-of-its-own": "`{name}` takes {head} of its own in all its {head_calls:count} calls of {run}, {base} before",
    "in-all-beside": (", but is called {head_calls:count} times in {run}, {base_calls:count} before: {head} in all, {base} before"),
    "took": "{ns:duration}",
    "took-less": "less than {ns:duration}",
    "a-run": "a run",
    "a-run-of": "a run of {point}",
}
