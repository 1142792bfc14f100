"""The features of a function's input: numbers and sizes of what it is given, and of the attributes and globals that it names.

Which type a value has is known only when it is there: a parameter is planned as a number and by its length, unless its annotation or
default rules one of them out, and what does not apply is left unread. Nothing that is read runs code of the program.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from perfdiff.languages.identifiers import names_a_file
from perfdiff.languages.planning import nearest
from perfdiff.languages.protocol import FeaturePlan, Load
from perfdiff.languages.python.names import PythonNames
from perfdiff.languages.python.normal import last_name
from perfdiff.records.schema import Origin

_NUMBERS = frozenset(("int", "float", "bool", "complex"))
_BUILT_IN = frozenset(
    ("str", "bytes", "bytearray", "memoryview", "list", "tuple", "dict", "set", "frozenset", "deque", "range", "array", "defaultdict")
)
_ABSTRACT = frozenset(
    ("Text", "AnyStr", "List", "Tuple", "Dict", "Set", "FrozenSet", "Deque", "DefaultDict", "OrderedDict", "Counter", "Sized")
)
_COLLECTIONS = frozenset(("Sequence", "MutableSequence", "Mapping", "MutableMapping", "Collection", "KeysView", "ValuesView", "ItemsView"))
_SIZED = _BUILT_IN | _ABSTRACT | _COLLECTIONS
_UNREADABLE = frozenset(("Callable", "None", "NoneType", "Type", "type"))
_WRAPPERS = frozenset(("Optional", "Union", "Annotated", "Final"))
_ANY = "object"
_ARRAYS = frozenset(("ndarray", "DataFrame", "NDArray", "ArrayLike", "Array"))
_TEXTS = frozenset(("str", "bytes", "AnyStr", "Text"))
_PATHS = frozenset(("Path", "PurePath", "PathLike", "StrPath", "FilePath"))
_NUMBER, _LENGTH = "number", "length"


@dataclass(frozen=True)
class PythonInputs:
    """The inputs of a function: its parameters, which of them is its object, and the names in its body.

    `unset` tells that the object has no attributes yet when the call begins; `variables` are the module's that it sees, `containers` and
    `rebound` those of them whose size, or whose very value, may differ from call to call.
    """

    parameters: ast.arguments
    self_name: str | None
    unset: bool
    names: PythonNames
    variables: frozenset[str]
    containers: frozenset[str]
    rebound: frozenset[str]


def plan_features(inputs: PythonInputs, depth: int) -> tuple[FeaturePlan, ...]:
    """Return the features of a function, nearest first, at most `MAX_FEATURES`; paths have at most `depth` steps."""
    return nearest(_plans(inputs, depth))


def _plans(inputs: PythonInputs, depth: int) -> Iterator[FeaturePlan]:
    parameters = [parameter for parameter in _parameters(inputs.parameters) if parameter[0].arg != inputs.self_name]
    for parameter, default in parameters:
        kinds = _kinds(parameter.annotation, default)
        plans = _both(parameter.arg, parameter.arg, Origin.ARGUMENT)
        yield from (plan for kind, plan in zip((_NUMBER, _LENGTH), plans, strict=True) if kind in kinds)
    for special in (inputs.parameters.vararg, inputs.parameters.kwarg):
        if special is not None:
            yield _length(special.arg, special.arg, Origin.ARGUMENT)
    for parameter, _ in parameters:
        yield from _derived(parameter, inputs.names)
    roots = {parameter.arg for parameter, _ in parameters} | ({inputs.self_name} if inputs.self_name and not inputs.unset else set())
    paths = sorted(_paths(inputs.names), key=lambda path: (path.count("."), path))
    for path in paths:
        root, _, rest = path.partition(".")
        steps = path.count(".")
        if steps > depth:
            break
        if root in roots and rest:
            yield from _both(path, path, Origin.FIELD)
        elif root in inputs.variables and (rest or root in inputs.rebound):
            yield from _both(path, f"@{path}", Origin.GLOBAL)
        elif root in inputs.variables and root in inputs.containers:
            yield _length(path, f"@{path}", Origin.GLOBAL)


def _parameters(arguments: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [*[None] * (len(positional) - len(arguments.defaults)), *arguments.defaults]
    yield from zip(positional, defaults, strict=True)
    yield from zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)


def _both(name: str, path: str, origin: Origin) -> Iterator[FeaturePlan]:
    yield FeaturePlan(name, origin, Load.FLOATING, f"{_NUMBER} {path}")
    yield _length(name, path, origin)


def _length(name: str, path: str, origin: Origin) -> FeaturePlan:
    return FeaturePlan(f"len({name})", origin, Load.UNSIGNED, f"{_LENGTH} {path}")


def _derived(parameter: ast.arg, names: PythonNames) -> Iterator[FeaturePlan]:
    """Yield what can be told of a parameter beyond its own number or length, where the body asks for it."""
    name = parameter.arg
    words = _annotated(parameter.annotation)
    if _is_path(name, words) or name in names.opened:
        yield FeaturePlan(f"file size({name})", Origin.DERIVED, Load.FILE, f"file {name}")
        yield FeaturePlan(f"path depth({name})", Origin.DERIVED, Load.DEPTH, f"depth {name}")
    if name in names.iterated and not words & (_TEXTS | _NUMBERS):
        yield FeaturePlan(f"sum(map(len, {name}))", Origin.DERIVED, Load.UNSIGNED, f"nested {name}")
    if words & _ARRAYS:
        yield FeaturePlan(f"{name}.columns", Origin.DERIVED, Load.UNSIGNED, f"columns {name}")
        yield FeaturePlan(f"{name}.nbytes", Origin.DERIVED, Load.UNSIGNED, f"bytes {name}")
    if name in names.asked or any(dotted.startswith(f"{name}.") for dotted in names.called):
        yield FeaturePlan(f"type({name})", Origin.DERIVED, Load.TYPE, f"type {name}", category=True)


def _is_path(name: str, words: frozenset[str]) -> bool:
    if words & _PATHS:
        return True
    if words and not words & _TEXTS:
        return False
    return names_a_file(name)


def _paths(names: PythonNames) -> Iterable[str]:
    """Return the dotted names that the body reads; of a method that it calls, the object that has it."""
    for dotted in names.loaded:
        path = dotted.rpartition(".")[0] if dotted in names.called else dotted
        if path:
            yield path


def _kinds(annotation: ast.expr | None, default: ast.expr | None) -> frozenset[str]:
    """Return how a parameter may be read, by what its annotation and its default say."""
    words = _annotated(annotation)
    if words:
        unknown = words - _NUMBERS - _SIZED - _UNREADABLE
        kinds = {_NUMBER} if unknown or words & _NUMBERS else set()
        return frozenset(kinds | ({_LENGTH} if unknown or words & _SIZED else set()))
    match default:
        case ast.Constant(value=bool() | int() | float()) | ast.UnaryOp(operand=ast.Constant(value=int() | float())):
            return frozenset((_NUMBER,))
        case ast.Constant(value=str() | bytes()) | ast.Tuple() | ast.List() | ast.Dict():
            return frozenset((_LENGTH,))
    return frozenset((_NUMBER, _LENGTH))


def _annotated(annotation: ast.expr | None) -> frozenset[str]:
    """Return the names of the types that an annotation allows: `int | None` gives `int` and `None`, `list[int]` gives `list`."""
    members: list[ast.expr] = []
    match annotation:
        case None:
            return frozenset()
        case ast.Constant(value=str(text)):
            members = _parsed(text)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            members = [left, right]
        case ast.Subscript(value=value, slice=inner) if last_name(value) in _WRAPPERS:
            members = [*inner.elts] if isinstance(inner, ast.Tuple) else [inner]
        case ast.Subscript(value=value):
            members = [value]
        case ast.Constant(value=None):
            return frozenset(("None",))
        case _:
            return frozenset((last_name(annotation) or _ANY,))
    return frozenset().union(*map(_annotated, members)) if members else frozenset((_ANY,))


def _parsed(text: str) -> list[ast.expr]:
    """Return an annotation that is written as a string."""
    try:
        return [ast.parse(text, mode="eval").body]
    except SyntaxError:
        return []
