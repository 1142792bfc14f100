"""The conditions of a method whose outcomes are counted: which jump of the bytecode decides each, told by lines and order.

Class files say of which line an instruction is, not of which condition. In lines that belong together, the jumps are those of the
conditions in the order of the text where there are as many, and each compares as its condition does. Elsewhere nothing is watched: what
compilers leave out because it is always the same, write twice, as `finally`, or add, as in a switch over texts, shows by that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from perfdiff.languages.java.classes import Code
from perfdiff.languages.java.decisions import ANY, JumpCondition
from perfdiff.languages.protocol import BranchPlan

_JUMP = re.compile(r"^(if\w+) ", re.MULTILINE)
_EXIT = re.compile(r"^[ilfda]?return$", re.MULTILINE)
_PAIRS = (("eq", "ne"), ("lt", "ge"), ("gt", "le"))
_OPERATORS = {"eq": "==", "ne": "!=", "lt": "<", "ge": ">=", "gt": ">", "le": "<="}
# HotSpot compiles no method of more bytes (HugeMethodLimit), and none may have more than 65,535. A probe without conditions takes hundreds.
_COMPILED, _LARGEST, _PROBE = 8000, 60_000, 2000
_WATCH, _TELL = 20, 8  # bytes at most of a watched condition: where it stands and at the start, and at each way out


def plan_branches(source: bytes, conditions: Iterable[JumpCondition], code: Code) -> tuple[BranchPlan, ...]:
    """Return the conditions whose jumps are known, in the order of the text.

    The expression is the number of the jump among those of the method that have a condition, from 0, and whether it is taken where the
    condition is true.
    """
    ordered = sorted(conditions, key=lambda condition: condition.end)
    jumps = list(zip(_JUMP.findall(code.text), code.jumps, strict=True)) if ordered else []
    plans = sorted(_watched(source, ordered, jumps), key=lambda plan: plan.start)
    limit = _COMPILED if code.size <= _COMPILED else _LARGEST
    room = limit - _PROBE - code.size
    return tuple(plans[: max(room, 0) // (_WATCH + _TELL * (len(_EXIT.findall(code.text)) + 2))])


def _watched(source: bytes, conditions: Sequence[JumpCondition], jumps: Sequence[tuple[str, int]]) -> Iterator[BranchPlan]:
    for first, last, group in _groups(conditions):
        inside = [(number, name) for number, (name, line) in enumerate(jumps) if first <= line <= last]
        outcomes = [_is_taken_if_true(decision.asks, name) for decision, (_, name) in zip(group, inside, strict=False)]
        if len(inside) != len(group) or None in outcomes:
            continue
        for decision, (number, _), taken in zip(group, inside, outcomes, strict=True):
            if decision.watched:
                text = " ".join(source[decision.start : decision.end].decode("utf-8", "replace").split())
                yield BranchPlan(decision.start, decision.end, decision.line, text, f"{number} {taken:d}")


def _groups(conditions: Sequence[JumpCondition]) -> list[tuple[int, int, list[JumpCondition]]]:
    """Return conditions that share lines, in the order of their ends, with their first and last line."""
    groups: list[tuple[int, int, list[JumpCondition]]] = []
    for decision in sorted(conditions, key=lambda decision: (decision.first_line, decision.last_line)):
        if groups and decision.first_line <= groups[-1][1]:
            first, last, members = groups.pop()
            groups.append((first, max(last, decision.last_line), [*members, decision]))
        else:
            groups.append((decision.first_line, decision.last_line, [decision]))
    return [(first, last, sorted(members, key=lambda decision: decision.end)) for first, last, members in groups]


def _is_taken_if_true(asks: str, jump: str) -> bool | None:
    """Return whether a jump is taken where what its condition asks for is true; None where it is no jump of that condition."""
    if asks == ANY:
        return True
    kind = {"ifnull": "eq", "ifnonnull": "ne"}.get(jump, jump[-2:])
    if asks not in _OPERATORS.values():
        return kind == "ne" if jump in ("ifeq", "ifne") else None
    condition = next(name for name, operator in _OPERATORS.items() if operator == asks)
    other = next(right if left == condition else left for left, right in _PAIRS if condition in (left, right))
    return kind == condition if kind in (condition, other) else None
