"""What a file declares besides functions: classes, constants, cases of enums, properties with their defaults."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from perfdiff.languages.digest import digest
from perfdiff.languages.php.expressions import Expressions, constant_text
from perfdiff.languages.php.facts import DeclaredKind, PhpClassFacts, PhpReferences, ValueFacts
from perfdiff.languages.php.meaning import plain, words
from perfdiff.languages.php.names import PhpNames
from perfdiff.languages.php.naming import Around
from perfdiff.languages.php.syntax import CLASSES
from perfdiff.languages.syntax_trees import child, line, text_of

_MOST_TEXT = 40  # characters of a value that are said when it changes
_MODIFIERS = ("readonly_modifier", "static_modifier")


def is_strict(root: Node) -> bool:
    """Return whether a file declares that its calls check the types of scalars."""
    for node in root.children:
        if node.type == "declare_statement":
            directive = child(node, "declare_directive")
            if directive is not None and "".join(text_of(directive).split()).lower() == "strict_types=1":
                return True
    return False


def constants(node: Node, around: Around) -> Iterator[ValueFacts]:
    """Yield the constants of a `const` statement, of a file or of a class."""
    for element in node.named_children:
        if element.type == "const_element" and (named := child(element, "name")) is not None:
            name = text_of(named) if around.owner else around.section.declared(text_of(named))
            yield _value(DeclaredKind.CONSTANT, name, element, element.named_children[-1], around)


def defined(node: Node, around: Around) -> Iterator[ValueFacts]:
    """Yield the constant of a call of `define`, where its name is written there."""
    arguments = node.child_by_field_name("arguments")
    given = [argument for argument in arguments.named_children if argument.type == "argument"] if arguments is not None else []
    name = constant_text(given[0]) if len(given) > 1 else None
    if name is not None:
        yield _value(DeclaredKind.CONSTANT, name.lstrip("\\"), node, given[1], Around(around.section))


def members(node: Node, around: Around) -> Iterator[ValueFacts]:
    """Yield the values that one member of a class declares."""
    if node.type == "const_declaration":
        yield from constants(node, around)
    elif node.type == "enum_case":
        named, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        yield _value(DeclaredKind.CASE, text_of(named), node, value, around)
    elif node.type == "property_declaration":
        for element in node.named_children:
            if element.type == "property_element":
                name = text_of(element.child_by_field_name("name")).lstrip("$")
                value = element.child_by_field_name("default_value")
                yield _property(name, element, value, node, around)


def promoted(node: Node, around: Around) -> ValueFacts:
    """Return the property that a parameter of a constructor declares."""
    names = text_of(node.child_by_field_name("name")).lstrip("&$ ")
    return _property(names, node, None, node, around)


def class_facts(node: Node, name: str, around: Around) -> PhpClassFacts:
    """Return the facts of a class; `around` is what its members stand in."""
    section = around.section
    parents = [
        section.of_class(text_of(parent))
        for clause in node.children
        if clause.type in ("base_clause", "class_interface_clause")
        for parent in clause.named_children
        if parent.type in ("name", "qualified_name")
    ]
    traits, aliases, rules = list[str](), list[str](), list[str]()
    body = child(node, "declaration_list", "enum_declaration_list")
    for use in body.named_children if body is not None else ():
        if use.type == "use_declaration":
            traits += [section.of_class(text_of(trait)) for trait in use.named_children if trait.type in ("name", "qualified_name")]
            listed = child(use, "use_list")
            for clause in listed.named_children if listed is not None else ():
                rules += plain(words(clause))
                if clause.type == "use_as_clause":
                    aliases += _alias(clause)
    head = [word for part in node.children if part.type in _MODIFIERS or part.type == "primitive_type" for word in plain(words(part))]
    return PhpClassFacts(
        name=name,
        kind=CLASSES[node.type],
        line=line(node),
        parents=tuple(parents),
        traits=tuple(traits),
        aliases=tuple(aliases),
        fingerprint=digest([CLASSES[node.type], *head, "of", *parents, "with", *traits, *rules]),
        summary=_head(parents, traits),
    )


def _head(parents: list[str], traits: list[str]) -> str:
    says = [f"of {', '.join(parents)}"] if parents else []
    says += [f"with {', '.join(traits)}"] if traits else []
    text = " ".join(says)
    return text if len(text) <= 2 * _MOST_TEXT else ""


def _alias(clause: Node) -> Iterator[str]:
    """Yield the alias that a method of a trait gets: `name alias`."""
    source, alias = clause.named_children[0], clause.named_children[-1]
    name = text_of(source.children[-1]) if source.children else text_of(source)
    if alias.type == "name" and alias != source:
        yield f"{name} {text_of(alias)}"


def _property(name: str, shown: Node, value: Node | None, declared: Node, around: Around) -> ValueFacts:
    names = PhpNames(around, Expressions(around, {}))
    declared_type = declared.child_by_field_name("type")
    kind = names.type_named(declared_type)
    modifiers = [text_of(part) for part in declared.children if part.type in _MODIFIERS]
    typed = plain(words(declared_type)) if declared_type is not None else []
    given = plain(words(value)) if value is not None else []
    return ValueFacts(
        DeclaredKind.PROPERTY,
        around.owner,
        name,
        line(shown),
        digest([*modifiers, *typed, "=", *given]),
        _summary(given),
        kind,
        _references(value, around),
    )


def _value(kind: DeclaredKind, name: str, shown: Node, value: Node | None, around: Around) -> ValueFacts:
    given = plain(words(value)) if value is not None else []
    return ValueFacts(kind, around.owner, name, line(shown), digest(given), _summary(given), "", _references(value, around))


def _summary(given: list[str]) -> str:
    text = " ".join(given)
    return text if len(text) <= _MOST_TEXT else ""


def _references(value: Node | None, around: Around) -> PhpReferences:
    names = PhpNames(around, Expressions(around, {}))
    names.read([value] if value is not None else ())
    return names.references()
