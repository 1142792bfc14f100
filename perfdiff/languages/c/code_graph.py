"""All code and data of one build's objects as a graph: which symbol refers to which, and how two such graphs differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from perfdiff.languages.c.object_code import STATIC, WHOLE, Atom, ObjectCode, family
from perfdiff.languages.closure import closure

Node = tuple[str, str]  # the object's name, the atom's


@dataclass(frozen=True, slots=True)
class CodeGraph:
    """The atoms of a build's objects. `homes` are the objects that define a name of the whole program, `code` the functions by family."""

    objects: Mapping[str, ObjectCode]
    homes: Mapping[str, tuple[str, ...]]
    code: Mapping[str, tuple[Node, ...]]
    digests: Mapping[str, frozenset[bytes]]

    @classmethod
    def of(cls, objects: Mapping[str, ObjectCode]) -> CodeGraph:
        """Return the graph of objects by name."""
        homes, code, digests = defaultdict[str, list[str]](list), defaultdict[str, list[Node]](list), defaultdict[str, set[bytes]](set)
        for name, code_of_object in sorted(objects.items()):
            for atom in code_of_object.atoms.values():
                digests[atom.name].add(atom.digest)
                if not atom.name.startswith((STATIC, WHOLE)):
                    homes[atom.name].append(name)
                if atom.is_code:
                    code[family(atom.name)].append((name, atom.name))
        return cls(
            objects=objects,
            homes={name: tuple(holders) for name, holders in homes.items()},
            code={name: tuple(nodes) for name, nodes in code.items()},
            digests={name: frozenset(variants) for name, variants in digests.items()},
        )

    def nodes(self) -> Iterator[tuple[Node, Atom]]:
        """Yield all atoms."""
        for name, code_of_object in self.objects.items():
            for atom in code_of_object.atoms.values():
                yield (name, atom.name), atom

    def atom(self, node: Node) -> Atom | None:
        """Return the atom of a node, or None where its object has none of this name."""
        code_of_object = self.objects.get(node[0])
        return None if code_of_object is None else code_of_object.atoms.get(node[1])

    def led_to(self, node: Node, atom: Atom) -> Iterator[Node]:
        """Yield the nodes of the build's own code or data that an atom refers to."""
        for name in atom.references:
            if name.startswith((STATIC, WHOLE)):
                yield node[0], name
            else:
                yield from ((home, name) for home in self.homes.get(name, ()))


def differences(graph: CodeGraph, other: CodeGraph) -> frozenset[Node]:
    """Return the nodes of `graph` that `other` has not: in the object of the same name, or, moved there, in any that is its only one."""
    return frozenset(node for node, atom in graph.nodes() if not _is_in(other, node, atom))


def _is_in(other: CodeGraph, node: Node, atom: Atom) -> bool:
    counterpart = other.atom(node)
    if counterpart is not None:
        return counterpart.digest == atom.digest
    return other.digests.get(atom.name) == frozenset((atom.digest,))


def leading_to(graph: CodeGraph, changed: frozenset[Node]) -> frozenset[Node]:
    """Return the nodes from which one of `changed` can be reached over data alone, themselves included."""
    users: dict[Node, list[Node]] = defaultdict(list)
    for node, atom in graph.nodes():
        for target in graph.led_to(node, atom):
            atom_at = graph.atom(target)
            if atom_at is not None and not atom_at.is_code:
                users[target].append(node)
    return frozenset(closure(changed, lambda node: users.get(node, ())))
