"""The way from a guilty change to where its cost shows, in words, step by step."""

from __future__ import annotations

from collections.abc import Mapping

from perfdiff import units
from perfdiff.models.clock import RESOLUTION_NS
from perfdiff.report.sentences.spelling import Facts, Wording, filled

# What a change does, by how it reaches where cost shows.
_STARTS = {
    "ancestor": "leads to",
    "called": "makes calls that nobody made before",
    "callee": "is called by",
    "data": "writes {through}",
    "inputs": "hands larger inputs on",
    "memory": "allocates more",
    "reached": "is reached from",
    "return": "returns other values",
}
# What a place does with what reaches it.
_MEETS = {"called": "runs in them", "data": "reads it", "inputs": "reads it", "memory": "frees it", "return": "works with them"}


def _starts(facts: Facts) -> str:
    return filled(f"{{function}} {_STARTS[facts['link']]}{{leads_to:? {{leads_to}}}}", facts)


def _costs_there(facts: Facts) -> str:
    return f"{facts['function']}{f' {_MEETS[link]}' if (link := facts['link']) else ''}: {facts['costs']}"


def _costs_a_call(facts: Facts) -> str:
    return filled(f"{_a_call(facts['base_ns'])} → {_a_call(facts['head_ns'])} a call{{ratio:? ({{ratio:ratio}} at equal inputs)}}", facts)


def _a_call(ns: float | None) -> str:
    """Return what a call takes, None where there is none."""
    if ns is None:
        return "–"
    return units.duration(ns) if ns >= RESOLUTION_NS else f"less than {units.duration(RESOLUTION_NS)}"


WORDINGS: Mapping[str, Wording] = {
    "calls-in-a-run": "{function} calls {callee} {head:often} in {run}, {base:often} before: {ns:duration} more in all",
    "calls-per-call": "{function} calls {callee} {head:often} per call, {base:often} before",
    "costs-a-call": _costs_a_call,
    "costs-itself": "{function} itself: {costs}, {ns:duration} more in all",
    "costs-there": _costs_there,
    "costs-with-callees": "{function} and what it calls: {ns:duration} more in all",
    "function": "`{name}` ({standing})",
    "gets-larger-inputs": "{function} gets larger inputs: {ns:duration} more in all",
    "starts": _starts,
}
