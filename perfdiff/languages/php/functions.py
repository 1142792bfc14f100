"""One file: its functions with their keys, texts, meanings and what they name, and the classes and values that it declares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace

from tree_sitter import Node

from perfdiff.languages.php import declarations
from perfdiff.languages.php.branches import plan_branches
from perfdiff.languages.php.expressions import Expressions
from perfdiff.languages.php.facts import (
    ANONYMOUS,
    CLOSURE,
    MAIN,
    FileFacts,
    ImportFacts,
    PhpClassFacts,
    PhpFunctionFacts,
    ValueFacts,
)
from perfdiff.languages.php.features import PhpInputs, parameters, plan_features
from perfdiff.languages.php.meaning import body_of, fingerprint
from perfdiff.languages.php.names import InnerDeclaration, PhpNames
from perfdiff.languages.php.naming import CLASS, Around, NamespaceSection, sections
from perfdiff.languages.php.sources import PhpFile
from perfdiff.languages.php.syntax import CLASSES, CLOSURES, declares, engine_lines, lines_of_comments, parse
from perfdiff.languages.protocol import FunctionDefinition
from perfdiff.languages.stretches import stretches
from perfdiff.languages.syntax_trees import as_ascii, child, inner, line, problem, text_of
from perfdiff.records.differences import Entity, EntityKind

LANGUAGE = "php"
ABSTRACT = "it is abstract: it has no code"
SAME_LINE = "another closure begins on the same line, and the engine tells them by that"
_CONSTRUCTORS = frozenset(("__construct", "__unserialize", "__wakeup"))
_MOST_HEAD = 120  # characters of a parameter list that are shown


def file_facts(source: PhpFile, depth: int) -> FileFacts:
    """Return the facts of one file; where it cannot be parsed as a whole, why, and what can be told of the rest."""
    data = as_ascii(source.data)
    root = parse(data)
    walk = _File(source.file, data, depth)
    try:
        walk.read(root)
    except RecursionError:
        return FileFacts(source.file, (), (), (), (), strict=False, problem="it cannot be read: what is in it is nested too deeply")
    return FileFacts(
        source.file,
        tuple(_without_namesakes(sorted(walk.functions, key=lambda facts: (facts.definition.start, -facts.definition.end)))),
        tuple(walk.classes),
        tuple(walk.values),
        tuple(walk.imports),
        walk.is_strict,
        problem(root),
    )


class _File:
    """Walks over one file; `data` is UTF-8."""

    def __init__(self, file: str, data: bytes, depth: int) -> None:
        self._file, self._data, self._depth = file, data, depth
        self._counts: Counter[str] = Counter()
        self._comments: frozenset[int] = frozenset()
        self.functions, self.classes = list[PhpFunctionFacts](), list[PhpClassFacts]()
        self.values, self.imports = list[ValueFacts](), list[ImportFacts]()
        self.is_strict = False

    def read(self, root: Node) -> None:
        """Take in the whole file."""
        self._comments = lines_of_comments(root, self._data)
        parts = sections(root, self._file)
        self.is_strict = declarations.is_strict(root)
        references, inside = [], list[InnerDeclaration]()
        for section in parts:
            self._imports(section)
            around = Around(section)
            names = PhpNames(around, Expressions(around, {}), top=True)
            names.read(section.nodes)
            for node in section.nodes:
                if node.type == "const_declaration":
                    self.values += declarations.constants(node, Around(section))
            self._defined(names)
            references.append(names)
            inside += names.inner
        keys = self._inside(inside, "", class_level=True)
        self.functions.append(self._main(root, references, keys, inside))

    def _imports(self, section: NamespaceSection) -> None:
        for imported in section.imports.values():
            # Names of functions and constants are looked up beside those of classes: what they bind is told apart by the kind.
            word = "imported name" if imported.kind == CLASS else f"imported name {imported.kind}"
            entity = Entity(EntityKind.IMPORT, word, imported.name)
            self.imports.append(ImportFacts(f"{self._file}::{imported.name}", entity, imported.target, imported.line))

    def _defined(self, names: PhpNames) -> None:
        for node, around in names.defined:
            self.values += declarations.defined(node, around)

    def _inside(self, inner_declarations: Iterable[InnerDeclaration], scope: str, *, class_level: bool) -> list[str]:
        """Take in the functions and classes that begin in a stretch of code; return the keys of those that it hands about."""
        keys: list[str] = []
        for declaration in inner_declarations:
            if declaration.node.type in CLASSES:
                constructor = f"{LANGUAGE}:{self._class(declaration, scope)}::__construct"
                if declaration.node.type == "anonymous_class" and any(facts.definition.key == constructor for facts in self.functions):
                    keys.append(constructor)
            else:
                key = self._function(declaration, scope)
                if not class_level or declaration.node.type in CLOSURES:
                    keys.append(key)
        return keys

    def _class(self, declaration: InnerDeclaration, scope: str) -> str:
        """Take in a class with its methods, and return its full name."""
        node, section = declaration.node, declaration.around.section
        named = node.child_by_field_name("name")
        name = section.declared(text_of(named)) if named is not None else self._numbered(f"{scope or self._file}::{ANONYMOUS}")
        parents = child(node, "base_clause")
        first = (
            next((named_parent for named_parent in parents.named_children if named_parent.type in ("name", "qualified_name")), None)
            if parents is not None
            else None
        )
        parent = section.of_class(text_of(first)) if first is not None and node.type != "interface_declaration" else ""
        around = Around(section, name, parent)
        self.classes.append(declarations.class_facts(node, name, around))
        body = child(node, "declaration_list", "enum_declaration_list")
        for member in body.named_children if body is not None else ():
            self.values += declarations.members(member, around)
            if member.type == "method_declaration":
                self._function(InnerDeclaration(member, around, {}), "")
            for hook in _hooks(member):
                self._function(InnerDeclaration(hook, around, {}), "")
        return name

    def _numbered(self, name: str) -> str:
        """Return a name that no other function of the file has."""
        self._counts[name.lower()] += 1
        count = self._counts[name.lower()]
        return name if count == 1 else f"{name}#{count}"

    def _function(self, declaration: InnerDeclaration, scope: str) -> str:
        node, around = declaration.node, declaration.around
        is_method = node.type in ("method_declaration", "property_hook")
        plain = CLOSURE if node.type in CLOSURES else _own_name(node)
        if is_method:
            name = f"{around.owner}::{plain}"
        elif node.type in CLOSURES:
            name = f"{scope or self._file}::{CLOSURE}"
        else:
            name = around.section.declared(plain)
        name = self._numbered(name)
        names = PhpNames(around, Expressions(around, dict(declaration.types)))
        listed = node.child_by_field_name("parameters")
        names.read(listed.named_children if listed is not None else ())
        returns = names.type_named(node.child_by_field_name("return_type"))
        body = body_of(node)
        names.read([body] if body is not None else ())
        keys = self._inside(names.inner, name, class_level=False)
        self._defined(names)
        self._promoted(node, around)
        definition = self._definition(node, name, plain, names)
        owner = around.owner
        self.functions.append(PhpFunctionFacts(definition, owner, plain if is_method else "", returns, names.references(keys)))
        return definition.key

    def _promoted(self, node: Node, around: Around) -> None:
        listed = node.child_by_field_name("parameters")
        for parameter in listed.named_children if listed is not None else ():
            if parameter.type == "property_promotion_parameter":
                self.values.append(declarations.promoted(parameter, around))

    def _definition(self, node: Node, name: str, plain: str, names: PhpNames) -> FunctionDefinition:
        first, last = engine_lines(node)
        begins, ends = line(node), node.end_point.row + 1
        body, given = body_of(node), tuple(parameters(node))
        static = child(node, "static_modifier") is not None
        has_object = bool(names.around.owner) and not static and node.type != "function_definition"
        inputs = PhpInputs(given, names, has_object, plain.lower() in _CONSTRUCTORS)
        return FunctionDefinition(
            key=f"{LANGUAGE}:{name}",
            name=name,
            names=(name,),
            file=self._file,
            line=first,
            start=node.start_byte,
            body=body.start_byte + (body.type == "compound_statement") if body is not None else node.end_byte,
            end=node.end_byte,
            text=self._text(node.start_byte, node.end_byte),
            signature=_signature(node),
            tokens=fingerprint(node, (parameter.name for parameter in given)),
            features=plan_features(inputs, self._depth) if body is not None else (),
            branches=plan_branches(node) if body is not None else (),
            obstacle=None if body is not None else ABSTRACT,
            linkage=(f"{first} {last} {_engine_name(node, plain, names.around)}",),
            language=LANGUAGE,
            above=first - begins,
            no_code=self._no_code(begins, ends, names.inner),
        )

    def _main(self, root: Node, names_of_sections: list[PhpNames], keys: list[str], inside: list[InnerDeclaration]) -> PhpFunctionFacts:
        name = f"{self._file}::{MAIN}"
        joined = names_of_sections[0]
        for names in names_of_sections[1:]:
            joined = _joined(joined, names)
        last = root.end_point.row + 1
        inputs = PhpInputs((), joined, has_object=False, unset=True)
        definition = FunctionDefinition(
            key=f"{LANGUAGE}:{name}",
            name=name,
            names=(name,),
            file=self._file,
            line=1,
            start=0,
            body=0,
            end=len(self._data),
            text=self._text(0, len(self._data)),
            signature="",
            tokens=fingerprint(root, ()),
            features=plan_features(inputs, self._depth),
            branches=plan_branches(root),
            linkage=(f"1 {last} {MAIN}",),
            language=LANGUAGE,
            no_code=self._no_code(1, last, inside),
            loads=True,
            declares=declares(root),
        )
        return PhpFunctionFacts(definition, "", MAIN, "", joined.references(keys))

    def _no_code(self, first: int, last: int, inside: Iterable[InnerDeclaration]) -> tuple[tuple[int, int], ...]:
        lines = {number for number in self._comments if first <= number <= last}
        for declaration in inside:
            begins, ends = line(declaration.node), declaration.node.end_point.row + 1
            if declaration.node.type in CLOSURES or declaration.node.type == "anonymous_class":
                begins, ends = begins + 1, ends - 1  # where it begins and ends stands code of what makes it
            lines.update(range(begins, ends + 1))
        return stretches(lines)

    def _text(self, start: int, end: int) -> str:
        return self._data[start:end].decode("utf-8", "replace")


def _joined(first: PhpNames, second: PhpNames) -> PhpNames:
    """Return what two stretches of the same code name."""
    for field in fields(PhpNames):
        if isinstance(own := getattr(first, field.name), set | dict):
            own.update(getattr(second, field.name))
    first.inner.extend(second.inner)
    return first


def _hooks(member: Node) -> Iterator[Node]:
    """Yield what runs when properties are read or set that a member of a class declares."""
    declared = member if member.type == "property_declaration" else member.child_by_field_name("parameters")
    return (node for node in inner(declared) if node.type == "property_hook") if declared is not None else iter(())


def _own_name(node: Node) -> str:
    if node.type != "property_hook":
        return text_of(node.child_by_field_name("name"))
    declared: Node | None = node
    while declared is not None and declared.type not in ("property_declaration", "property_promotion_parameter"):
        declared = declared.parent
    if declared is None:
        return text_of(child(node, "name"))
    named = (child(declared, "property_element") or declared).child_by_field_name("name")
    return f"{text_of(named)}::{text_of(child(node, 'name'))}"


def _engine_name(node: Node, plain: str, around: Around) -> str:
    """Return what the engine calls a function: closures by their namespace alone, up to PHP 8.3."""
    if node.type in CLOSURES:
        return around.section.declared(CLOSURE)
    if node.type == "function_definition":
        return around.section.declared(plain)
    owner = ANONYMOUS if ANONYMOUS in around.owner else around.owner
    return f"{owner}::{plain}"


def _signature(node: Node) -> str:
    listed = node.child_by_field_name("parameters")
    text = " ".join(text_of(listed).split()) if listed is not None else "()"
    return text if len(text) <= _MOST_HEAD else f"{text[:_MOST_HEAD]}…"


def _without_namesakes(functions: Sequence[PhpFunctionFacts]) -> Iterator[PhpFunctionFacts]:
    """Yield the facts, those with an obstacle that the engine cannot tell from another function."""
    counts = Counter(map(_place, functions))
    for facts in functions:
        shared = counts[_place(facts)] > 1 and facts.definition.obstacle is None
        yield replace(facts, definition=replace(facts.definition, obstacle=SAME_LINE, features=(), branches=())) if shared else facts


def _place(function: PhpFunctionFacts) -> tuple[str, str]:
    """Return what the engine tells functions of a file by: the line that they begin on, and their name."""
    first, _, name = function.definition.linkage[0].split(" ", 2)
    return first, name
