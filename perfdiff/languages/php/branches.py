"""The conditions of a function whose outcomes can be counted: of `if`, loops and conditional expressions, by the jumps that decide them.

The engine's code has lines and no columns. Its compiler writes one jump for each operand of `&&` and `||` and for each condition, in a
known order: a condition is found by its number among the jumps of its function, or, where the number of these is another than expected, as
where some were found to be constant, among those of its line.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tree_sitter import Node

from perfdiff.languages.php.syntax import CLASSES, COMMENT, FUNCTIONS
from perfdiff.languages.protocol import BranchPlan
from perfdiff.languages.syntax_trees import line, text_of

_LOGICAL = frozenset(("&&", "||", "and", "or"))
_COMPARISONS = frozenset(("==", "!=", "<>", "===", "!==", "<", ">", "<=", ">="))
_LITERALS = frozenset(("boolean", "null", "integer", "float", "string", "encapsed_string"))
# What has several values meet in one place, which no single jump tells of.
_MIXED = frozenset(("conditional_expression", "match_expression", "throw_expression"))
_MOST_DEPTH = 200


class _TooDeepError(Exception):
    pass


@dataclass(frozen=True, slots=True)
class _Jump:
    """A conditional jump that the compiler writes: the condition that it decides, None where that is not watched, and its lines."""

    condition: Node | None
    first: int
    last: int


@dataclass
class _Jumps:
    """Gathers the jumps of a function in the order in which the compiler writes them.

    `unsure` are lines with jumps that not all versions of the engine write, so that they cannot be told from each other there.
    """

    found: list[_Jump] = field(default_factory=list)
    unsure: set[int] = field(default_factory=set)
    depth: int = 0

    def read(self, node: Node) -> None:
        """Take in a stretch of code."""
        if node.type in FUNCTIONS or node.type == COMMENT:
            return
        if node.type in CLASSES:
            for child in node.children:
                if child.type == "arguments":  # of an anonymous class: its constructor is called here
                    self.read(child)
            return
        self.depth += 1
        if self.depth > _MOST_DEPTH:
            raise _TooDeepError
        reader = _READERS.get(node.type)
        if reader is not None:
            reader(self, node)
        else:
            self._children(node)
        self.depth -= 1

    def _children(self, node: Node) -> None:
        for child in node.named_children:
            self.read(child)

    def _fields(self, node: Node, *names: str) -> None:
        for name in names:
            for child in node.children_by_field_name(name):
                self.read(child)

    def _if(self, node: Node) -> None:
        self._test(node.child_by_field_name("condition"))
        self._fields(node, "body", "alternative")

    def _loop(self, node: Node) -> None:
        """Take in a loop, whose condition stands behind its body."""
        self._fields(node, "initialize", "body")
        for child in node.named_children:  # of `for (…):`, without a name
            if node.type == "for_statement" and node.field_name_for_child(node.children.index(child)) is None:
                self.read(child)
        self._fields(node, "update")
        condition = node.child_by_field_name("condition")
        if condition is not None and condition.type == "sequence_expression":
            for child in condition.named_children[:-1]:
                self.read(child)
            condition = condition.named_children[-1]
        self._test(condition)

    def _conditional(self, node: Node) -> None:
        if node.child_by_field_name("body") is None:  # `?:` has a jump of another kind
            self._fields(node, "condition", "alternative")
            return
        self._test(node.child_by_field_name("condition"))
        self._fields(node, "body", "alternative")

    def _choice(self, node: Node) -> None:
        """Take in a `switch` or a `match`: first all its cases, then what they do."""
        self._fields(node, "condition")
        body = node.child_by_field_name("body")
        arms = body.named_children if body is not None else []
        for arm in arms:
            values = [arm.child_by_field_name("value")] if node.type == "switch_statement" else _listed(arm)
            for value in values:
                if value is not None:
                    self.read(value)
                    self._add(None, value)
        if node.type == "match_expression":
            self.unsure.update(range(line(node), node.end_point.row + 2))
        for arm in arms:
            value = arm.child_by_field_name("value")
            listed = arm.child_by_field_name("conditional_expressions")
            for child in arm.named_children:
                if child not in (value, listed):
                    self.read(child)

    def _call(self, node: Node) -> None:
        """Take in a call: `isset` of several values is one condition after the other."""
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if text_of(function).lower() != "isset" or arguments is None:
            self._children(node)
            return
        given = [child for child in arguments.named_children if child.type != COMMENT]
        for number, child in enumerate(given, 1):
            self.read(child)
            if number < len(given):
                self._add(None, child)

    def _binary(self, node: Node) -> None:
        if _operator(node) in _LOGICAL:
            self._value(node, watched=False)
            return
        below = [node]
        while (left := below[-1].child_by_field_name("left")) is not None and _is_plain(left):
            below.append(left)
        self._fields(below[-1], "left")
        for expression in reversed(below):
            self._fields(expression, "right")

    def _test(self, node: Node | None) -> None:
        """Take in a condition, and the jump that its value decides."""
        if node is None:
            return
        last = self._value(node, watched=True)
        inside = _without_parentheses(node)
        if inside.type not in _LITERALS:
            self._add(last, last or inside)

    def _value(self, node: Node, *, watched: bool) -> Node | None:
        """Take in an expression; return the operand that a jump which tests its value decides, None where that cannot be said."""
        node = _without_parentheses(node)
        self.depth += 1
        if self.depth > _MOST_DEPTH:
            raise _TooDeepError
        if node.type == "binary_expression" and _operator(node) in _LOGICAL:
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            last = None
            if left is not None and right is not None:
                first = self._value(left, watched=watched)
                if _without_parentheses(left).type not in _LITERALS:
                    self._add(first if watched else None, first or left)
                last = self._value(right, watched=watched)
        elif node.type == "unary_op_expression" and text_of(node.child_by_field_name("operator")) == "!":
            argument = node.child_by_field_name("argument")
            last = self._value(argument, watched=watched) if argument is not None else None
            if last is not None and _operator(last) in _COMPARISONS:  # may be compiled as its opposite
                last = None
        else:
            self.read(node)
            last = node if _is_one(node) else None
        self.depth -= 1
        return last

    def _add(self, condition: Node | None, where: Node) -> None:
        self.found.append(_Jump(condition, line(where), where.end_point.row + 1))


_READERS = {
    "if_statement": _Jumps._if,
    "else_if_clause": _Jumps._if,
    "while_statement": _Jumps._loop,
    "do_statement": _Jumps._loop,
    "for_statement": _Jumps._loop,
    "conditional_expression": _Jumps._conditional,
    "switch_statement": _Jumps._choice,
    "match_expression": _Jumps._choice,
    "function_call_expression": _Jumps._call,
    "binary_expression": _Jumps._binary,
}


def plan_branches(node: Node) -> tuple[BranchPlan, ...]:
    """Return the conditions in a function's own code, in the order of their text; none where expressions are nested too deep.

    `node` is the function, or a file's root for the file's own code.
    """
    body = node.child_by_field_name("body") if node.type in FUNCTIONS else node
    jumps = _Jumps()
    try:
        if body is not None and body.has_error is False:
            jumps.read(body)
    except _TooDeepError:
        return ()
    on_lines = Counter(jump.first if jump.first == jump.last else 0 for jump in jumps.found)
    crossed = jumps.unsure | {number for jump in jumps.found if jump.first != jump.last for number in range(jump.first, jump.last + 1)}
    seen: Counter[int] = Counter()
    plans: list[BranchPlan] = []
    for number, jump in enumerate(jumps.found):
        alone = jump.first == jump.last and jump.first not in crossed
        place = f"{seen[jump.first] if alone else 0} {on_lines[jump.first] if alone else 0}"
        seen[jump.first] += 1
        if jump.condition is not None:
            total = 0 if jumps.unsure else len(jumps.found)
            start, end, text = jump.condition.start_byte, jump.condition.end_byte, " ".join(text_of(jump.condition).split())
            plans.append(BranchPlan(start, end, line(jump.condition), text, f"{number} {total} {jump.first} {jump.last} {place}"))
    return tuple(sorted(plans, key=lambda plan: plan.start))


def _operator(node: Node) -> str:
    return text_of(node.child_by_field_name("operator")).lower()


def _is_plain(node: Node) -> bool:
    return node.type == "binary_expression" and _operator(node) not in _LOGICAL


def _without_parentheses(node: Node) -> Node:
    while node.type == "parenthesized_expression" and node.named_children:
        node = next((child for child in node.named_children if child.type != COMMENT), node.named_children[0])
    return node


def _is_one(node: Node) -> bool:
    """Return whether a jump decides an expression as it stands: the engine turns comparisons with truth values into their opposite."""
    if node.type in _LITERALS or node.type in _MIXED:
        return False
    if node.type == "function_call_expression" and text_of(node.child_by_field_name("function")).lower() == "isset":
        arguments = node.child_by_field_name("arguments")
        return arguments is not None and sum(child.type != COMMENT for child in arguments.named_children) == 1
    if node.type != "binary_expression":
        return True
    sides = (node.child_by_field_name("left"), node.child_by_field_name("right"))
    compares = _operator(node) in ("==", "!=", "<>")
    constant = any(side is not None and _without_parentheses(side).type in ("boolean", "null") for side in sides)
    return _operator(node) != "??" and not (compares and constant)


def _listed(arm: Node) -> list[Node]:
    listed = arm.child_by_field_name("conditional_expressions")
    return list(listed.named_children) if listed is not None else []
