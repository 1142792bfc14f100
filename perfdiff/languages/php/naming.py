"""What names mean where they stand: namespaces, and what `use` binds in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tree_sitter import Node

from perfdiff.languages.syntax_trees import child, line, text_of

SUPERGLOBALS = frozenset(("$_SERVER", "$_GET", "$_POST", "$_FILES", "$_COOKIE", "$_SESSION", "$_REQUEST", "$_ENV"))
CLASS, FUNCTION, CONSTANT = "class", "function", "const"
_OWN = frozenset(("self", "static"))
PARENT = "parent"
# Words where a class may stand that name none.
BUILT_IN = frozenset(
    (
        "int", "float", "string", "bool", "array", "iterable", "callable", "object", "mixed", "void", "never", "null", "false", "true",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class UseImport:
    """A name that `use` binds: what kind of thing (`class`, `function`, `const`), and its full name."""

    kind: str
    name: str
    target: str
    line: int


@dataclass(slots=True)
class NamespaceSection:
    """A stretch of a file that is in one namespace, with what is imported there; `nodes` are its statements."""

    file: str
    namespace: str
    imports: dict[tuple[str, str], UseImport] = field(default_factory=dict)  # by kind and name, in lower case but for constants
    nodes: list[Node] = field(default_factory=list)

    def declared(self, name: str) -> str:
        """Return the full name of what is declared under a plain name."""
        return f"{self.namespace}\\{name}" if self.namespace else name

    def of_class(self, name: str) -> str:
        """Return the full name of a class."""
        return self._qualified(CLASS, name)

    def of_function(self, name: str) -> tuple[str, ...]:
        """Return the full names that a function may have, first the one of the namespace."""
        return self._either(FUNCTION, name)

    def of_constant(self, name: str) -> tuple[str, ...]:
        """Return the full names that a constant may have."""
        return self._either(CONSTANT, name)

    def imported(self, kind: str, name: str) -> UseImport | None:
        """Return the import that a name begins with."""
        first, rest = name.partition("\\")[::2]
        kind = CLASS if rest else kind
        return self.imports.get((kind, first if kind == CONSTANT else first.lower()))

    def _either(self, kind: str, name: str) -> tuple[str, ...]:
        if "\\" in name or self.imported(kind, name) is not None or not self.namespace:
            return (self._qualified(kind, name),)
        return (self.declared(name), name)

    def _qualified(self, kind: str, name: str) -> str:
        if name.startswith("\\"):
            return name[1:]
        if name.lower().startswith("namespace\\"):
            return self.declared(name.partition("\\")[2])
        imported = self.imported(kind, name)
        if imported is not None:
            rest = name.partition("\\")[2]
            return f"{imported.target}\\{rest}" if rest else imported.target
        return self.declared(name)


def sections(root: Node, file: str) -> list[NamespaceSection]:
    """Return the stretches of a file by namespace, each with what is imported anywhere in it."""
    sections = [NamespaceSection(file, "")]
    for node in root.children:
        if node.type == "namespace_definition":
            sections.append(NamespaceSection(file, _plain(node.child_by_field_name("name"))))
            body = node.child_by_field_name("body")
            if body is not None:
                for statement in body.named_children:
                    _take(statement, sections[-1])
                sections.append(NamespaceSection(file, ""))
        else:
            _take(node, sections[-1])
    return sections


def _take(node: Node, section: NamespaceSection) -> None:
    if node.type == "namespace_use_declaration":
        for imported in _imports(node):
            name = imported.name if imported.kind == CONSTANT else imported.name.lower()
            section.imports[imported.kind, name] = imported
    else:
        section.nodes.append(node)


def _imports(node: Node) -> Iterator[UseImport]:
    group = node.child_by_field_name("body")
    prefix = f"{_plain(child(node, 'namespace_name'))}\\" if group is not None else ""
    kind = _kind(node) or CLASS
    for clause in (group or node).named_children:
        if clause.type in ("namespace_use_clause", "namespace_use_group_clause"):
            alias = clause.child_by_field_name("alias")
            named = next((part for part in clause.named_children if part.type in ("qualified_name", "name", "namespace_name")), None)
            target = prefix + _plain(named)
            yield UseImport(_kind(clause) or kind, text_of(alias) or target.rpartition("\\")[2], target, line(clause))


def _kind(node: Node) -> str | None:
    return FUNCTION if child(node, "function") is not None else CONSTANT if child(node, "const") is not None else None


def _plain(node: Node | None) -> str:
    return "".join(text_of(node).split()).lstrip("\\")


@dataclass(frozen=True, slots=True)
class Around:
    """What code stands in: its stretch of the file, the full name of its class and of that one's parent ("" where there is none)."""

    section: NamespaceSection
    owner: str = ""
    parent: str = ""

    def class_of(self, word: str) -> str:
        """Return the full name of the class that a word names; "" where it names none."""
        lower = word.lower()
        if lower in _OWN:
            return self.owner
        if lower == PARENT:
            return self.parent
        return "" if lower in BUILT_IN else self.section.of_class(word)
