"""What a stretch of code names: functions, methods by their receivers, classes, constants, properties, and what begins in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields

from tree_sitter import Node

from perfdiff.languages.php.expressions import CALLS, MEMBERS, NAMES, THIS, Expressions, constant_text
from perfdiff.languages.php.facts import Member, PhpReferences
from perfdiff.languages.php.inclusions import written_path
from perfdiff.languages.php.naming import BUILT_IN, CLASS, CONSTANT, FUNCTION, SUPERGLOBALS, Around
from perfdiff.languages.php.syntax import CLASSES, CLOSURES, COMMENT, spine
from perfdiff.languages.syntax_trees import child, text_of

_CALLABLE = re.compile(r"\\?[A-Za-z_][\w\\]*(?:::[A-Za-z_]\w*)?")
_WORD = re.compile(r"[A-Za-z_]\w*")
_COUNTING = frozenset(("count", "sizeof"))
_WALKING = frozenset(
    ("array_map", "array_filter", "array_walk", "array_sum", "array_merge", "implode", "usort", "in_array", "array_reduce", "array_column")
)
_OPENING = frozenset(
    (
        "fopen", "file", "file_get_contents", "readfile", "filesize", "is_file", "is_dir", "file_exists", "scandir", "opendir", "glob",
        "simplexml_load_file", "parse_ini_file", "md5_file", "hash_file", "stat", "unlink", "copy", "rename", "mkdir", "filemtime",
    )
)  # fmt: skip
# Methods that built-in functions and statements call on what they are given.
_BUILT_IN_CALLS: dict[str, tuple[str, ...]] = {
    "count": ("count",),
    "sizeof": ("count",),
    "json_encode": ("jsonSerialize",),
    "serialize": ("__serialize", "__sleep"),
    "unserialize": ("__unserialize", "__wakeup"),
    "strval": ("__toString",),
    "iterator_to_array": ("getIterator", "current", "key", "next", "rewind", "valid"),
    "iterator_apply": ("getIterator", "current", "key", "next", "rewind", "valid"),
}
_ITERATING = ("getIterator", "current", "key", "next", "rewind", "valid")


@dataclass(frozen=True, slots=True)
class InnerDeclaration:
    """A function or class that begins in a stretch of code, with what it stands in and the types of variables that it sees."""

    node: Node
    around: Around
    types: Mapping[str, str]


@dataclass
class PhpNames:
    """What a walk over one stretch of code found. `top` tells that its variables are everybody's."""

    around: Around
    expressions: Expressions  # the types of its variables
    top: bool = False
    functions: set[str] = field(default_factory=set)
    methods: set[Member] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)
    constants: set[str] = field(default_factory=set)
    class_constants: set[Member] = field(default_factory=set)
    reads: set[Member] = field(default_factory=set)
    writes: set[Member] = field(default_factory=set)
    reads_globals: set[str] = field(default_factory=set)
    writes_globals: set[str] = field(default_factory=set)
    handed: set[str] = field(default_factory=set)
    included: set[str] = field(default_factory=set)
    imports: set[str] = field(default_factory=set)
    inner: list[InnerDeclaration] = field(default_factory=list)
    defined: list[tuple[Node, Around]] = field(default_factory=list)  # calls of `define`
    paths: dict[str, None] = field(default_factory=dict)  # values that are read, as the sheet of probes has them
    iterated: set[str] = field(default_factory=set)
    counted: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)  # whose methods are called, or type asked for
    opened: set[str] = field(default_factory=set)
    globals: set[str] = field(default_factory=set)

    def read(self, nodes: Iterable[Node]) -> None:
        """Walk over nodes."""
        for node in nodes:
            self._visit(node)

    def references(self, inner: Iterable[str] = ()) -> PhpReferences:
        """Return the names that were collected, as immutable sets."""
        named = {field.name: frozenset(getattr(self, field.name)) for field in fields(PhpReferences) if field.name != "inner"}
        return PhpReferences(**named, inner=frozenset(inner))

    def named_class(self, node: Node | None) -> str:
        """Return the full name of the class that a node names, and take note of it; "" where it names none."""
        if node is None or node.type not in (*NAMES, "relative_scope", "named_type", "static", "self", "parent"):
            return ""
        word = "".join(text_of(node).split())
        full_name = self.around.class_of(word)
        self._import(CLASS, word)
        if full_name:
            self.classes.add(full_name)
        return full_name

    def type_named(self, node: Node | None) -> str:
        """Return the class that a declared type allows, "" where it is several or none; all of them are taken note of."""
        if node is None:
            return ""
        named = [type_node for type_node in _types(node) if text_of(type_node).lower() not in BUILT_IN]
        classes = [self.named_class(type_node) for type_node in named]
        return classes[0] if len(classes) == 1 else ""

    def _visit(self, node: Node) -> None:
        visit = _VISITS.get(node.type)
        if visit is not None:
            visit(self, node)
        elif node.type != COMMENT:
            for part in node.named_children:
                self._visit(part)

    def _skip(self, node: Node) -> None:
        """Leave out what names nothing that runs."""

    def _inner(self, node: Node) -> None:
        self.inner.append(InnerDeclaration(node, self.around, dict(self.expressions.types) if node.type in CLOSURES else {}))
        for part in node.children:
            if node.type in CLASSES and part.type == "arguments":
                self._visit(part)

    def _function_call(self, node: Node) -> None:
        function = node.child_by_field_name("function")
        arguments = _arguments(node)
        if function is not None and function.type in NAMES:
            name = text_of(function)
            self.functions.add("|".join(self.around.section.of_function(name)))
            self._import(FUNCTION, name)
            self._built_in(name.lstrip("\\").lower(), node, arguments)
        elif function is not None:
            self._visit(function)
            self.methods.add((self.expressions.type_of(function), "__invoke"))
        self._call_arguments(node)

    def _built_in(self, name: str, node: Node, arguments: list[Node]) -> None:
        self.methods.update(("", method) for method in _BUILT_IN_CALLS.get(name, ()))
        if name == "define":
            self.defined.append((node, self.around))
        paths = [path for argument in arguments if (path := self.expressions.path_of(argument)) is not None]
        if name in _COUNTING:
            self.counted.update(paths[:1])
        if name in _WALKING:
            self.iterated.update(paths)
        if name in _OPENING:
            self.opened.update(paths[:1])
        if name in ("is_a", "get_class", "is_subclass_of", "gettype"):
            self.asked.update(paths[:1])

    def _call_arguments(self, node: Node) -> None:
        for argument in _arguments(node):
            text = constant_text(argument)
            if text is not None and _CALLABLE.fullmatch(text):
                self.handed.add(text.lstrip("\\"))
            self._visit(argument)

    def _method_call(self, node: Node) -> None:
        target, name = node.child_by_field_name("object"), node.child_by_field_name("name")
        assert target is not None, "a method is called on something"
        self._visit(target)
        if (path := self.expressions.path_of(target)) is not None:
            self.asked.add(path)
        if name is not None and name.type == "name":
            self.methods.add((self.expressions.type_of(target), text_of(name)))
        elif name is not None:
            self._visit(name)
        self._call_arguments(node)

    def _scoped_call(self, node: Node) -> None:
        scope, name = node.child_by_field_name("scope"), node.child_by_field_name("name")
        owner = self._scope(scope)
        if name is not None and name.type == "name":
            self.methods.add((owner, text_of(name)))
        elif name is not None:
            self._visit(name)
        self._call_arguments(node)

    def _scope(self, scope: Node | None) -> str:
        """Return the class before `::`."""
        if scope is None or scope.type in (*NAMES, "relative_scope"):
            return self.named_class(scope)
        self._visit(scope)
        return self.expressions.type_of(scope)

    def _touch(self, node: Node, *, writes: bool = False) -> None:
        """Take note of a value that is read or written."""
        kind = node.type
        if kind in MEMBERS:
            target, name = node.child_by_field_name("object"), node.child_by_field_name("name")
            assert target is not None, "a property is some object's"
            self._visit(target)
            if name is not None and name.type == "name":
                (self.writes if writes else self.reads).add((self.expressions.type_of(target), text_of(name)))
                self.methods.add((self.expressions.type_of(target), "__set" if writes else "__get"))
                self._path(node)
            elif name is not None:
                self._visit(name)
        elif kind == "scoped_property_access_expression":
            owner, name = self._scope(node.child_by_field_name("scope")), node.child_by_field_name("name")
            if name is not None and name.type == "variable_name":
                (self.writes if writes else self.reads).add((owner, text_of(name).lstrip("$")))
                self._path(node)
        elif kind == "subscript_expression":
            target, *keys = node.named_children
            self._touch(target, writes=writes)
            self.read(keys)
            self.methods.add((self.expressions.type_of(target), "offsetSet" if writes else "offsetGet"))
            self._path(node)
            if text_of(target) == "$GLOBALS" and keys and (key := constant_text(keys[0])) is not None:
                (self.writes_globals if writes else self.reads_globals).add(f"${key}")
        elif kind == "variable_name":
            self._variable(node, writes=writes)
        elif kind in ("list_literal", "array_creation_expression", "array_element_initializer", "by_ref", "pair"):
            for element in node.named_children:
                self._touch(element, writes=writes)
        else:
            self._visit(node)

    def _variable(self, node: Node, *, writes: bool = False) -> None:
        name = text_of(node)
        if name in SUPERGLOBALS:
            self._path(node)
        if (self.top and name != THIS) or name in self.globals:
            (self.writes_globals if writes else self.reads_globals).add(name)

    def _path(self, node: Node) -> None:
        if (path := self.expressions.path_of(node)) is not None:
            self.paths[path] = None

    def _class_constant(self, node: Node) -> None:
        scope, name = node.children[0], node.children[-1]
        owner = self._scope(scope)
        if name.type == "name":
            self.class_constants.add((owner, text_of(name)))

    def _create(self, node: Node) -> None:
        for part in node.named_children:
            if part.type in NAMES:
                self.methods.add((self.named_class(part), "__construct"))
            elif part.type == "arguments":
                self._call_arguments(node)
            else:
                self._visit(part)

    def _name(self, node: Node) -> None:
        """Take note of a constant: that is what a name stands for where nothing else is known of it."""
        name = text_of(node)
        if not name.startswith("__"):
            self.constants.add("|".join(self.around.section.of_constant(name)))
            self._import(CONSTANT, name)

    def _binary(self, node: Node) -> None:
        *outer, innermost = spine(node)
        self._operands(innermost, innermost.child_by_field_name("left"))
        for expression in reversed(outer):
            self._operands(expression, None)

    def _operands(self, node: Node, left: Node | None) -> None:
        """Take note of what an operator is applied to; of what stands on its left where that was not yet."""
        operator, right = text_of(node.child_by_field_name("operator")).lower(), node.child_by_field_name("right")
        if left is not None:
            self._visit(left)
        if operator == "instanceof" and right is not None and left is not None:
            if (path := self.expressions.path_of(left)) is not None:
                self.asked.add(path)
            if right.type in NAMES:
                self.named_class(right)
                return
        if operator == ".":
            self.methods.add(("", "__toString"))
        if right is not None:
            self._visit(right)

    def _catch(self, node: Node) -> None:
        kind, name = node.child_by_field_name("type"), node.child_by_field_name("name")
        if kind is not None:
            classes = [self.named_class(type_node) for type_node in _types(kind)]
            if name is not None and len(classes) == 1:
                self.expressions.types[text_of(name)] = classes[0]
        body = node.child_by_field_name("body")
        if body is not None:
            self._visit(body)

    def _assign(self, node: Node) -> None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if right is not None:
            self._visit(right)
        if left is None:
            return
        if node.type == "augmented_assignment_expression":
            self._touch(left, writes=False)
        self._touch(left, writes=True)
        if left.type == "variable_name" and right is not None:
            name, assigned = text_of(left), self.expressions.type_of(right)
            self.expressions.types[name] = assigned if self.expressions.types.get(name, assigned) == assigned else ""

    def _update(self, node: Node) -> None:
        for operand in node.named_children:
            self._touch(operand, writes=False)
            self._touch(operand, writes=True)

    def _unset(self, node: Node) -> None:
        for variable in node.named_children:
            self._touch(variable, writes=True)

    def _foreach(self, node: Node) -> None:
        source, target, *rest = [part for part in node.named_children if part.type != COMMENT]
        self._visit(source)
        if (path := self.expressions.path_of(source)) is not None:
            self.iterated.add(path)
        self.methods.update((self.expressions.type_of(source), name) for name in _ITERATING)
        self._touch(target, writes=True)
        self.read(rest)

    def _global(self, node: Node) -> None:
        self.globals.update(text_of(part) for part in node.named_children if part.type == "variable_name")

    def _include(self, node: Node) -> None:
        path = written_path(node.named_children[0], self.around.section.file) if node.named_children else None
        if path is not None:
            self.included.add(path)
        self.read(node.named_children)

    def _clone(self, node: Node) -> None:
        self.methods.update((self.expressions.type_of(cloned), "__clone") for cloned in node.named_children[:1])
        self.read(node.named_children)

    def _interpolated(self, node: Node) -> None:
        if any(part.type != "string_content" for part in node.named_children):
            self.methods.add(("", "__toString"))
        self.read(node.named_children)

    def _array(self, node: Node) -> None:
        elements = [element.named_children for element in node.named_children]
        if len(elements) == 2 and all(len(element) == 1 for element in elements):
            owner, name = elements[0][0], constant_text(elements[1][0])
            if name is not None and _WORD.fullmatch(name):
                written = constant_text(owner)
                self.methods.add((written.lstrip("\\") if written else self.expressions.type_of(owner), name))
        self.read(node.named_children)

    def _argument(self, node: Node) -> None:
        named = node.child_by_field_name("name")
        self.read(part for part in node.named_children if part != named)

    def _class_words(self, node: Node) -> None:
        for name in node.named_children:
            self.named_class(name)

    def _parameter(self, node: Node) -> None:
        class_name = self.type_named(node.child_by_field_name("type"))
        name = node.child_by_field_name("name")
        if class_name and name is not None and node.type != "variadic_parameter":
            self.expressions.types[text_of(name)] = class_name
        default = node.child_by_field_name("default_value")
        if default is not None:
            self._visit(default)

    def _import(self, kind: str, word: str) -> None:
        imported = self.around.section.imported(kind, word)
        if imported is not None:
            self.imports.add(imported.name)


_VISITS: dict[str, Callable[[PhpNames, Node], object]] = {
    "attribute_list": PhpNames._skip,
    "namespace_use_declaration": PhpNames._skip,
    "declare_statement": PhpNames._skip,
    "text_interpolation": PhpNames._skip,
    "function_definition": PhpNames._inner,
    "method_declaration": PhpNames._inner,
    "property_hook": PhpNames._inner,
    **dict.fromkeys(CLOSURES, PhpNames._inner),
    **dict.fromkeys(CLASSES, PhpNames._inner),
    "function_call_expression": PhpNames._function_call,
    **dict.fromkeys(CALLS, PhpNames._method_call),
    "scoped_call_expression": PhpNames._scoped_call,
    **dict.fromkeys(MEMBERS, PhpNames._touch),
    "scoped_property_access_expression": PhpNames._touch,
    "subscript_expression": PhpNames._touch,
    "variable_name": PhpNames._variable,
    "class_constant_access_expression": PhpNames._class_constant,
    "object_creation_expression": PhpNames._create,
    "name": PhpNames._name,
    "qualified_name": PhpNames._name,
    "binary_expression": PhpNames._binary,
    "named_type": PhpNames.type_named,
    "catch_clause": PhpNames._catch,
    "assignment_expression": PhpNames._assign,
    "augmented_assignment_expression": PhpNames._assign,
    "reference_assignment_expression": PhpNames._assign,
    "update_expression": PhpNames._update,
    "unset_statement": PhpNames._unset,
    "foreach_statement": PhpNames._foreach,
    "global_declaration": PhpNames._global,
    "include_expression": PhpNames._include,
    "include_once_expression": PhpNames._include,
    "require_expression": PhpNames._include,
    "require_once_expression": PhpNames._include,
    "clone_expression": PhpNames._clone,
    "encapsed_string": PhpNames._interpolated,
    "heredoc": PhpNames._interpolated,
    "array_creation_expression": PhpNames._array,
    "argument": PhpNames._argument,
    "goto_statement": PhpNames._skip,
    "named_label_statement": PhpNames._skip,
    "simple_parameter": PhpNames._parameter,
    "variadic_parameter": PhpNames._parameter,
    "property_promotion_parameter": PhpNames._parameter,
    "base_clause": PhpNames._class_words,
    "class_interface_clause": PhpNames._class_words,
}


def _arguments(node: Node) -> list[Node]:
    arguments = node.child_by_field_name("arguments") or child(node, "arguments")
    return [argument for argument in arguments.named_children if argument.type == "argument"] if arguments is not None else []


def _types(node: Node) -> list[Node]:
    """Return the types that a declared type is made of."""
    if node.type in ("named_type", "primitive_type", *NAMES):
        return [node]
    return [leaf for part in node.named_children for leaf in _types(part)]
