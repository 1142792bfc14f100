"""What a stretch of code names: dotted names as written, what it binds, and the functions and classes that begin in it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from perfdiff.languages.python.facts import Imported
from perfdiff.languages.python.meaning import bound_lambda
from perfdiff.languages.python.normal import last_name

_BINARY = {ast.Mult: "mul", ast.Div: "truediv", ast.MatMult: "matmul"}  # of those whose methods are not called as they are
_COMPARING = {
    ast.Eq: ("__eq__",),
    ast.NotEq: ("__ne__", "__eq__"),
    ast.Lt: ("__lt__", "__gt__"),
    ast.LtE: ("__le__", "__ge__"),
    ast.Gt: ("__gt__", "__lt__"),
    ast.GtE: ("__ge__", "__le__"),
    ast.In: ("__contains__",),
    ast.NotIn: ("__contains__",),
}
_SUBSCRIPTS = {ast.Load: "__getitem__", ast.Store: "__setitem__", ast.Del: "__delitem__"}
# Methods that built-in functions and statements call on what they are given.
_WALKING = ("__iter__", "__next__")
_BUILTIN_CALLS = {
    **{name: (f"__{name}__",) for name in ("len", "repr", "hash", "iter", "next", "abs", "int", "float", "bytes", "reversed")},
    "str": ("__str__", "__repr__"),
    "bool": ("__bool__", "__len__"),
    "sorted": ("__lt__", *_WALKING),
    "min": ("__lt__", *_WALKING),
    "max": ("__gt__", *_WALKING),
    **dict.fromkeys(("list", "tuple", "any", "all"), _WALKING),
    **dict.fromkeys(("set", "dict"), (*_WALKING, "__hash__", "__eq__")),
    "sum": (*_WALKING, "__add__", "__radd__"),
    "format": ("__format__", "__str__"),
    "print": ("__str__",),
}
_OPENING = frozenset(("open", "Path", "stat", "listdir", "scandir", "read_text", "read_bytes"))
_ASKING = frozenset(("isinstance", "issubclass", "type", "singledispatch"))

# Nodes that name nothing: most of a tree, not worth a visit.
_OPERATORS = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
_LEAVES = frozenset((ast.Constant, *(kind for base in _OPERATORS for kind in base.__subclasses__())))

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True, slots=True)
class InnerFunction:
    """A function that begins in a stretch of code: the name it is bound to, or "", and the qualified name of the class around it, or ""."""

    node: Definition
    name: str
    owner: str


@dataclass(frozen=True, slots=True)
class Assignment:
    """A name that a statement of a module or class gives a value; `owner` is the class, or ""."""

    name: str
    owner: str
    value: ast.expr | None
    statement: ast.stmt


@dataclass
class PythonNames:
    """What a walk over one stretch of code found. Dotted names begin at a plain name: `self.items.append`."""

    module: str  # the module it stands in, for relative imports
    is_package: bool
    loaded: set[str] = field(default_factory=set)
    called: set[str] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    loose: set[str] = field(default_factory=set)
    binds_loose: set[str] = field(default_factory=set)
    inherited: set[str] = field(default_factory=set)
    bound: set[str] = field(default_factory=set)
    made_global: set[str] = field(default_factory=set)  # declared so
    nonlocals: set[str] = field(default_factory=set)
    iterated: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)  # whose type the code asks
    opened: set[str] = field(default_factory=set)
    imports: list[Imported] = field(default_factory=list)
    inner: list[InnerFunction] = field(default_factory=list)
    classes: list[tuple[ast.ClassDef, str]] = field(default_factory=list)  # with their qualified names
    held: list[Assignment] = field(default_factory=list)

    def read(self, nodes: Iterable[ast.AST], owner: str = "") -> None:
        """Walk over nodes; `owner` is the qualified name of the class whose body they are."""
        for node in nodes:
            self._visit(node, owner)

    def _visit(self, node: ast.AST, owner: str) -> None:
        match node:
            case ast.Name():
                self._name(node)
            case ast.Attribute():
                self._attribute(node, owner)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._bind(node.name, owner)
                self.inner.append(InnerFunction(node, node.name, owner))
                self.read(header(node))
            case ast.Lambda():
                self.inner.append(InnerFunction(node, "", owner))
                self.read(header(node))
            case ast.ClassDef():
                self._class(node, owner)
            case ast.Import() | ast.ImportFrom():
                self._import(node, owner)
            case ast.Global():
                self.made_global.update(node.names)
            case ast.Nonlocal():
                self.nonlocals.update(node.names)
            case ast.Call():
                self._call(node, owner)
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                self._assign(node, owner)
            case _:
                self._statement(node)
                self._children(node, owner)

    def _children(self, node: ast.AST, owner: str) -> None:
        for name in node._fields:
            value = getattr(node, name, None)
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, ast.AST) and type(child) not in _LEAVES:
                    self._visit(child, owner)

    def _name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.loaded.add(node.id)
        else:
            self.bound.add(node.id)
            self.stored.add(node.id)

    def _bind(self, name: str, owner: str) -> None:
        if not owner:
            self.bound.add(name)

    def _attribute(self, node: ast.Attribute, owner: str) -> None:
        root, parts = _chain(node)
        is_load = isinstance(node.ctx, ast.Load)
        if isinstance(root, ast.Name):
            dotted = ".".join((root.id, *parts))
            if is_load:
                self.loaded.add(dotted)
            else:
                self.stored.add(dotted)
                self.loaded.add(dotted.rpartition(".")[0])
        elif is_super(root):
            self.inherited.add(parts[0])
            self.loose.update(parts[1:])
        else:
            self.loose.update(parts if is_load else parts[:-1])
            if not is_load:
                self.binds_loose.add(parts[-1])
            self._visit(root, owner)

    def _class(self, node: ast.ClassDef, owner: str) -> None:
        qualname = f"{owner}.{node.name}" if owner else node.name
        self._bind(node.name, owner)
        self.classes.append((node, qualname))
        self.read((*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)))
        own = PythonNames(self.module, self.is_package)
        own.read(node.body, qualname)
        for name in ("called", "loose", "binds_loose", "inherited", "iterated", "made_global"):
            getattr(self, name).update(getattr(own, name))
        # What a class body binds is the class's, and names in it mean that first.
        self.loaded |= {dotted for dotted in own.loaded if dotted.partition(".")[0] not in own.bound}
        self.imports += own.imports
        self.inner += own.inner
        self.classes += own.classes
        self.held += own.held

    def _import(self, node: ast.Import | ast.ImportFrom, owner: str) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                name = alias.asname or alias.name.partition(".")[0]
                self.imports.append(Imported(name, alias.name if alias.asname else name, "", node.lineno))
                if not alias.asname and "." in alias.name:  # the submodule is imported too, though not bound
                    self.imports.append(Imported("", alias.name, "", node.lineno))
            else:
                name = alias.asname or alias.name
                self.imports.append(Imported(name, self._absolute(node), alias.name, node.lineno))
            self._bind(name, owner)

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.module.split(".")
        parts = parts[: len(parts) - node.level + self.is_package]
        return ".".join((*parts, *((node.module,) if node.module else ())))

    def _call(self, node: ast.Call, owner: str) -> None:
        name = last_name(node.func)
        if (dotted := dotted_name(node.func)) is not None:
            self.called.add(dotted)
        if isinstance(node.func, ast.Name):
            self.loose.update(_BUILTIN_CALLS.get(node.func.id, ()))
        arguments = [text for argument in node.args if (text := dotted_name(argument)) is not None]
        if name in _ASKING:
            self.asked.update(arguments[:1])
        if name in _OPENING:
            self.opened.update(arguments[:1])
        match node:
            case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[_, ast.Constant(value=str(attribute)), *_]):
                self.loose.add(attribute)
            case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=str(attribute)), _]):
                self.binds_loose.add(attribute)
        self._children(node, owner)

    def _assign(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, owner: str) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        function = bound_lambda(node)
        for target in targets:
            for name in _plain_names(target):
                if function is None:
                    self.held.append(Assignment(name, owner, node.value, node))
            self._visit(target, owner)
            if isinstance(node, ast.AugAssign):
                self.loose.update(_operators(node.op, in_place=True))
                if (dotted := dotted_name(target)) is not None:
                    self.loaded.add(dotted)
        if function is not None:
            self.inner.append(InnerFunction(function, next(_plain_names(targets[0])), owner))
            self.read(header(function), owner)
        elif node.value is not None:
            self._visit(node.value, owner)

    def _statement(self, node: ast.AST) -> None:
        """Take note of what a node binds besides names, and of the methods that it calls without naming them."""
        match node:
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                self.bound.add(name)
            case ast.MatchMapping(rest=str(name)):
                self.bound.add(name)
            case ast.BinOp():
                self.loose.update(_operators(node.op, in_place=False))
            case ast.Compare():
                self.loose.update(name for operator in node.ops for name in _COMPARING.get(type(operator), ()))
            case ast.Subscript():
                self.loose.add(_SUBSCRIPTS[type(node.ctx)])
            case ast.For() | ast.comprehension():
                self.loose.update(("__iter__", "__next__"))
                self._iterate(node.iter)
            case ast.AsyncFor():
                self.loose.update(("__aiter__", "__anext__"))
            case ast.With():
                self.loose.update(("__enter__", "__exit__"))
            case ast.AsyncWith():
                self.loose.update(("__aenter__", "__aexit__"))
            case ast.Await():
                self.loose.add("__await__")
            case ast.FormattedValue():
                self.loose.update(("__format__", "__str__"))

    def _iterate(self, expression: ast.expr) -> None:
        if (dotted := dotted_name(expression)) is not None:
            self.iterated.add(dotted)
        elif isinstance(expression, ast.Call):
            # `enumerate(rows)`, `zip(a, b)` and `rows.items()` walk over what they are given.
            self.iterated.update(text for argument in expression.args if (text := dotted_name(argument)) is not None)
            if isinstance(expression.func, ast.Attribute) and (dotted := dotted_name(expression.func.value)) is not None:
                self.iterated.add(dotted)


def header(node: Definition) -> tuple[ast.expr, ...]:
    """Return what runs where a function is defined: its decorators and defaults."""
    decorators = () if isinstance(node, ast.Lambda) else node.decorator_list
    return (*decorators, *node.args.defaults, *(default for default in node.args.kw_defaults if default is not None))


def dotted_name(expression: ast.AST) -> str | None:
    """Return a plain or dotted name as written, or None where an expression is none."""
    if isinstance(expression, ast.Name):
        return expression.id
    if isinstance(expression, ast.Attribute):
        root, parts = _chain(expression)
        return ".".join((root.id, *parts)) if isinstance(root, ast.Name) else None
    return None


def is_super(node: ast.AST) -> bool:
    """Return whether an expression is a call of `super`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _chain(node: ast.Attribute) -> tuple[ast.expr, list[str]]:
    """Return what a chain of attributes begins at, and their names in order."""
    parts: list[str] = []
    expression: ast.expr = node
    while isinstance(expression, ast.Attribute):
        parts.append(expression.attr)
        expression = expression.value
    return expression, parts[::-1]


def _plain_names(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _plain_names(element)


def _operators(operator: ast.operator, *, in_place: bool) -> tuple[str, ...]:
    name = _BINARY.get(type(operator)) or type(operator).__name__.lower().removeprefix("bit")
    return (f"__{name}__", f"__r{name}__", *((f"__i{name}__",) if in_place else ()))
