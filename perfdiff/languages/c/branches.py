"""The conditions of a function that can be watched: where their text lies, so that it can be wrapped.

libclang says what is a condition; the text itself says where it begins and ends, because places inside macros are not to be relied on.
What the two do not agree on is left alone, and so is every condition that a compiler may have to decide at compile time.
"""

from __future__ import annotations

import re
from ctypes import byref, c_uint, c_void_p
from typing import NamedTuple

from clang.cindex import CursorKind, TypeKind

from perfdiff.languages.c import lexer
from perfdiff.languages.c.cursors import STOP, Body, Cursor, bound, children, native, subtree
from perfdiff.languages.protocol import BranchPlan

_IF = CursorKind.IF_STMT.value
_WHILE = CursorKind.WHILE_STMT.value
_DO = CursorKind.DO_STMT.value
_FOR = CursorKind.FOR_STMT.value
_CHOICE = CursorKind.CONDITIONAL_OPERATOR.value
_KEYWORDS = {_IF: b"if", _WHILE: b"while", _DO: b"while", _FOR: b"for"}
_CONDITIONAL = frozenset((*_KEYWORDS, _CHOICE))
_CONDITION_PART = {(_IF, 1): 0, (_IF, 2): 1, (_WHILE, 1): 0, (_DO, 1): 0, (_FOR, 3): 1}  # by the number of parts between `;`
_COMPOUND = CursorKind.COMPOUND_STMT.value
_TRY = CursorKind.CXX_TRY_STMT.value
_CALL = CursorKind.CALL_EXPR.value
_THIS = CursorKind.CXX_THIS_EXPR.value
_NAMES = frozenset((CursorKind.DECL_REF_EXPR.value, CursorKind.MEMBER_REF_EXPR.value))
_PARAMETER = CursorKind.PARM_DECL.value
_VARIABLE = CursorKind.VAR_DECL.value
_FIELD = CursorKind.FIELD_DECL.value
_BINARY = CursorKind.BINARY_OPERATOR.value
_TRANSPARENT = frozenset((CursorKind.PAREN_EXPR.value, CursorKind.UNEXPOSED_EXPR.value))
_AND_OR = frozenset((20, 21))  # CXBinaryOperator_LAnd and _LOr
_SIZEOF = CursorKind.CXX_UNARY_EXPR.value  # also alignof: the operand is not evaluated
_VECTORS = (TypeKind.VECTOR, TypeKind.EXTVECTOR)
_COMPILE_TIME = frozenset(("__builtin_constant_p", "__builtin_is_constant_evaluated", "is_constant_evaluated"))
_LEADING_KEYWORDS = frozenset((b"this", b"static_cast", b"dynamic_cast", b"reinterpret_cast", b"const_cast", b"not"))
_OPENING, _CLOSING = frozenset((b"(", b"[", b"{")), frozenset((b")", b"]", b"}"))
_BLANKS = re.compile(r"\s+")

# Default initialisers of a local class and loops that OpenMP rewrites have no conditions to wrap.
_REWRITTEN = frozenset((_FIELD, *(kind.value for kind in CursorKind.get_all_kinds() if kind.name.startswith("OMP_"))))
_STOP = STOP | _REWRITTEN


class _Place(NamedTuple):
    """Where something lies: a file's handle, byte offsets, a 1-based line."""

    file: int | None
    start: int
    end: int
    line: int


class _Content(NamedTuple):
    """What an expression is made of: whether it names something that changes, and whether it calls anything."""

    variable: bool
    call: bool


_CONSTANT = _Content(variable=False, call=False)


def plan_branches(cursor: Cursor, body: Body, source: bytes) -> tuple[BranchPlan, ...]:
    """Return the conditions of `if`, `?:`, `while`, `do` and `for` in the body of a function or lambda, in the order of the text.

    `source` is the file the definition lies in; offsets count its bytes. Left out: conditions with declarations, `if constexpr`,
    constants, those that begin inside a macro or hold preprocessor lines, and those of functions and lambdas inside, which belong to them.
    """
    return _BranchPlanner(cursor, source).plans(body)


class _BranchPlanner:
    """Plans the conditions of one function."""

    def __init__(self, cursor: Cursor, source: bytes) -> None:
        self._cursor = cursor
        self._source = source
        self._file, self._line, self._column, self._offset = c_void_p(), c_uint(), c_uint(), c_uint()
        self._out = (byref(self._file), byref(self._line), byref(self._column), byref(self._offset))
        self._constants: dict[int, _Content] = {}

    def plans(self, body: Body) -> tuple[BranchPlan, ...]:
        """Return what `plan_branches` promises."""
        home = self._place(self._cursor)
        if home is None:
            return ()
        plans: dict[int, BranchPlan] = {}
        for node in _conditional(body):
            place = self._choice(node) if node._kind_id == _CHOICE else self._statement(node)
            if place is not None and place.file == home.file:
                text = _BLANKS.sub(" ", self._source[place.start : place.end].decode("utf-8", "replace"))
                plans[place.end] = BranchPlan(place.start, place.end, place.line, text)
        return tuple(sorted(plans.values(), key=lambda plan: (plan.start, -plan.end)))

    def _place(self, cursor: Cursor) -> _Place | None:
        """Return where a cursor lies, what comes from a macro at the macro's use; None where it spans files."""
        extent = native.clang_getCursorExtent(cursor)
        native.clang_getExpansionLocation(native.clang_getRangeEnd(extent), *self._out)
        file, end = self._file.value, self._offset.value
        native.clang_getExpansionLocation(native.clang_getRangeStart(extent), *self._out)
        return _Place(file, self._offset.value, end, self._line.value) if file == self._file.value else None

    def _statement(self, node: Cursor) -> _Place | None:
        """Return where the condition of an `if` or a loop lies, None where it cannot be wrapped."""
        inner, outer = children(node), self._place(node)
        if outer is None or not inner or any(child._kind_id == _VARIABLE for child in inner):
            return None
        start = outer.start
        if node._kind_id == _DO:
            body = self._place(inner[0])
            if body is None:
                return None
            start = body.end
        parts, closing = _parenthesised(self._source, start, _KEYWORDS[node._kind_id])
        index = _CONDITION_PART.get((node._kind_id, len(parts)))
        if index is None or (part := parts[index]) is None:
            return None
        places = [self._place(child) for child in inner]
        position = next((index for index, place in enumerate(places) if place is not None and place.start == part[0]), None)
        if position is None or not self._is_decided_at_run_time(inner[position]):
            return None
        if node._kind_id != _DO:
            follower = places[position + 1 if node._kind_id == _IF else -1]
            if follower is None or follower.start <= closing:
                return None
        condition = places[position]
        return None if condition is None else condition._replace(end=part[1])

    def _choice(self, node: Cursor) -> _Place | None:
        """Return where the condition of a `?:` lies, None where it cannot be wrapped."""
        condition = children(node)[0]
        place, outer = self._place(condition), self._place(node)
        if place is None or outer is None or place.start != outer.start or bound(condition, self._cursor._tu).type.kind in _VECTORS:
            return None
        first, *rest = [token for _, token in lexer.scan(self._source[: place.end], place.start)] or [b"#"]
        behind = [token for _, (_, token) in zip(range(2), lexer.scan(self._source, place.end), strict=False)]
        if b"#" in (first, *rest) or behind[:1] != [b"?"] or behind[1:] == [b":"]:
            return None
        # A call may be of a constexpr function, and a `?:` stand where a constant is needed.
        if not self._is_decided_at_run_time(condition, calls=False):
            return None
        return place if self._begins_with(condition, place, first) else None

    def _begins_with(self, condition: Cursor, place: _Place, token: bytes) -> bool:
        """Return whether a condition begins with `token` itself, not with something that a macro of that name stands for."""
        if not lexer.is_word(token.decode("latin-1")) or token in _LEADING_KEYWORDS:
            return True
        leftmost = condition
        while below := [child for child in children(leftmost) if (inner := self._place(child)) is not None and inner.start == place.start]:
            leftmost = below[0]
        spelling: str = bound(leftmost, self._cursor._tu).spelling
        return spelling.split()[-1:] == [token.decode("latin-1")]

    def _is_decided_at_run_time(self, condition: Cursor, *, calls: bool = True) -> bool:
        """Return whether no compiler can know the outcome, nor that of an operand of its `&&` and `||`.

        What a compiler knows must stay as it is: it leaves out code that does not link, and finds that `while (1)` never ends.
        """
        while condition._kind_id in _TRANSPARENT and len(inside := children(condition)) == 1:
            condition = inside[0]
        if condition._kind_id == _BINARY and native.clang_getCursorBinaryOperatorKind(condition) in _AND_OR:
            return all(self._is_decided_at_run_time(operand, calls=calls) for operand in children(condition))
        content = self._content(condition)
        return content.variable or (calls and content.call)

    def _content(self, expression: Cursor) -> _Content:
        variable = call = False
        for node in (expression, *(node for node, _ in subtree(expression, _STOP | {_SIZEOF}))):
            kind = node._kind_id
            call = call or kind == _CALL
            variable = variable or kind == _THIS
            if kind not in _NAMES:
                continue
            declaration = native.clang_getCursorReferenced(node)
            if declaration._kind_id in (_PARAMETER, _FIELD):
                variable = True
            elif declaration._kind_id == _VARIABLE:
                initialiser = self._initialiser(declaration)
                variable, call = variable or initialiser.variable, call or initialiser.call
            elif bound(node, self._cursor._tu).spelling in _COMPILE_TIME:
                return _CONSTANT
        return _Content(variable, call)

    def _initialiser(self, variable: Cursor) -> _Content:
        """Return what a constant is made of; other variables are just that."""
        if not bound(variable, self._cursor._tu).type.is_const_qualified():
            return _Content(variable=True, call=False)
        identity = variable.data[0]
        if identity not in self._constants:
            self._constants[identity] = _CONSTANT  # one that names itself ends here
            contents = [self._content(child) for child in children(variable)]
            self._constants[identity] = _Content(any(content.variable for content in contents), any(content.call for content in contents))
        return self._constants[identity]


def _conditional(body: Body) -> list[Cursor]:
    """Return the statements and expressions with conditions, of a `try` those in its block: a probe's frame is not seen by handlers."""
    if body.cursor._kind_id == _TRY:
        block = next(child for child in children(body.cursor) if child._kind_id == _COMPOUND)
        nodes = subtree(block, _STOP)
    elif any(node._kind_id in _REWRITTEN for node, _ in body.nodes):
        nodes = subtree(body.cursor, _STOP)
    else:
        nodes = body.nodes
    return [node for node, _ in nodes if node._kind_id in _CONDITIONAL]


def _parenthesised(source: bytes, start: int, keyword: bytes) -> tuple[list[tuple[int, int] | None], int]:
    """Return the parts between `;` (None where empty) in the parentheses behind a keyword, and the offset of the closing one.

    No parts where the text at `start` is anything else, or has preprocessor lines in it.
    """
    tokens = lexer.scan(source, start)
    head = next(((offset, token) for offset, token in tokens if token != b";"), None)
    if head is None or head[1] != keyword or next(tokens, (0, b""))[1] != b"(":
        return [], 0
    parts: list[tuple[int, int] | None] = [None]
    depth = 0
    for offset, token in tokens:
        if token == b"#":
            return [], 0
        if token in _CLOSING and depth == 0:
            return parts, offset
        depth += (token in _OPENING) - (token in _CLOSING)
        if token == b";" and depth == 0:
            parts.append(None)
        else:
            part = parts[-1]
            parts[-1] = (offset if part is None else part[0], offset + len(token))
    return [], 0
