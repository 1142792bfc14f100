"""What in a method's text becomes jumps of its bytecode: conditions, each operand of `&&` and `||` by itself, and what loops ask for.

`javac` writes a jump for each where its text ends, in the order of the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

# Nodes that begin a decision, as syntax.py asks for them.
QUERY = """
[(if_statement) (while_statement) (do_statement) (for_statement) (ternary_expression) (enhanced_for_statement) (assert_statement)] @decides
(binary_expression operator: ["==" "!=" "<" ">" "<=" ">=" "&&" "||"]) @decides
(unary_expression operator: "!") @decides
"""
ANY, TRUE = "any", "true"  # `asks` of a jump that no condition stands for, and of a value that is true or false
_COMPARED = frozenset(("==", "!=", "<", ">", "<=", ">="))
_JOINED = frozenset(("&&", "||"))
_WATCHED = ("if_statement", "while_statement", "do_statement", "for_statement", "ternary_expression")
_LITERALS = ("true", "false")
_ROOTS = ("statement", "declaration", "block", "lambda_expression", "switch_rule", "enum_constant")


@dataclass(frozen=True, slots=True)
class JumpCondition:
    """One jump that a text asks for: bytes of the condition, the lines in which its jump may stand, and the condition's own line.

    `asks` is how it compares, as `<`; a condition of `if`, a loop or `?:` is `watched`, other values are not.
    """

    start: int
    end: int
    first_line: int
    last_line: int
    line: int
    asks: str
    watched: bool


def decisions(node: Node) -> Iterator[JumpCondition]:
    """Yield the decisions of one node that the query finds; none of one that is part of another node's."""
    condition = _condition(node)
    if condition is not None:
        yield from _leaves(condition, _first_line(node), is_watched=True)
    elif node.type == "enhanced_for_statement":
        value = node.child_by_field_name("value") or node
        yield _decision(value, _first_line(node), ANY, is_watched=False)
    elif node.type == "assert_statement":
        line = node.start_point.row + 1
        yield JumpCondition(node.start_byte, node.start_byte, line, line, line, TRUE, watched=False)  # whether assertions are asked for
        yield from _leaves(node.named_children[0], line, is_watched=False)
    elif node.type in ("binary_expression", "unary_expression") and not _is_part(node):
        yield from _leaves(node, _first_line(node), is_watched=False)


def _condition(node: Node) -> Node | None:
    return node.child_by_field_name("condition") if node.type in _WATCHED else None


def _first_line(node: Node) -> int:
    """Return the first line of the statement that a node stands in; of the condition behind a loop's body, its own."""
    if node.type == "do_statement":
        node = _condition(node) or node
    elif not node.type.endswith("statement"):
        around: Node | None = node
        while around is not None and not around.type.endswith(_ROOTS):
            node, around = around, around.parent
        node = around if around is not None and around.type.endswith(("statement", "declaration")) else node
    return node.start_point.row + 1


def _leaves(node: Node, first_line: int, *, is_watched: bool) -> Iterator[JumpCondition]:
    """Yield the conditions that jumps of their own decide; none for what is always the same."""
    if node.type == "parenthesized_expression":
        inner = next((child for child in node.named_children if not child.type.endswith("_comment")), None)
        if inner is not None:
            yield from _leaves(inner, first_line, is_watched=is_watched)
    elif node.type == "unary_expression" and _operator(node) == "!":
        yield from _leaves(_field(node, "operand"), first_line, is_watched=is_watched)
    elif node.type == "binary_expression" and _operator(node) in _JOINED:
        yield from _leaves(_field(node, "left"), first_line, is_watched=is_watched)
        yield from _leaves(_field(node, "right"), first_line, is_watched=is_watched)
    elif node.type == "ternary_expression":  # its own condition is told of by itself
        yield from _leaves(_field(node, "consequence"), first_line, is_watched=is_watched)
        yield from _leaves(_field(node, "alternative"), first_line, is_watched=is_watched)
    elif node.type not in _LITERALS:
        compares = node.type == "binary_expression" and _operator(node) in _COMPARED
        yield _decision(node, first_line, _operator(node) if compares else TRUE, is_watched=is_watched)


def _decision(node: Node, first_line: int, asks: str, *, is_watched: bool) -> JumpCondition:
    line = node.start_point.row + 1
    return JumpCondition(node.start_byte, node.end_byte, min(first_line, line), node.end_point.row + 1, line, asks, is_watched)


def _is_part(node: Node) -> bool:
    """Return whether a value is asked for by a condition around it, so that it has no jump but as part of that."""
    around = node.parent
    while around is not None and around.type == "parenthesized_expression":
        node, around = around, around.parent
    if around is None:
        return False
    if around.type == "assert_statement":
        return around.named_children[0] == node
    if (condition := _condition(around)) is not None:
        inner = condition if condition.type != "parenthesized_expression" else None
        is_condition = condition == node or (inner is None and condition.start_byte <= node.start_byte < condition.end_byte)
        return is_condition or (around.type == "ternary_expression" and _is_part(around))
    return (around.type == "binary_expression" and _operator(around) in _JOINED) or (
        around.type == "unary_expression" and _operator(around) == "!"
    )


def _operator(node: Node) -> str:
    operator = node.child_by_field_name("operator")
    return operator.type if operator is not None else ""


def _field(node: Node, name: str) -> Node:
    child = node.child_by_field_name(name)
    return child if child is not None else node.named_children[-1]
