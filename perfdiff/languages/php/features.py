"""The features of a function's input: numbers and sizes of what it is given, and of the properties and globals that its body names.

Which type a value has is known only when it is there: a parameter is planned as a number and by its length, unless its type or its default
rules one of them out, and what does not apply is left unread. Nothing that is read runs code of the program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from perfdiff.languages.identifiers import names_a_file
from perfdiff.languages.php.names import PhpNames
from perfdiff.languages.php.naming import BUILT_IN, SUPERGLOBALS
from perfdiff.languages.planning import nearest
from perfdiff.languages.protocol import FeaturePlan, Load
from perfdiff.languages.syntax_trees import inner, text_of
from perfdiff.records.schema import Origin

_NUMBERS = frozenset(("int", "float", "bool", "false", "true"))
_SIZED = frozenset(("string", "array", "iterable"))
_COLLECTIONS = frozenset(
    (
        "ArrayObject", "ArrayIterator", "SplObjectStorage", "SplFixedArray", "SplDoublyLinkedList", "SplQueue", "SplStack", "SplHeap",
        "SplMinHeap", "SplMaxHeap", "SplPriorityQueue", "Countable", "Traversable", "Iterator", "IteratorAggregate", "ArrayAccess",
    )
)  # fmt: skip
_UNREADABLE = frozenset(("callable", "null", "void", "never", "Closure"))
_STEP = re.compile(r"->|\[|::")
_THIS = "$this"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: `$name`, the names of its types, and its default, None if it has none."""

    name: str
    types: frozenset[str]
    default: Node | None
    is_variadic: bool


@dataclass(frozen=True, slots=True)
class PhpInputs:
    """The inputs of a function: its parameters, and the names in its body.

    `unset` tells that the object has no properties yet when the call begins, `has_object` that there is one.
    """

    parameters: Sequence[Parameter]
    names: PhpNames
    has_object: bool
    unset: bool


def parameters(function: Node) -> Iterator[Parameter]:
    """Yield the parameters of a function."""
    listed = function.child_by_field_name("parameters")
    for declared in listed.named_children if listed is not None else ():
        name = declared.child_by_field_name("name")
        if name is None:
            continue
        named = next((node for node in inner(name) if node.type == "variable_name"), name)
        kind = declared.child_by_field_name("type")
        words = (
            {text_of(node).lstrip("\\") for node in inner(kind) if node.type in ("primitive_type", "named_type")}
            if kind is not None
            else set()
        )
        if kind is not None and kind.type == "optional_type":
            words.add("null")
        simple = {word.lower() if word.lower() in BUILT_IN else word.rpartition("\\")[2] for word in words}
        default = declared.child_by_field_name("default_value")
        yield Parameter(text_of(named), frozenset(simple), default, declared.type == "variadic_parameter")


def plan_features(inputs: PhpInputs, depth: int) -> tuple[FeaturePlan, ...]:
    """Return the features of a function, nearest first, at most `MAX_FEATURES`; paths have at most `depth` steps."""
    return nearest(_plans(inputs, depth))


def _plans(inputs: PhpInputs, depth: int) -> Iterator[FeaturePlan]:
    for parameter in inputs.parameters:
        yield from _argument(parameter, inputs.names)
    for parameter in inputs.parameters:
        yield from _derived(parameter, inputs.names)
    roots = {parameter.name for parameter in inputs.parameters if not parameter.is_variadic}
    if inputs.has_object and not inputs.unset:
        roots.add(_THIS)
    for path in sorted(inputs.names.paths, key=lambda path: (len(_STEP.findall(path)), path)):
        root, steps = _STEP.split(path)[0], len(_STEP.findall(path))
        if root in SUPERGLOBALS or root == "$GLOBALS" or "::" in path:
            steps -= 1
        if steps > depth:
            continue
        if root in roots and root != path:
            yield from _both(path, Origin.FIELD)
        elif root in SUPERGLOBALS or root == "$GLOBALS" or "::" in path:
            yield from [_length(path, Origin.GLOBAL, f"count({path})")] if path in SUPERGLOBALS else _both(path, Origin.GLOBAL)
    for name in sorted(inputs.names.globals):
        yield from _both(f"$GLOBALS[{name[1:]}]", Origin.GLOBAL, name)


def _argument(parameter: Parameter, names: PhpNames) -> Iterator[FeaturePlan]:
    if parameter.is_variadic:
        yield _length(parameter.name, Origin.ARGUMENT, f"count({parameter.name})")
        return
    is_number, is_sized = _kinds(parameter)
    if is_number:
        yield FeaturePlan(parameter.name, Origin.ARGUMENT, Load.FLOATING, f"number {parameter.name}")
    if is_sized:
        yield _length(parameter.name, Origin.ARGUMENT, _length_name(parameter, names))
    objects = parameter.types - BUILT_IN - _COLLECTIONS - _UNREADABLE
    if objects and len(objects) == 1 and parameter.types <= objects | {"null"}:
        yield FeaturePlan(f"{parameter.name}->name", Origin.ARGUMENT, Load.TYPE, f"enum {parameter.name}", category=True)


def _length_name(parameter: Parameter, names: PhpNames) -> str:
    if parameter.types and parameter.types <= {"string", "null"}:
        return f"strlen({parameter.name})"
    if parameter.types & {"array", "iterable"} or parameter.types & _COLLECTIONS or parameter.name in names.iterated | names.counted:
        return f"count({parameter.name})"
    return f"length({parameter.name})"


def _both(path: str, origin: Origin, name: str = "") -> Iterator[FeaturePlan]:
    yield FeaturePlan(name or path, origin, Load.FLOATING, f"number {path}")
    yield _length(path, origin, f"length({name or path})")


def _length(path: str, origin: Origin, name: str) -> FeaturePlan:
    return FeaturePlan(name, origin, Load.UNSIGNED, f"length {path}")


def _derived(parameter: Parameter, names: PhpNames) -> Iterator[FeaturePlan]:
    """Yield what can be told of a parameter beyond its own number or length, where the body asks for it."""
    name = parameter.name
    is_text = not parameter.types or bool(parameter.types & {"string", "mixed"})
    if not parameter.is_variadic and is_text and (names_a_file(name, "uri") or name in names.opened):
        yield FeaturePlan(f"filesize({name})", Origin.DERIVED, Load.FILE, f"file {name}")
        yield FeaturePlan(f"path depth({name})", Origin.DERIVED, Load.DEPTH, f"depth {name}")
    if name in names.iterated and (not parameter.types or bool(parameter.types & {"array", "iterable", "mixed"})):
        yield FeaturePlan(f"sum(count({name}[]))", Origin.DERIVED, Load.UNSIGNED, f"nested {name}")
    if name in names.asked and not parameter.is_variadic:
        yield FeaturePlan(f"{name}::class", Origin.DERIVED, Load.TYPE, f"type {name}", category=True)


def _kinds(parameter: Parameter) -> tuple[bool, bool]:
    """Return whether a parameter may be read as a number, and by its length, by what its type and its default say."""
    if parameter.types:
        unknown = "mixed" in parameter.types
        return unknown or bool(parameter.types & _NUMBERS), unknown or bool(parameter.types & (_SIZED | _COLLECTIONS))
    if parameter.default is not None:
        if parameter.default.type in ("integer", "float", "boolean"):
            return True, False
        if parameter.default.type in ("string", "encapsed_string", "array_creation_expression"):
            return False, True
    return True, True
