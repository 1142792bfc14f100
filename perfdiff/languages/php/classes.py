"""The classes of a program among each other: parents, traits, and which methods, properties and constants a name may mean."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from perfdiff.languages.closure import closure
from perfdiff.languages.php.facts import DeclaredKind, PhpClassFacts, PhpFunctionFacts, ValueFacts

# More methods of one name than this tell little of which is called: those of classes that the code names are taken.
MOST_NAMESAKES = 20
_MOST_STEPS = 8  # of a type: `$this->a->b()->c`
_FUNCTION = "fn:"


class Classes:
    """The classes of a program with their members, by their full names in lower case, as the engine compares them."""

    def __init__(self, classes: Iterable[PhpClassFacts], functions: Iterable[PhpFunctionFacts], values: Iterable[ValueFacts]) -> None:
        self.classes: dict[str, PhpClassFacts] = {}
        for facts in classes:
            self.classes.setdefault(facts.name.lower(), facts)
        self._children: dict[str, list[str]] = defaultdict(list)
        for name, facts in self.classes.items():
            for above in (*facts.parents, *facts.traits):
                self._children[above.lower()].append(name)
        self._methods: dict[tuple[str, str], list[PhpFunctionFacts]] = defaultdict(list)
        self.methods_named: dict[str, list[PhpFunctionFacts]] = defaultdict(list)
        self._plain: dict[str, list[PhpFunctionFacts]] = defaultdict(list)
        for function in functions:
            if function.owner and function.name:
                self._methods[function.owner.lower(), function.name.lower()].append(function)
                self.methods_named[function.name.lower()].append(function)
            elif not function.owner:
                self._plain[function.definition.name.lower()].append(function)
        self._values: dict[tuple[str, str, str], list[ValueFacts]] = defaultdict(list)
        self.owners: dict[str, set[str]] = defaultdict(set)  # classes that declare a property of a name
        for value in values:
            sort = "property" if value.kind is DeclaredKind.PROPERTY else "constant"
            self._values[sort, value.owner.lower(), value.name].append(value)
            if sort == "property":
                self.owners[value.name].add(value.owner.lower())
        self._lineages: dict[str, tuple[str, ...]] = {}
        self._descendants: dict[str, tuple[str, ...]] = {}

    def lineage(self, name: str) -> tuple[str, ...]:
        """Return a class of the program, its traits and those above it, as far as they are the program's, the nearest first."""
        name = name.lower()
        if name not in self._lineages:
            self._lineages[name] = tuple(closure((name,), self._above)) if name in self.classes else ()
        return self._lineages[name]

    def descendants(self, name: str) -> tuple[str, ...]:
        """Return the classes of the program that inherit from a class, or use it if it is a trait."""
        name = name.lower()
        if name not in self._descendants:
            self._descendants[name] = tuple(closure(self._children.get(name, ()), lambda heir: self._children.get(heir, ())))
        return self._descendants[name]

    def _above(self, name: str) -> list[str]:
        facts = self.classes[name]
        return [above.lower() for above in (*facts.traits, *facts.parents) if above.lower() in self.classes]

    def methods(self, owner: str, name: str) -> Iterator[PhpFunctionFacts]:
        """Yield the methods that a call on an object of a class may reach: its own or the nearest above, and those of its heirs."""
        yield from self._resolved(owner, name)
        for heir in self.descendants(owner):
            yield from self._methods.get((heir, name.lower()), ())
            yield from self._aliased(heir, name)

    def _resolved(self, owner: str, name: str) -> Iterator[PhpFunctionFacts]:
        for ancestor in self.lineage(owner):
            methods = [*self._methods.get((ancestor, name.lower()), ()), *self._aliased(ancestor, name)]
            with_body = [method for method in methods if method.definition.obstacle is None or method.definition.features]
            if methods:
                yield from methods
            if with_body:
                return

    def _aliased(self, owner: str, name: str) -> Iterator[PhpFunctionFacts]:
        """Yield the methods of traits that a class has under another name."""
        facts = self.classes.get(owner)
        for alias in facts.aliases if facts is not None else ():
            source, _, own = alias.partition(" ")
            if own.lower() == name.lower() and facts is not None:
                for trait in facts.traits:
                    yield from self._methods.get((trait.lower(), source.lower()), ())

    def value(self, sort: str, owner: str, name: str) -> list[ValueFacts]:
        """Return the declarations of the constant or property that a name means in a class, or of a constant (no owner)."""
        if not owner:
            return self._values.get((sort, "", name), [])
        return next((values for ancestor in self.lineage(owner) if (values := self._values.get((sort, ancestor, name)))), [])

    def functions(self, candidates: str) -> list[PhpFunctionFacts]:
        """Return the functions that a call by some names, the first that is there, means."""
        return next((functions for name in candidates.split("|") if (functions := self._plain.get(name.lower()))), [])

    def type_of(self, expression: str) -> str:
        """Return the class that a type stands for; "" where it is not known."""
        root, *steps = expression.split(">")
        if len(steps) > _MOST_STEPS:
            return ""
        is_called = root.startswith(_FUNCTION)
        owner = next((function.returns for function in self.functions(root.removeprefix(_FUNCTION))), "") if is_called else root
        for step in steps:
            if not owner:
                return ""
            held = (value.type for value in self.value("property", owner, step))
            owner = self._returned(owner, step[:-2]) if step.endswith("()") else next(held, "")
        return owner

    def _returned(self, owner: str, name: str) -> str:
        method = next(self._resolved(owner, name), None)
        if method is None:
            return ""
        # What a method of a parent returns as its own class is an object of the class that it was called on.
        return owner if method.returns.lower() == method.owner.lower() else method.returns

    def first_owner(self, owner: str, name: str) -> str:
        """Return the class that declares a property: one name for what base and derived classes share."""
        declared = [ancestor for ancestor in self.lineage(owner) if ancestor in self.owners.get(name, ())]
        chosen = declared[-1] if declared else owner.lower()
        return self.classes[chosen].name if chosen in self.classes else owner

    def shown(self, names: Iterable[str]) -> frozenset[str]:
        """Return names of classes as they are written."""
        return frozenset(self.classes[name].name for name in names if name in self.classes)
