"""What the body of a function touches: one walk over its cursors."""

from __future__ import annotations

from clang.cindex import CursorKind

from perfdiff.languages.c.cursors import ASSIGN, DEREFERENCE, FUNCTION, STOP, WRITING_UNARY, Cursor, native, subtree
from perfdiff.languages.c.references import ALIAS_KEY, ReferenceKind, ReferenceResolver
from perfdiff.languages.closure import Links

_COMPOUND_ASSIGNMENT = CursorKind.COMPOUND_ASSIGNMENT_OPERATOR.value
_BINARY = CursorKind.BINARY_OPERATOR.value
_UNARY = CursorKind.UNARY_OPERATOR.value
_SUBSCRIPT = CursorKind.ARRAY_SUBSCRIPT_EXPR.value
_NAME = CursorKind.DECL_REF_EXPR.value
_MEMBER = CursorKind.MEMBER_REF_EXPR.value
_INITIALISED = CursorKind.MEMBER_REF.value
_CALL = CursorKind.CALL_EXPR.value
_NAMING = frozenset((_NAME, _MEMBER, _INITIALISED))
_TYPE = frozenset((CursorKind.TYPE_REF.value, CursorKind.TEMPLATE_REF.value))
_OVERLOADS = CursorKind.OVERLOADED_DECL_REF.value
_VARIABLE = frozenset((CursorKind.VAR_DECL.value, CursorKind.PARM_DECL.value))
_TRANSPARENT = frozenset((CursorKind.PAREN_EXPR.value, CursorKind.UNEXPOSED_EXPR.value, _SUBSCRIPT))
_CASTS = frozenset(
    kind.value
    for kind in (
        CursorKind.CSTYLE_CAST_EXPR,
        CursorKind.CXX_STATIC_CAST_EXPR,
        CursorKind.CXX_REINTERPRET_CAST_EXPR,
        CursorKind.CXX_CONST_CAST_EXPR,
        CursorKind.CXX_DYNAMIC_CAST_EXPR,
    )
)
_TELLING = _NAMING | _TYPE | _VARIABLE | {_BINARY, _COMPOUND_ASSIGNMENT, _UNARY, _CALL, _OVERLOADS, _SUBSCRIPT}
_TYPED = _VARIABLE | _CASTS | FUNCTION
_METHOD = CursorKind.CXX_METHOD.value


def traffic(nodes: list[tuple[Cursor, Cursor]], references: ReferenceResolver) -> Links:
    """Return what the cursors below a function or initialiser touch. `nodes` come from `subtree(cursor, STOP)`."""
    walk = _BodyWalk(references)
    for cursor, parent in nodes:
        if walk.is_writing or cursor._kind_id in _TELLING:
            walk.visit(cursor, parent)
    return walk.links


class _BodyWalk:
    """The state of one walk.

    `_written` holds the statements whose first child is a place that is written to, `_also_read` those where it is read as well, and
    `_members` the member accesses among them: `a.b = 1` writes to a, `a->b = 1` does not.
    """

    def __init__(self, references: ReferenceResolver) -> None:
        self._references = references
        self._written: set[int | None] = set()
        self._also_read: set[int | None] = set()
        self._members: set[int | None] = set()
        self.links = Links()

    @property
    def is_writing(self) -> bool:
        """Return whether the place that a statement writes to is yet to come."""
        return bool(self._written)

    def visit(self, cursor: Cursor, parent: Cursor) -> None:
        above = parent.data[1]
        written = above in self._written
        if written:
            self._written.discard(above)
            written = above not in self._members or not self._references.is_indirect(native.clang_getCursorType(cursor))
        read = not written or above in self._also_read
        kind = cursor._kind_id
        if kind in _NAMING:
            self._name(cursor, read, written or kind == _INITIALISED)
        elif kind in _TYPE:
            self._type(cursor, parent)
        elif kind in (_BINARY, _COMPOUND_ASSIGNMENT, _UNARY):
            self._operator(cursor, kind)
        elif kind in _VARIABLE:
            self.links.uses.update(self._references.value_types(native.clang_getCursorType(cursor)))
        elif kind == _CALL:
            self._call(cursor)
        elif kind == _OVERLOADS:
            self.links.calls.update(self._references.overloads(cursor).keys)
        if kind == _SUBSCRIPT:
            self.links.uses.update(self._references.value_types(native.clang_getCursorType(cursor)))
        if written and (kind in _TRANSPARENT or kind == _UNARY):
            self._mark(cursor, read=read)

    def _mark(self, cursor: Cursor, *, read: bool) -> None:
        self._written.add(cursor.data[1])
        if read:
            self._also_read.add(cursor.data[1])

    def _name(self, cursor: Cursor, read: bool, written: bool) -> None:
        target = self._references.target(cursor)
        kind = target.kind
        if kind is ReferenceKind.NOTHING:
            return
        if kind is ReferenceKind.FUNCTION:
            self.links.calls.update(target.keys)
            if cursor._kind_id == _MEMBER and self._changes_object(cursor):
                self._mark(cursor, read=True)
            return
        self.links.uses.update(target.keys)
        if kind is ReferenceKind.TYPE:
            return
        if read:
            self.links.reads.add(target.name)
        if written and kind is not ReferenceKind.CONSTANT:
            self.links.writes.add(target.name)
            if cursor._kind_id == _MEMBER:
                self._members.add(cursor.data[1])
                self._mark(cursor, read=read)

    def _changes_object(self, member: Cursor) -> bool:
        method = native.clang_getCursorReferenced(member)
        return method._kind_id == _METHOD and not native.clang_CXXMethod_isConst(method) and not native.clang_CXXMethod_isStatic(method)

    def _type(self, cursor: Cursor, parent: Cursor) -> None:
        target = self._references.target(cursor)
        if target.kind is not ReferenceKind.TYPE:
            return
        if parent._kind_id in _TYPED and self._references.is_indirect(native.clang_getCursorType(parent)):
            # A pointer that is only passed on does not depend on the layout of what it points to.
            self.links.uses.update(key for key in target.keys if key.startswith(ALIAS_KEY))
        else:
            self.links.uses.update(target.keys)

    def _operator(self, cursor: Cursor, kind: int) -> None:
        references, operand_type = self._references, native.clang_getCursorType(cursor)
        if kind == _UNARY:
            operator = native.clang_getCursorUnaryOperatorKind(cursor)
            if operator in WRITING_UNARY:
                self._mark(cursor, read=True)
            elif operator == DEREFERENCE:
                self.links.uses.update(references.value_types(operand_type))
        elif kind == _COMPOUND_ASSIGNMENT:
            self._mark(cursor, read=True)
        elif native.clang_getCursorBinaryOperatorKind(cursor) == ASSIGN:
            self._mark(cursor, read=False)
            self._whole_object(operand_type)
        self.links.uses.update(references.step_types(operand_type))

    def _whole_object(self, kind: object) -> None:
        names = self._references.record_names(kind)
        self.links.reads.update(names)
        self.links.writes.update(names)

    def _call(self, cursor: Cursor) -> None:
        # Constructors and overloaded operators are named by the call alone.
        target = self._references.target(cursor)
        if target.kind is not ReferenceKind.FUNCTION:
            return
        self.links.calls.update(target.keys)
        callee = native.clang_getCursorReferenced(cursor)
        if callee._kind_id == _METHOD and not native.clang_CXXMethod_isConst(callee):
            self._mark(cursor, read=True)


def walk(cursor: Cursor, references: ReferenceResolver) -> Links:
    """Return what the code below a cursor calls, reads and writes, without that of functions inside it."""
    return traffic(subtree(cursor, STOP), references)
