"""The features of a method's input: numbers and sizes of what it is given, and of the fields that its instructions read.

An expression is one line, `HOW PATH`. HOW is `number`, `length`, `nested` (sizes within sizes, summed), `type`, `ordinal`, `file` or
`depth`.
PATH begins at `this`, `argN` (the Nth parameter, from 0) or `static` and goes on by steps `.OWNER#FIELD#DESCRIPTOR`, with internal names;
only such fields are read as the instructions of the method read themselves, to which it has access, and those that methods give back
which it calls, and which do nothing else: `.OWNER#~FIELD#DESCRIPTOR`, as it may have no access to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from perfdiff.languages.identifiers import names_a_file
from perfdiff.languages.java import types
from perfdiff.languages.java.classes import FINAL, INTERFACE, SYNTHETIC, Class, Field, Method
from perfdiff.languages.java.hierarchy import Hierarchy
from perfdiff.languages.planning import nearest
from perfdiff.languages.protocol import FeaturePlan, Load
from perfdiff.records.schema import Origin

_LOADS = {
    **dict.fromkeys("BSIJ", Load.SIGNED),
    **dict.fromkeys("CZ", Load.UNSIGNED),
    **dict.fromkeys("FD", Load.FLOATING),
    **{f"Ljava/lang/{name};": Load.SIGNED for name in ("Byte", "Short", "Integer", "Long")},
    **{f"Ljava/lang/{name};": Load.UNSIGNED for name in ("Character", "Boolean")},
    **{f"Ljava/lang/{name};": Load.FLOATING for name in ("Float", "Double", "Number")},
}
_TEXTS = frozenset(f"Ljava/lang/{name};" for name in ("String", "CharSequence", "StringBuilder", "StringBuffer"))
_INTERFACES = ("Collection", "List", "Set", "SortedSet", "NavigableSet", "Queue", "Deque", "Map", "SortedMap", "NavigableMap")
_CLASSES = (
    *("ArrayList", "LinkedList", "Vector", "Stack", "ArrayDeque", "PriorityQueue", "HashSet", "LinkedHashSet", "TreeSet", "EnumSet"),
    *("HashMap", "LinkedHashMap", "TreeMap", "EnumMap", "WeakHashMap", "IdentityHashMap", "Hashtable", "Properties"),
    *("AbstractCollection", "AbstractList", "AbstractSet", "AbstractMap", "AbstractQueue"),
)
_CONCURRENT = (
    *("BlockingQueue", "BlockingDeque", "TransferQueue", "ConcurrentMap", "ConcurrentNavigableMap"),
    *("ConcurrentHashMap", "ConcurrentSkipListMap", "ConcurrentSkipListSet", "ConcurrentLinkedQueue", "ConcurrentLinkedDeque"),
    *("CopyOnWriteArrayList", "CopyOnWriteArraySet", "ArrayBlockingQueue", "LinkedBlockingQueue", "LinkedBlockingDeque"),
    *("PriorityBlockingQueue", "DelayQueue"),
)
_OPEN_COLLECTIONS = frozenset((*(f"Ljava/util/{name};" for name in _INTERFACES), "Ljava/lang/Iterable;"))
_COLLECTIONS = (
    _OPEN_COLLECTIONS | frozenset(f"Ljava/util/{name};" for name in _CLASSES) | {f"Ljava/util/concurrent/{name};" for name in _CONCURRENT}
)
# Types that say nothing of what a value is: which of numbers and sizes it has is seen when it is there.
_ANY = frozenset(f"Ljava/lang/{name};" for name in ("Object", "Comparable", "Cloneable")) | {"Ljava/io/Serializable;"}
_FILES = frozenset(("Ljava/io/File;", "Ljava/nio/file/Path;"))
_STRING = "Ljava/lang/String;"
_STEP = re.compile(r"\.([^#.]+)#([^#.]+)#([^.]+)")
_GETTER = re.compile(r"aload 0\ngetfield ([^#\n]+)#([^#\n]+)#(\S+)\n(?:arraylength\n)?[ilfda]return\n")
_OUTER, _CAPTURED = "this$", "val$"  # fields of inner classes: the object around, and variables of the method that they stand in
_Step = tuple[str, str, str]  # owner, field, descriptor
_INDIRECT = "~"  # before the name of a field that the runtime reads for the method


@dataclass(frozen=True)
class MethodInputs:
    """The inputs of a method; `parameters` are their names, "" for one without a name."""

    of: Class
    method: Method
    parameters: tuple[str, ...]
    hierarchy: Hierarchy


@dataclass(frozen=True, slots=True)
class _Value:
    """Something that is there when a call begins: how it is named and reached, and its type, generic where that is known."""

    name: str
    path: str
    descriptor: str
    generic: str
    origin: Origin


def plan(inputs: MethodInputs, depth: int) -> tuple[FeaturePlan, ...]:
    """Return the features of a method, nearest first, at most `MAX_FEATURES`; paths have at most `depth` steps."""
    return nearest(_plans(inputs, depth)) if inputs.method.code is not None else ()


def _plans(inputs: MethodInputs, depth: int) -> Iterator[FeaturePlan]:
    code = inputs.method.code
    assert code is not None, "it has instructions"
    parameters = list(_parameters(inputs))
    for value in parameters:
        yield from _plain(value, inputs.hierarchy)
    for value in parameters:
        yield from _derived(value, inputs, is_parameter=True)
    this = _Value("this", "this", f"L{inputs.of.name};", "", Origin.DERIVED)
    if not inputs.method.is_static and inputs.method.name != "<init>":
        yield from _types(this, inputs)
    names = {parameter.path: parameter.name for parameter in parameters}
    for value in sorted(_fields(inputs, names), key=lambda value: _distance(value.path)):
        if _distance(value.path) <= depth:
            yield from _plain(value, inputs.hierarchy)
            yield from _derived(value, inputs, is_parameter=False)


def _parameters(inputs: MethodInputs) -> Iterator[_Value]:
    given = types.parameters(inputs.method.descriptor)
    generic = types.generic_parameters(inputs.method.signature or "")
    before = len(given) - len(generic)  # those that compilers added come first, and have no generic type
    for index, descriptor in enumerate(given):
        name = inputs.parameters[index]
        if name:
            generic_type = generic[index - before] if generic and index >= before else descriptor
            yield _Value(name, f"arg{index}", descriptor, generic_type, Origin.ARGUMENT)


def _fields(inputs: MethodInputs, names: dict[str, str]) -> Iterator[_Value]:
    """Yield the fields that the instructions read, of what is there at the start."""
    for root, steps in _ways(inputs):
        if root == "this" and inputs.method.name == "<init>":
            continue  # nothing is in its fields yet
        owner, field, descriptor = steps[-1]
        origin = Origin.GLOBAL if root == "static" else Origin.FIELD
        if root == "static":
            first_owner, first, _ = steps[0]
            if _is_fixed(inputs, first_owner, first, has_more=len(steps) > 1):
                continue
            name = types.dotted(first_owner).rpartition(".")[2]
        elif root == "this" or root in names:
            name = names.get(root, "this")
        else:
            continue
        for _, named, kind in steps:
            step = named.removeprefix(_INDIRECT)
            if step.startswith(_OUTER):
                name = f"{types.simple(kind)}.this"
            elif step.startswith(_CAPTURED):
                name, origin = step.removeprefix(_CAPTURED), Origin.ARGUMENT if len(steps) == 1 else origin
            else:
                name = f"{name}.{step}"
        if "$" not in name and not field.startswith(_OUTER):
            declared = _declared(inputs, owner, field.removeprefix(_INDIRECT))
            generic = (declared.signature if declared is not None else None) or descriptor
            path = "".join((root, *(f".{'#'.join(step)}" for step in steps)))
            yield _Value(name, path, descriptor, generic, origin)


def _ways(inputs: MethodInputs) -> Iterator[tuple[str, list[_Step]]]:
    """Yield where the instructions begin to follow fields, and which."""
    assert inputs.method.code is not None, "it has instructions"
    for path in inputs.method.code.paths:
        steps = _given_back(inputs, _STEP.findall(path))
        if steps is not None:
            yield path.partition(".")[0], steps


def _given_back(inputs: MethodInputs, steps: Iterable[_Step]) -> list[_Step] | None:
    """Return steps with fields in the place of the methods that give them back, None where one of these does anything else."""
    resolved: list[_Step] = []
    for owner, name, descriptor in steps:
        if not name.endswith("()"):
            resolved.append((owner, name, descriptor))
            continue
        named = inputs.hierarchy.resolved(owner, name.removesuffix("()"), f"(){descriptor}")
        code = inputs.hierarchy.classes[named[0]].by_signature[named[1:]].code if named is not None else None
        gets = _GETTER.fullmatch(code.text) if code is not None else None
        home = inputs.hierarchy.field_owner(gets[1], gets[2]) if gets else None
        if gets is None or home is None:
            return None
        resolved.append((home, gets[2] if home == inputs.of.name else _INDIRECT + gets[2], gets[3]))
    return resolved


def _distance(path: str) -> int:
    """Return how many fields are between a value and what a call is given: its object's surroundings count as given."""
    return sum(not step.startswith((_OUTER, _CAPTURED)) for _, step, _ in _STEP.findall(path))


def _declared(inputs: MethodInputs, owner: str, name: str) -> Field | None:
    home = inputs.hierarchy.field_owner(owner, name)
    return inputs.hierarchy.classes[home].by_field[name] if home is not None else None


def _is_fixed(inputs: MethodInputs, owner: str, name: str, *, has_more: bool) -> bool:
    """Return whether a static field has one value for good: that of another project, such as `System.out`, or one that is final.

    What a final one holds may grow: sizes of texts do not.
    """
    declared = _declared(inputs, owner, name)
    if declared is None:
        return True
    class_ = inputs.hierarchy.classes.get(types.internal(declared.descriptor))
    fixed = declared.descriptor in _LOADS or declared.descriptor in _TEXTS or declared.descriptor.startswith("[")
    fixed = fixed or bool(declared.access & SYNTHETIC) or (class_ is not None and class_.is_enum)
    return bool(declared.access & FINAL) and fixed and not has_more


def _plain(value: _Value, hierarchy: Hierarchy) -> Iterator[FeaturePlan]:
    """Yield a value's number or its size."""
    descriptor = value.descriptor
    if descriptor in _LOADS:
        yield FeaturePlan(value.name, value.origin, _LOADS[descriptor], f"number {value.path}")
    elif descriptor in _ANY:
        yield FeaturePlan(value.name, value.origin, Load.FLOATING, f"number {value.path}")
        yield FeaturePlan(f"size({value.name})", value.origin, Load.UNSIGNED, f"length {value.path}")
    elif descriptor in _TEXTS:
        yield FeaturePlan(f"{value.name}.length()", value.origin, Load.UNSIGNED, f"length {value.path}")
    elif descriptor.startswith("["):
        yield FeaturePlan(f"{value.name}.length", value.origin, Load.UNSIGNED, f"length {value.path}")
    elif descriptor in _COLLECTIONS:
        yield FeaturePlan(f"{value.name}.size()", value.origin, Load.UNSIGNED, f"length {value.path}")
    else:
        class_ = hierarchy.classes.get(types.internal(descriptor))
        if class_ is not None and class_.is_enum:
            labels = dict(enumerate(class_.constants))
            yield FeaturePlan(value.name, value.origin, Load.SIGNED, f"ordinal {value.path}", category=True, labels=labels)


def _derived(value: _Value, inputs: MethodInputs, *, is_parameter: bool) -> Iterator[FeaturePlan]:
    """Yield what can be told of a value beyond its own number or size."""
    code = inputs.method.code
    assert code is not None, "it has instructions"
    is_named = value.descriptor == _STRING and (value.path in code.opened or names_a_file(value.name.rpartition(".")[2]))
    if value.descriptor in _FILES or is_named:
        yield FeaturePlan(f"file size({value.name})", Origin.DERIVED, Load.FILE, f"file {value.path}")
        yield FeaturePlan(f"path depth({value.name})", Origin.DERIVED, Load.DEPTH, f"depth {value.path}")
    is_holder = value.descriptor.startswith("[") or value.descriptor in _COLLECTIONS
    held = map(types.erased, types.elements(value.generic)[-1:])  # of a map its values
    if is_holder and any(element.startswith("[") or element in _TEXTS or element in _COLLECTIONS for element in held):
        yield FeaturePlan(f"total size({value.name})", Origin.DERIVED, Load.UNSIGNED, f"nested {value.path}")
    if is_parameter:
        yield from _types(value, inputs)


def _types(value: _Value, inputs: MethodInputs) -> Iterator[FeaturePlan]:
    """Yield a value's dynamic type, where its class may be one of several and the instructions ask for what depends on it."""
    code = inputs.method.code
    assert code is not None, "it has instructions"
    if value.path in code.asked and _is_open(value.descriptor, inputs.hierarchy):
        yield FeaturePlan(f"{value.name}.getClass()", Origin.DERIVED, Load.TYPE, f"type {value.path}", category=True)


def _is_open(descriptor: str, hierarchy: Hierarchy) -> bool:
    if descriptor in _ANY or descriptor in _OPEN_COLLECTIONS or descriptor == "Ljava/lang/CharSequence;":
        return True
    class_ = hierarchy.classes.get(types.internal(descriptor))
    if class_ is None:
        return False
    return not class_.is_enum and (bool(class_.access & INTERFACE) or bool(hierarchy.descendants(class_.name)))
