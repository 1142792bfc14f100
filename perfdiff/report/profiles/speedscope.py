"""Profiles for speedscope, by its own format's schema: base and head, times first, then counts."""

from __future__ import annotations

import json
from typing import Any

from perfdiff.report.document import Document, headline
from perfdiff.report.profiles.stacks import EXPORTED, METHOD, StackCosts, StackFrame, Stacks, call_stacks

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_UNITS = {"ns": "nanoseconds", "count": "none"}


def render(document: Document) -> str:
    """Return the profiles as speedscope's JSON, with the answer as their title."""
    findings = document.findings
    stacks = call_stacks(findings, EXPORTED)
    value = {
        "$schema": _SCHEMA,
        "name": f"{document.title}: {headline(findings)}",
        "exporter": f"{findings.environment.perfdiff}. {METHOD}",
        "shared": {"frames": [_frame(frame) for frame in stacks.frames]},
        "profiles": [_profile(stacks, cost) for cost in stacks.costs],
    }
    return json.dumps(value, allow_nan=False, separators=(",", ":")) + "\n"


def _frame(frame: StackFrame) -> dict[str, Any]:
    return {"name": frame.name, "file": frame.file, "line": frame.line} if frame.file else {"name": frame.name}


def _profile(stacks: Stacks, cost: StackCosts) -> dict[str, Any]:
    samples = [stack for stack, own in enumerate(cost.own.tolist()) if own > 0]
    weights = cost.own[samples].round().tolist()
    return {
        "type": "sampled",
        "name": cost.says,
        "unit": _UNITS[cost.quantity.unit],
        "startValue": 0,
        "endValue": sum(weights),
        "samples": [stacks.chain(stack) for stack in samples],
        "weights": weights,
    }
