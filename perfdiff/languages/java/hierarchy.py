"""The classes of a project among each other: parents, what inherits, which methods a call may reach."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property

from perfdiff.languages.closure import closure
from perfdiff.languages.java.classes import ABSTRACT, STATIC, Class, Method

Signature = tuple[str, str, str]  # class, name, descriptor

_OBJECT = "java/lang/Object"
_PRIVATE = 0x0002
# A method of another project's type that more classes than this override tells little of which is called.
_MOST_OVERRIDERS = 20


class Hierarchy:
    """The classes of a project by internal name."""

    def __init__(self, classes: Mapping[str, Class]) -> None:
        self.classes = classes
        self._children: dict[str, list[str]] = defaultdict(list)
        for name, class_ in classes.items():
            for parent in (class_.parent, *class_.interfaces):
                if parent is not None:
                    self._children[parent].append(name)
        self._lineages: dict[str, tuple[str, ...]] = {}
        self._descendants: dict[str, tuple[str, ...]] = {}

    def lineage(self, name: str) -> tuple[str, ...]:
        """Return a class of the project and those above it, as far as they are the project's, the nearest first."""
        if name not in self._lineages:
            self._lineages[name] = tuple(closure((name,), self._parents)) if name in self.classes else ()
        return self._lineages[name]

    def descendants(self, name: str) -> tuple[str, ...]:
        """Return the classes of the project that inherit from a class, which may be another project's."""
        if name not in self._descendants:
            self._descendants[name] = tuple(closure(self._children.get(name, ()), lambda heir: self._children.get(heir, ())))
        return self._descendants[name]

    def _parents(self, name: str) -> list[str]:
        class_ = self.classes[name]
        return [parent for parent in (class_.parent, *class_.interfaces) if parent is not None and parent in self.classes]

    def field_owner(self, owner: str, name: str) -> str | None:
        """Return the class of the project that declares a field which is named by `owner`."""
        return next((ancestor for ancestor in self.lineage(owner) if name in self.classes[ancestor].by_field), None)

    def resolved(self, owner: str, name: str, descriptor: str) -> Signature | None:
        """Return the method of the project that a call by `owner` names, looked for from there upwards."""
        key = (name, descriptor)
        declaring = [ancestor for ancestor in self.lineage(owner) if key in self.classes[ancestor].by_signature]
        with_body = (ancestor for ancestor in declaring if not self.classes[ancestor].by_signature[key].access & ABSTRACT)
        chosen = next(with_body, declaring[0] if declaring else None)
        return None if chosen is None else (chosen, name, descriptor)

    def targets(self, call: str) -> Iterator[Signature]:
        """Yield the methods of the project that a call of a class file (`v com/acme/Box put (I)V`) may reach."""
        kind, owner, named_as = call.split(" ", 2)
        name, _, descriptor = named_as.rpartition(" ")  # other languages' names may have spaces
        if owner.startswith("["):
            return
        named = self.resolved(owner, name, descriptor)
        if named is not None:
            yield named
        if kind in "vi" and name != "<init>":
            yield from self._overriders(owner, name, descriptor)

    def _overriders(self, owner: str, name: str, descriptor: str) -> Iterator[Signature]:
        overriding = [heir for heir in self.descendants(owner) if self._overrides(heir, name, descriptor)]
        if owner not in self.classes:
            if not overriding and owner != _OBJECT:
                # Its own children are not known, only what the project's classes say: `Collection.add` may be that of a List.
                overriding = [heir for heir in self._strangers.get((name, descriptor), ()) if self._overrides(heir, name, descriptor)]
            if len(overriding) > _MOST_OVERRIDERS:
                return
        for heir in overriding:
            yield heir, name, descriptor

    def _overrides(self, owner: str, name: str, descriptor: str) -> bool:
        method = self.classes[owner].by_signature.get((name, descriptor))
        return method is not None and is_virtual(method)

    @cached_property
    def _strangers(self) -> dict[tuple[str, str], list[str]]:
        """Return the classes that inherit from another project's type besides Object, by the methods that they have."""
        heirs: dict[tuple[str, str], list[str]] = defaultdict(list)
        for name, class_ in self.classes.items():
            parents = {parent for above in self.lineage(name) for parent in (self.classes[above].parent, *self.classes[above].interfaces)}
            if any(parent not in self.classes and parent not in (_OBJECT, None) for parent in parents):
                for method in class_.methods:
                    if is_virtual(method):
                        heirs[method.name, method.descriptor].append(name)
        return heirs

    def overridden(self, owner: str, method: Method) -> str | None:
        """Return the nearest class above that has a method of the same signature."""
        above = self.lineage(owner)[1:]
        return next((ancestor for ancestor in above if self._overrides(ancestor, method.name, method.descriptor)), None)


def is_virtual(method: Method) -> bool:
    """Return whether which method is called depends on the object."""
    return not method.access & (STATIC | _PRIVATE) and not method.name.startswith("<")
