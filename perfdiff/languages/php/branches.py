"""The conditions of a function whose outcomes can be counted."""

from __future__ import annotations

from tree_sitter import Node

from perfdiff.languages.protocol import BranchPlan


def plan_branches(node: Node) -> tuple[BranchPlan, ...]:
    """Return the conditions in a function's own code."""
    return ()
