"""Types of expressions, and the places of the values that they name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tree_sitter import Node

from perfdiff.languages.php.naming import Around
from perfdiff.languages.syntax_trees import child, text_of

NAMES = frozenset(("name", "qualified_name"))
MEMBERS = frozenset(("member_access_expression", "nullsafe_member_access_expression"))
CALLS = frozenset(("member_call_expression", "nullsafe_member_call_expression"))
THIS = "$this"
_KEY = re.compile(r"[\w.-]+")
_MOST_STEPS = 4  # of a path that probes follow


@dataclass
class Expressions:
    """Knows the types of variables, as far as assignments and parameters tell; `around` is what the code stands in."""

    around: Around
    types: dict[str, str]

    def type_of(self, node: Node) -> str:
        """Return the type of an expression, as `PhpReferences` has them; "" where it is not known."""
        rule = _TYPED.get(node.type)
        return rule(self, node) if rule is not None else ""

    def _type_inside(self, node: Node) -> str:
        return self.type_of(node.named_children[-1]) if node.named_children else ""

    def _type_of_variable(self, node: Node) -> str:
        name = text_of(node)
        return self.around.owner if name == THIS else self.types.get(name, "")

    def _type_of_member(self, node: Node) -> str:
        target, named = node.child_by_field_name("object"), node.child_by_field_name("name")
        owner = self.type_of(target) if target is not None else ""
        call = "()" if node.type in CALLS else ""
        return f"{owner}>{text_of(named)}{call}" if owner and named is not None and named.type == "name" else ""

    def _type_of_scoped(self, node: Node) -> str:
        owner, named = self._class_before(node.child_by_field_name("scope")), node.child_by_field_name("name")
        call = "()" if node.type == "scoped_call_expression" else ""
        return f"{owner}>{text_of(named).lstrip('$')}{call}" if owner else ""

    def _class_before(self, scope: Node | None) -> str:
        return self.around.class_of(text_of(scope)) if scope is not None and scope.type in (*NAMES, "relative_scope") else ""

    def _type_of_call(self, node: Node) -> str:
        function = node.child_by_field_name("function")
        named = function is not None and function.type in NAMES
        return f"fn:{'|'.join(self.around.section.of_function(text_of(function)))}" if named else ""

    def _type_of_assigned(self, node: Node) -> str:
        right = node.child_by_field_name("right")
        return self.type_of(right) if right is not None else ""

    def path_of(self, node: Node) -> str | None:
        """Return where a value lies, as the sheet of probes has it; None where that is no fixed place."""
        kind = node.type
        if kind == "argument" and node.named_children:
            return self.path_of(node.named_children[-1])
        if kind == "variable_name":
            return text_of(node)
        if kind in MEMBERS:
            target, name = node.child_by_field_name("object"), node.child_by_field_name("name")
            path = self.path_of(target) if target is not None else None
            return _short(f"{path}->{text_of(name)}") if path is not None and name is not None and name.type == "name" else None
        if kind == "subscript_expression" and len(node.named_children) == 2:
            target, key = node.named_children
            path, text = self.path_of(target), text_of(key) if key.type == "integer" else constant_text(key)
            return _short(f"{path}[{text}]") if path is not None and text is not None and _KEY.fullmatch(text) else None
        if kind == "scoped_property_access_expression":
            scope, name = node.child_by_field_name("scope"), node.child_by_field_name("name")
            if scope is not None and scope.type in (*NAMES, "relative_scope") and name is not None and name.type == "variable_name":
                owner = self.around.class_of(text_of(scope))
                return f"{owner}::{text_of(name)}" if owner and "@" not in owner else None
        return None


_TYPED: dict[str, Callable[[Expressions, Node], str]] = {
    **dict.fromkeys(("parenthesized_expression", "argument", "clone_expression"), Expressions._type_inside),
    "variable_name": Expressions._type_of_variable,
    **dict.fromkeys((*MEMBERS, *CALLS), Expressions._type_of_member),
    **dict.fromkeys(("scoped_call_expression", "scoped_property_access_expression"), Expressions._type_of_scoped),
    # `Suit::Hearts` is an object of the class, `Box::class` its name where a class is asked for.
    "class_constant_access_expression": lambda known, node: known._class_before(node.children[0]),
    "object_creation_expression": lambda known, node: known._class_before(child(node, "name", "qualified_name")),
    "function_call_expression": Expressions._type_of_call,
    **dict.fromkeys(("assignment_expression", "augmented_assignment_expression"), Expressions._type_of_assigned),
}


def constant_text(node: Node) -> str | None:
    """Return the text that a node is, without variables and escapes in it; None where it is none."""
    if node.type == "argument" and len(node.named_children) == 1:
        return constant_text(node.named_children[0])
    if node.type not in ("string", "encapsed_string"):
        return None
    if any(part.type != "string_content" for part in node.named_children):
        return None
    return "".join(map(text_of, node.named_children))


def _short(path: str) -> str | None:
    return path if path.count("->") + path.count("[") <= _MOST_STEPS else None
