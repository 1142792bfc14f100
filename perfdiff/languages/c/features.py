"""The features of a function's input, planned from types (Freud §3.1 and §4.1).

What reads them has no side effects, never follows a pointer by itself (the runtime does, fault-safe), and names nothing but parameters,
`this`, and globals that the body names too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from clang.cindex import CursorKind, StorageClass, TypeKind

from perfdiff.languages.c import readers
from perfdiff.languages.c.cursors import FUNCTION, LAMBDA, METHODS, STOP, Body, Cursor, bound, children, native, spelling
from perfdiff.languages.c.layouts import (
    CELL_BYTES,
    SIZED,
    Count,
    FieldLayout,
    Pointer,
    RecordLayout,
    Scalar,
    Shape,
    Text,
    TypeLayouts,
    VectorLayout,
    is_integer,
    measured_texts,
    standard_name,
)
from perfdiff.languages.c.overwritten import THIS, overwritten_fields
from perfdiff.languages.c.ranges import ranges
from perfdiff.languages.identifiers import names_a_file
from perfdiff.languages.planning import MAX_FEATURES, nearest
from perfdiff.languages.protocol import FeaturePlan, Load
from perfdiff.records.schema import Origin

_ENOUGH = 4 * MAX_FEATURES  # wide structures are followed no further once there is this much to choose from

_USES = frozenset((CursorKind.DECL_REF_EXPR.value, CursorKind.MEMBER_REF_EXPR.value))
_FIELD = CursorKind.FIELD_DECL.value
_VARIABLES = (CursorKind.VAR_DECL.value, CursorKind.PARM_DECL.value)
_CLASSES = (CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL)
_TEMPLATES = (CursorKind.CLASS_TEMPLATE, CursorKind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION)
_FILE_SCOPES = (CursorKind.TRANSLATION_UNIT, CursorKind.NAMESPACE, CursorKind.LINKAGE_SPEC)
_REFERENCES = (TypeKind.LVALUEREFERENCE, TypeKind.RVALUEREFERENCE)
_INCOMPLETE = -2  # CXTypeLayoutError_Incomplete


class _Start(NamedTuple):
    """Where a record or a pointer's target begins: `offsets` lead there from `base`, each through a pointer."""

    base: str
    offsets: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Object:
    """A record whose fields can be read.

    `name` ends in the separator before a field's name; `untouched` counts the fields on the way that the body does not name; `above` are
    the records on the way, so that a list is not walked.
    """

    name: str
    start: _Start
    record: RecordLayout
    untouched: int
    above: frozenset[int]

    @property
    def distance(self) -> int:
        """Return how far it is from the function: pointers followed, and one more for each step the body does not take."""
        return len(self.start.offsets) + 1 + self.untouched


class _FieldPlan(NamedTuple):
    """A feature of an object, and the identities of the fields that it is read from."""

    identities: tuple[int, ...]
    plan: FeaturePlan


class _Parameter(NamedTuple):
    """A named parameter; `value_type` has references taken off, `shape` is what can be read of it."""

    name: str
    cursor: Cursor
    value_type: Any
    shape: Shape | None


@dataclass(slots=True)
class _Touched:
    """What a body names: variables by the identity of their declaration, and identities of fields."""

    variables: dict[int, Cursor] = field(default_factory=dict)
    fields: set[int] = field(default_factory=set)


class FeaturePlanner:
    """Plans the features of a unit's functions; what can be read of an object is planned once for all functions that have one like it."""

    def __init__(self, unit: Any, depth: int) -> None:
        self.unit, self.depth, self.layouts = unit, depth, TypeLayouts()
        self._fields: dict[tuple[str, _Start, int], tuple[_FieldPlan, ...]] = {}
        self._links: dict[int, tuple[tuple[FieldLayout, Pointer, RecordLayout], ...]] = {}

    def plans(self, cursor: Cursor, body: Body | None) -> tuple[FeaturePlan, ...]:
        """Return the features of a function or lambda definition, nearest first, at most `MAX_FEATURES`.

        Follows at most `depth` pointers from a parameter or `this`. What cannot be read safely has no plan: unnamed parameters, unions,
        bit-fields, volatile fields, incomplete types, and types that depend on a template's parameters.
        """
        return _FeaturePlanner(self, cursor, body).plans()

    def fields(self, name: str, start: _Start, record: RecordLayout) -> tuple[_FieldPlan, ...]:
        """Return what can be read of a record's own fields: `name` stands before a field's name, the record at the end of `start`."""
        key = (name, start, record.identity)
        if key not in self._fields:
            self._fields[key] = tuple(self._plan_fields(name, start, record))
        return self._fields[key]

    def _plan_fields(self, name: str, start: _Start, record: RecordLayout) -> Iterator[_FieldPlan]:
        base, offsets = start
        if record.polymorphic and not offsets:
            label = f"typeid(*{name[:-2]})" if name.endswith("->") else f"typeid({name[:-1]})"
            yield _FieldPlan((), FeaturePlan(label, Origin.DERIVED, Load.TYPE, readers.dynamic_type(base), True))
        measured = self.layouts.measured(record)
        for member in record.members:
            if member.name not in measured:
                for plan in _read(name, member, base, (*offsets, member.offset)):
                    yield _FieldPlan((member.identity,), plan)
        for span in self.layouts.bounds(record):
            expression = readers.span(base, (*offsets, span.first.offset), span.last.offset, span.element)
            plan = FeaturePlan(f"{name}{span.last.name} - {name}{span.first.name}", Origin.DERIVED, Load.SIGNED, expression)
            yield _FieldPlan((span.first.identity, span.last.identity), plan)

    def links(self, record: RecordLayout) -> tuple[tuple[FieldLayout, Pointer, RecordLayout], ...]:
        """Return the pointers among a record's fields that lead to records."""
        if record.identity not in self._links:
            pointers = ((member, member.shape) for member in record.members if isinstance(member.shape, Pointer))
            targets = ((member, pointer, self.layouts.pointed_to(pointer)) for member, pointer in pointers)
            self._links[record.identity] = tuple((member, pointer, target) for member, pointer, target in targets if target is not None)
        return self._links[record.identity]


class _FeaturePlanner:
    """Plans the features of one function."""

    def __init__(self, planner: FeaturePlanner, cursor: Cursor, body: Body | None) -> None:
        self._planner, self._cursor, self._depth = planner, cursor, planner.depth
        self._layouts: TypeLayouts = planner.layouts
        self._parameters = [_parameter(child, self._layouts) for child in _parameters(cursor) if spelling(child)]
        self._touched = _touched(body, planner.unit, with_locals=cursor._kind_id == LAMBDA)
        self._overwritten: set[tuple[str, int]] = set()  # by what the fields' names begin with

    def plans(self) -> tuple[FeaturePlan, ...]:
        """Return the nearest features; of two with one name, the nearer."""
        plans = [(0, plan) for plan in self._arguments()]
        plans += [(1, plan) for plan in self._globals()]
        owner = self._owner()
        objects = [*self._this(owner), *(target for parameter in self._parameters for target in self._objects_of(parameter))]
        fields_of = owner if owner is not None and owner.kind in _TEMPLATES and self._depth else None
        if objects or fields_of is not None:
            self._overwritten = _overwritten(self._cursor)
        plans += self._behind(objects)
        plans += self._template_fields(fields_of) if fields_of is not None else ()
        return nearest((plan for _, plan in sorted(plans, key=lambda pair: pair[0])), lambda plan: plan.name)

    def _arguments(self) -> Iterator[FeaturePlan]:
        """Yield what the parameters themselves tell: numbers, lengths, sizes, and ranges between two of them."""
        measured = measured_texts([(parameter.name, parameter.shape) for parameter in self._parameters])
        for parameter in self._parameters:
            name, kind, shape = parameter.name, parameter.value_type, parameter.shape
            if kind.is_volatile_qualified():
                continue
            if standard_name(kind) in SIZED:
                yield from _container(name, kind)
            elif isinstance(shape, Scalar):
                yield _number(name, Origin.ARGUMENT, shape, readers.value(shape.load, name))
            elif isinstance(shape, Text) and not shape.inline and name not in measured:
                yield from _text(name)
            elif isinstance(shape, Pointer):
                inner = self._layouts.shape(shape.pointee)
                if isinstance(inner, Count | VectorLayout) and self._depth:
                    start = _start(parameter)
                    yield from _read(f"{name}->", FieldLayout("", 0, inner, 0), start.base, (*start.offsets, 0))
        yield from self._argument_ranges()

    def _argument_ranges(self) -> Iterator[FeaturePlan]:
        names = [parameter.name for parameter in self._parameters]
        shapes = [parameter.shape for parameter in self._parameters]
        for first, last, numbers, pointers in ranges(names):
            shape, low, high = shapes[first], names[first], names[last]
            if numbers and is_integer(shape) and is_integer(shapes[last]):
                difference = f"(pd_signed_t)({high}) - (pd_signed_t)({low})"
            elif pointers and (element := self._layouts.element_size(shape, shapes[last])) is not None:
                difference = f"((pd_signed_t)(unsigned long)({high}) - (pd_signed_t)(unsigned long)({low})) / {element}"
            else:
                continue
            yield FeaturePlan(f"{high} - {low}", Origin.DERIVED, Load.SIGNED, readers.value(Load.SIGNED, difference))

    def _globals(self) -> Iterator[FeaturePlan]:
        """Yield the scalar globals, static members and captures that the body names."""
        parameters = {parameter.name for parameter in self._parameters}
        for variable in self._touched.variables.values():
            kind = _value_type(variable.type)
            shape = self._layouts.shape(kind)
            if not isinstance(shape, Scalar) or kind.is_const_qualified() or kind.is_volatile_qualified():
                continue
            visible = self._visible_name(variable)
            if visible is not None and visible not in parameters:
                origin = Origin.ARGUMENT if variable.semantic_parent.kind.value in STOP | FUNCTION else Origin.GLOBAL
                yield _number(visible.removeprefix("::"), origin, shape, readers.value(shape.load, visible))

    def _visible_name(self, variable: Cursor) -> str | None:
        """Return how the start of the body can name a variable; None for locals, members of other classes and local `extern`s."""
        scope = variable.semantic_parent
        if scope.kind.value in FUNCTION or scope.kind.value == LAMBDA:
            return variable.spelling if self._is_captured(variable) else None
        if scope.kind in _CLASSES or scope.kind in _TEMPLATES:
            return variable.spelling if scope.canonical == self._cursor.semantic_parent.canonical else None
        if variable.lexical_parent is None or variable.lexical_parent.kind not in _FILE_SCOPES:
            return None
        names = [variable.spelling]
        while scope.kind in (CursorKind.NAMESPACE, CursorKind.LINKAGE_SPEC):
            if scope.kind is CursorKind.NAMESPACE and not scope.is_anonymous():
                names.append(scope.spelling)
            scope = scope.semantic_parent
        return names[0] if len(names) == 1 else "::" + "::".join(reversed(names))

    def _is_captured(self, variable: Cursor) -> bool:
        if self._cursor._kind_id != LAMBDA or variable.storage_class is StorageClass.STATIC:
            return False
        extent = self._cursor.extent
        return not extent.start.offset <= variable.location.offset < extent.end.offset

    def _owner(self) -> Cursor | None:
        """Return the class whose `this` the function has; None in constructors, where nothing is set yet."""
        cursor = self._cursor
        if cursor._kind_id not in METHODS or cursor.kind is CursorKind.CONSTRUCTOR or cursor.is_static_method():
            return None
        return cursor.semantic_parent

    def _this(self, owner: Cursor | None) -> Iterator[_Object]:
        if owner is not None and owner.kind in _CLASSES and (record := self._layouts.record(owner.type)) is not None:
            yield _root("this->", _Start("(const void *)(this)"), record)

    def _template_fields(self, owner: Cursor) -> Iterator[tuple[int, FeaturePlan]]:
        """Yield fields of `this` in a class template by their names: there is no layout before instantiation, but access is given."""
        for child in children(owner):
            if child._kind_id != _FIELD:
                continue
            member = bound(child, self._cursor._tu)
            if ("this->", member.data[0]) in self._overwritten:
                continue
            name, kind, shape = f"this->{member.spelling}", _value_type(member.type), self._layouts.shape(member.type)
            distance = 1 if member.data[0] in self._touched.fields else 2
            if not member.spelling or kind.is_volatile_qualified():
                continue
            if standard_name(kind) in SIZED:
                yield from ((distance, plan) for plan in _container(name, kind, Origin.FIELD))
            elif isinstance(shape, Scalar) and kind.kind is not TypeKind.RECORD:
                yield distance, _number(name, Origin.FIELD, shape, readers.value(shape.load, name))

    def _objects_of(self, parameter: _Parameter) -> Iterator[_Object]:
        """Yield the record that a parameter is, refers to, or points to (also through a pointer to the pointer: `struct list **`)."""
        name, kind, shape = parameter.name, parameter.value_type, parameter.shape
        if kind.is_volatile_qualified():
            return
        if (record := self._layouts.record(kind)) is not None:
            if parameter.cursor.storage_class is not StorageClass.REGISTER:
                yield _root(f"{name}.", _start(parameter), record)
        elif isinstance(shape, Pointer):
            start = _start(parameter)
            if (record := self._layouts.pointed_to(shape)) is not None:
                yield _root(f"{name}->", start, record)
            elif (
                isinstance(inner := self._layouts.shape(shape.pointee), Pointer) and (record := self._layouts.pointed_to(inner)) is not None
            ):
                yield _root(f"(*{name})->", _Start(start.base, (*start.offsets, 0)), record)

    def _behind(self, objects: Sequence[_Object]) -> list[tuple[int, FeaturePlan]]:
        """Return the fields of objects and of what they point to, with their distance, the nearest objects first.

        What lies farther away than as many features as are planned is left out.
        """
        frontier, plans = list(objects), list[tuple[int, FeaturePlan]]()
        names, number_at = set[str](), Counter[int]()  # of features of other names, by distance
        while frontier and len(plans) < _ENOUGH:
            target = min(frontier, key=lambda target: target.distance)
            frontier.remove(target)
            if len(target.start.offsets) >= self._depth:
                continue
            if sum(number for distance, number in number_at.items() if distance <= target.distance) >= MAX_FEATURES:
                break
            for identities, plan in self._planner.fields(target.name, target.start, target.record):
                if self._is_overwritten(target.name, identities):
                    continue
                distance = target.distance + (not self._touched.fields.issuperset(identities))
                plans.append((distance, plan))
                number_at[distance] += plan.name not in names
                names.add(plan.name)
            if len(target.start.offsets) + 1 < self._depth:
                frontier += self._next(target)
        return plans

    def _is_overwritten(self, name: str, identities: Sequence[int]) -> bool:
        return bool(self._overwritten) and any((name, identity) in self._overwritten for identity in identities)

    def _next(self, target: _Object) -> Iterator[_Object]:
        """Yield the records that the pointers of a record lead to."""
        for member, pointer, record in self._planner.links(target.record):
            if record.identity not in target.above and not self._is_overwritten(target.name, (member.identity,)):
                yield _Object(
                    f"{target.name}{member.name}{pointer.separator}",
                    _Start(target.start.base, (*target.start.offsets, member.offset)),
                    record,
                    target.untouched + (member.identity not in self._touched.fields),
                    target.above | {record.identity},
                )


def _root(name: str, start: _Start, record: RecordLayout) -> _Object:
    return _Object(name, start, record, 0, frozenset((record.identity,)))


def _parameters(cursor: Cursor) -> list[Cursor]:
    """Return the parameters; libclang's list of arguments leaves out those of templates and lambdas."""
    if cursor._kind_id != LAMBDA and cursor.kind is not CursorKind.FUNCTION_TEMPLATE:
        return list(cursor.get_arguments())
    return [bound(child, cursor._tu) for child in children(cursor) if child._kind_id == CursorKind.PARM_DECL.value]


def _parameter(cursor: Cursor, layouts: TypeLayouts) -> _Parameter:
    kind = _value_type(cursor.type)
    return _Parameter(spelling(cursor), cursor, kind, layouts.shape(kind))


def _overwritten(cursor: Cursor) -> set[tuple[str, int]]:
    """Return the fields of the objects that a function is handed which it sets first, by what their names begin with."""
    return {
        (f"{owner or 'this'}{separator}", identity)
        for owner, identity in overwritten_fields(cursor)
        for separator in (("->",) if owner == THIS else ("->", "."))
    }


def _touched(body: Body | None, unit: Any, *, with_locals: bool) -> _Touched:
    """Return what a body names; variables of functions only `with_locals`, as captures are."""
    touched, seen = _Touched(), set[int]()
    for node, _ in body.nodes if body is not None else ():
        if node._kind_id not in _USES:
            continue
        declaration = native.clang_getCursorReferenced(node)
        kind, identity = declaration._kind_id, declaration.data[0]
        if kind == _FIELD:
            touched.fields.add(identity)
        elif kind in _VARIABLES and identity not in seen:
            seen.add(identity)
            if with_locals or native.clang_getCursorSemanticParent(declaration)._kind_id not in FUNCTION:
                touched.variables[identity] = bound(declaration, unit)
    return touched


def _value_type(kind: Any) -> Any:
    """Return the type of a parameter or variable with references taken off."""
    canonical = kind.get_canonical()
    return canonical.get_pointee().get_canonical() if canonical.kind in _REFERENCES else canonical


def _start(parameter: _Parameter) -> _Start:
    """Return where the record begins that a parameter is, refers to, or points to."""
    name, kind = parameter.name, parameter.value_type
    if kind.kind is TypeKind.POINTER:
        return _Start(f"(const void *)({name})")
    plain_c = parameter.cursor.type.get_canonical().kind not in _REFERENCES and kind.is_pod()  # without an overloaded `&`
    address = f"(const void *)&({name})" if plain_c else f"(const void *)__builtin_addressof({name})"
    return _Start(address, () if standard_name(kind) is None else (0,))  # an owner holds its pointer at its own start


def _number(name: str, origin: Origin, shape: Scalar, expression: str) -> FeaturePlan:
    return FeaturePlan(name, origin, shape.load, expression, shape.labels is not None, shape.labels)


def _container(name: str, kind: Any, origin: Origin = Origin.ARGUMENT) -> Iterator[FeaturePlan]:
    """Yield the size of a standard container that can be named, and what a string says of the file it names."""
    elements = [kind.get_template_argument_type(index) for index in range(max(kind.get_num_template_arguments(), 0))]
    if any(element.kind is not TypeKind.INVALID and element.get_size() == _INCOMPLETE for element in elements):
        return
    yield FeaturePlan(f"{name}.size()", origin, Load.UNSIGNED, readers.value(Load.UNSIGNED, f"{name}.size()"))
    if standard_name(kind) == "basic_string" and elements and elements[0].get_canonical().kind in (TypeKind.CHAR_S, TypeKind.CHAR_U):
        yield from _file(name, f"({name}).c_str()")


def _text(name: str) -> Iterator[FeaturePlan]:
    pointer = f"(const void *)({name})"
    yield FeaturePlan(f"strlen({name})", Origin.DERIVED, Load.TEXT, readers.string(Load.TEXT, pointer))
    yield from _file(name, pointer)


def _file(name: str, pointer: str) -> Iterator[FeaturePlan]:
    """Yield size and depth of the file that a string names, if its own name says that it names one (HotCloud §2)."""
    if names_a_file(name):
        yield FeaturePlan(f"file size({name})", Origin.DERIVED, Load.FILE, readers.string(Load.FILE, pointer))
        yield FeaturePlan(f"path depth({name})", Origin.DERIVED, Load.DEPTH, readers.string(Load.DEPTH, pointer))


def _read(prefix: str, member: FieldLayout, base: str, offsets: tuple[int, ...]) -> Iterator[FeaturePlan]:
    """Yield what a member tells by itself, where `offsets` lead to it."""
    name, shape = prefix + member.name, member.shape
    size = f"{name}.size()" if member.name else f"{name}size()"
    match shape:
        case Scalar() if shape.size <= CELL_BYTES:
            yield _number(name, Origin.FIELD, shape, readers.field(base, offsets, shape))
        case Text(inline=False):
            yield FeaturePlan(f"strlen({name})", Origin.DERIVED, Load.TEXT, readers.field_string(base, offsets))
        case Text(inline=True) if len(offsets) == 1:
            yield FeaturePlan(
                f"strlen({name})", Origin.DERIVED, Load.TEXT, readers.string(Load.TEXT, f"(const char *){base} + {offsets[0]}UL")
            )
        case Count():
            count = Scalar(Load.UNSIGNED, CELL_BYTES)
            yield _number(size, Origin.FIELD, count, readers.field(base, (*offsets[:-1], offsets[-1] + shape.offset), count))
        case VectorLayout():
            yield FeaturePlan(size, Origin.FIELD, Load.SIGNED, readers.span(base, offsets, offsets[-1] + CELL_BYTES, shape.element))
