"""Fields that a function sets before anybody can read them: what they hold when it is called is no input of it.

Functions that initialise something are called with memory that nobody has written to, which differs from build to build and tells nothing.
"""

from __future__ import annotations

from clang.cindex import CursorKind

from perfdiff.languages.c.cursors import ASSIGN, STOP, Cursor, bound, children, is_null, native, subtree

_BODY = CursorKind.COMPOUND_STMT.value
_BINARY = CursorKind.BINARY_OPERATOR.value
_NAME = CursorKind.DECL_REF_EXPR.value
_MEMBER = CursorKind.MEMBER_REF_EXPR.value
_THIS = CursorKind.CXX_THIS_EXPR.value
_FIELD = CursorKind.FIELD_DECL.value
_PARAMETER = CursorKind.PARM_DECL.value
_CALL = CursorKind.CALL_EXPR.value
_OVERLOADS = CursorKind.OVERLOADED_DECL_REF.value
_UNKNOWN = STOP | {_OVERLOADS, _THIS}
_WRAPPED = frozenset((CursorKind.UNEXPOSED_EXPR.value, CursorKind.PAREN_EXPR.value))

THIS = ""  # the owner of fields of `this`; of a parameter's, its name


def overwritten_fields(cursor: Cursor) -> frozenset[tuple[str, int]]:
    """Return the fields that the body sets first thing, each as the name of the parameter (or `THIS`) and the field's identity.

    Followed are the statements of the body itself, one after the other: an assignment to a field counts up to the first call of the
    program's own functions, which may read what was there, and if nothing before it names the field, or hands on or changes the parameter.
    """
    body = next((child for child in children(cursor) if child._kind_id == _BODY), None)
    fields: set[tuple[str, int]] = set()
    named: set[int] = set()
    for statement in children(body) if body is not None else ():
        targets, values = _assigned(statement)
        nodes = [node for value in values for node in (value, *(below for below, _ in subtree(value, STOP)))]
        if any(_runs_own_code(node, cursor) for node in nodes):
            break
        named |= _named(nodes)
        for target in targets:
            owner, declaration = _owner(target), _declaration(target)
            if declaration is None:
                continue
            if owner is not None and declaration.data[0] not in named and owner[1] not in named:
                fields.add((owner[0], declaration.data[0]))
            named.add(declaration.data[0])
    return frozenset(fields)


def _runs_own_code(node: Cursor, function: Cursor) -> bool:
    """Return whether a node may run code that reads fields: calls of what no system header declares, and `this` as a whole."""
    if node._kind_id in _UNKNOWN:
        return True
    if node._kind_id != _CALL:
        return False
    callee = native.clang_getCursorReferenced(node)
    return is_null(callee) or not bound(callee, function._tu).location.is_in_system_header


def _named(nodes: list[Cursor]) -> set[int]:
    """Return the identities of the fields that nodes name, and of the variables that they name by themselves, not for a field of theirs."""
    reached = {
        base.data[1] for node in nodes if node._kind_id == _MEMBER and (base := _before(node)) is not None and base._kind_id == _NAME
    }
    return {
        native.clang_getCursorReferenced(node).data[0]
        for node in nodes
        if node._kind_id in (_NAME, _MEMBER) and node.data[1] not in reached
    }


def _assigned(statement: Cursor) -> tuple[list[Cursor], list[Cursor]]:
    """Return the places that a statement assigns to, the last first, and what else it evaluates: the whole where it is no assignment."""
    targets: list[Cursor] = []
    while statement._kind_id == _BINARY and native.clang_getCursorBinaryOperatorKind(statement) == ASSIGN:
        target, statement = children(statement)
        targets.insert(0, target)
        while statement._kind_id in _WRAPPED and len(inner := children(statement)) == 1:
            statement = inner[0]
    # What leads to a place is evaluated as well: the index of an element, the pointer before a field.
    return targets, [statement, *(target for target in targets if target._kind_id != _NAME and _owner(target) is None)]


def _owner(place: Cursor) -> tuple[str, int] | None:
    """Return whose field a place is: name and identity of a parameter, `THIS` and 0 for the object itself; None for all else."""
    if place._kind_id != _MEMBER or (declaration := _declaration(place)) is None or declaration._kind_id != _FIELD:
        return None
    before = _before(place)
    if before is None or before._kind_id == _THIS:
        return THIS, 0
    parameter = _declaration(before) if before._kind_id == _NAME else None
    return None if parameter is None or parameter._kind_id != _PARAMETER else (str(parameter.spelling), parameter.data[0])


def _before(member: Cursor) -> Cursor | None:
    """Return what stands before the `->` or `.` of a field; None where nothing does, as it is one of `this`."""
    inner = children(member)
    while len(inner) == 1 and inner[0]._kind_id in _WRAPPED:
        inner = children(inner[0])
    return inner[0] if inner else None


def _declaration(node: Cursor) -> Cursor | None:
    return native.clang_getCursorReferenced(node) if node._kind_id in (_NAME, _MEMBER) else None
