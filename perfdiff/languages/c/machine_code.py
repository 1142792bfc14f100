"""Whether base and head are the same machine code: as programs, and function by function.

Programs and shared objects are alike where all that is loaded of them is the same to the byte (`loaded.py`). Functions are compared by
what the processor is given, not by their sources: code and data symbol by symbol, references by name (`object_code.py`). A function whose
code is the same, and so is all data that it leads to, cannot itself be slower for what was changed in it. That proves nothing of a program:
how its functions and data lie in memory, and in which order its constructors run, may cost time by itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from perfdiff.languages.c import linked, loaded
from perfdiff.languages.c.built_files import look_through
from perfdiff.languages.c.code_graph import CodeGraph, Node, differences, leading_to
from perfdiff.languages.c.elf import DamagedElfError
from perfdiff.languages.c.object_code import WHOLE, ObjectCode, raw_digest, take_apart
from perfdiff.languages.c.objects import Objects, gather
from perfdiff.languages.matching import FLAGS
from perfdiff.languages.protocol import CodeComparison, Counterpart, FunctionDefinition, PlainBuild
from perfdiff.languages.tree_files import regular

MOST_NAMED = 20  # differences, reasons and files that are listed by name; the rest is counted


Key = tuple[str | None, str | None]  # of a pair of functions: base's and head's


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineCode(CodeComparison):
    """What two builds have in common.

    `alike` are the programs and shared objects that differ in nothing that is loaded. `identical`: all programs, shared objects and object
    files of both trees have the same code and data, whatever their order; `same_bytes`: all that is loaded of the programs is the same.
    `differs` says what is not the same, `unknown` of what nothing can be told and why, of each at most `MOST_NAMED`, then how many more.
    `cleared` are the keys (base's, head's) of functions that their own code cannot make slower, `unlike` those of functions that have code
    of their own which is not the same.
    """

    identical: bool
    same_bytes: bool
    differs: tuple[str, ...]
    unknown: tuple[str, ...]
    cleared: frozenset[Key]
    unlike: frozenset[Key]

    def is_same(self, pair: Counterpart) -> bool:
        """Return whether a function runs the same instructions on the same constants on both sides; False where that is not known."""
        return self.identical or _key(pair) in self.cleared

    def is_unlike(self, pair: Counterpart) -> bool:
        """Return whether a function has code of its own, not only in others that have it inlined, and that is not the same."""
        return _key(pair) in self.unlike


def same_code(base: PlainBuild, head: PlainBuild, pairs: Sequence[Counterpart], differing: Mapping[str, Mapping[int, Path]]) -> MachineCode:
    """Compare the machine code of two plain builds; `pairs` are all functions of both, as matching returns them.

    `differing` are the files of their trees that are not the same, with where each lies: 0 base's, 1 head's.
    Sources whose objects the build removed are compiled again by their recorded commands, unless the programs are the same to the byte.
    """
    trees = (base.tree.resolve(), head.tree.resolve())
    files = (look_through(trees[0]), look_through(trees[1]))
    renames = _renames(pairs)
    programs = linked.compare(*trees, files, renames)
    again = not programs.same_bytes
    with ThreadPoolExecutor(len(trees)) as pool:  # what is compiled again takes as long as it took: both sides' at the same time
        base_objects, head_objects = pool.map(partial(gather, again=again), trees, (base.commands, head.commands), files)
    comparison = _ObjectComparison((base_objects, head_objects), trees, renames)
    unknown = [] if programs.same_bytes else comparison.unknown()
    differs = [*comparison.differs(), *(() if programs.same_bytes else programs.differs)]
    cleared = comparison.cleared(pairs)
    return MachineCode(
        alike=frozenset(name for name, places in regular(differing).items() if loaded.are_alike(*places, trees)),
        in_tree=True,
        identical=not differs and not unknown and (programs.same_bytes or comparison.has_code),
        same_bytes=programs.same_bytes,
        differs=_bounded(differs),
        unknown=_bounded(unknown),
        cleared=cleared,
        unlike=frozenset(key for pair in pairs if (key := _key(pair)) not in cleared and comparison.has_symbols(pair)),
    )


class _ObjectComparison:
    """The objects of both sides, taken apart and held against each other."""

    def __init__(self, gathered: tuple[Objects, Objects], trees: tuple[Path, Path], renames: Mapping[str, str]) -> None:
        self._gathered, self._renames = gathered, renames
        self._entangled: dict[str, str] = {}
        objects = self._taken_apart(trees)
        self._graphs = (CodeGraph.of(objects[0]), CodeGraph.of(objects[1]))
        self._changed = (differences(*self._graphs), differences(*self._graphs[::-1]))
        self._by_data = tuple(leading_to(graph, changed) for graph, changed in zip(self._graphs, self._changed, strict=True))
        self._unordered = frozenset(_unlike_order(objects))

    def _taken_apart(self, trees: tuple[Path, Path]) -> tuple[dict[str, ObjectCode], dict[str, ObjectCode]]:
        """Return the objects of both sides by name; those that are the same to the byte are taken apart once."""
        objects: tuple[dict[str, ObjectCode], dict[str, ObjectCode]] = ({}, {})
        for name in sorted(self._gathered[0].files.keys() | self._gathered[1].files.keys()):
            sides = [gathered.files[name].elf if name in gathered.files else None for gathered in self._gathered]
            digests = [raw_digest(file, os.fsencode(tree)) if file is not None else None for file, tree in zip(sides, trees, strict=True)]
            renames: tuple[Mapping[str, str], ...] = ({}, {}) if digests[0] == digests[1] else (self._renames, {})
            try:
                for side, file in enumerate(sides):
                    if file is not None and digests[0] == digests[1] and side:
                        objects[1][name] = objects[0][name]
                    elif file is not None:
                        objects[side][name] = take_apart(file, os.fsencode(trees[side]), renames[side])
            except DamagedElfError as error:
                self._entangled[name] = str(error)
        return objects

    def _is_entangled(self, unit: str) -> bool:
        return any(
            self._is_of(side, name, frozenset((unit,))) for name in self._entangled for side in (0, 1) if name in self._gathered[side].files
        )

    @property
    def has_code(self) -> bool:
        """Return whether there is any code to compare."""
        return any(graph.code for graph in self._graphs)

    def unknown(self) -> list[str]:
        """Return of which sources and files nothing can be told, with the reason; not of files that are the same on both sides."""
        base, head = (gathered.unknown for gathered in self._gathered)
        both = [name for name in base.keys() & head.keys() if base[name].digest is not None and base[name] == head[name]]
        reasons = {name: unread.reason for name, unread in (*base.items(), *head.items()) if name not in both}
        return [f"{name}: {reason}" for name, reason in sorted((reasons | self._entangled).items())]

    def differs(self) -> list[str]:
        """Return what differs in words: symbols by their object, and sections whose order counts."""
        nodes = {node for changed in self._changed for node in changed if not node[1].startswith(WHOLE)}
        return [f"{file}: {name}" for file, name in sorted(nodes | self._unordered)]

    def cleared(self, pairs: Sequence[Counterpart]) -> frozenset[Key]:
        """Return the keys of pairs whose own code is the same, wherever it stands."""
        same = frozenset(_key(pair) for pair in pairs if self._is_same(pair))
        return same - self._inlined_unlike(pairs, same)

    def has_symbols(self, pair: Counterpart) -> bool:
        """Return whether a function was compiled as one, on either side."""
        sides = enumerate((pair.base, pair.head))
        return any(definition is not None and self._symbols(side, definition, _units(definition)) for side, definition in sides)

    def _is_same(self, pair: Counterpart) -> bool:
        sides = (pair.base, pair.head)
        units = frozenset(unit for definition in sides if definition is not None for unit in _units(definition))
        if not units or any(units & gathered.unknown.keys() for gathered in self._gathered) or any(map(self._is_entangled, units)):
            return False
        symbols = [self._symbols(side, definition, units) for side, definition in enumerate(sides)]
        if not any(symbols):  # inlined wherever it is called, or a template
            return self._are_same_objects(units)
        return all(symbols) and not any(nodes & unlike for nodes, unlike in zip(symbols, self._by_data, strict=True))

    def _symbols(self, side: int, definition: FunctionDefinition | None, units: frozenset[str]) -> frozenset[Node]:
        """Return the functions that a definition was compiled to in the objects of its sources."""
        if definition is None:
            return frozenset()
        names = (self._renames.get(name, name) if side == 0 else name for name in definition.linkage)
        return frozenset(node for name in names for node in self._graphs[side].code.get(name, ()) if self._is_of(side, node[0], units))

    def _is_of(self, side: int, name: str, units: frozenset[str]) -> bool:
        sources = self._gathered[side].files[name].units
        return sources is None or bool(sources & units)

    def _are_same_objects(self, units: frozenset[str]) -> bool:
        """Return whether all that was compiled from some sources is the same on both sides."""
        for side, gathered in enumerate(self._gathered):
            objects = {name for name in gathered.files if self._is_of(side, name, units)}
            unlike = {file for file, _ in (*self._by_data[side], *self._unordered)}
            if objects & unlike or not units <= gathered.units:
                return False
        return True

    def _inlined_unlike(self, pairs: Sequence[Counterpart], same: frozenset[Key]) -> frozenset[Key]:
        """Return the keys of changed functions that may be the same as functions, and unlike in others.

        These are what a function can have inlined that differs, though nothing in its own text does and no other changed function that it
        could have inlined differs either; and those that call such a function: it may be a clone for the constants that they give it.
        """
        keys: set[Key] = set()
        for side in (0, 1):
            by_key = {function.key: pair for pair in pairs if (function := _side(pair, side)) is not None}
            callers = _callers([pair for pair in pairs if pair.change.is_suspect], by_key, side)
            for pair in pairs:
                definition = _side(pair, side)
                if definition is None or pair.change.is_suspect:
                    continue
                units = _units(definition)
                if self._symbols(side, definition, units) & self._changed[side]:
                    callees = {_key(callee) for callee in _callees(definition, units, by_key, side) if callee.change.is_suspect}
                    keys |= callees if callees <= same else set()
                    keys |= callers.get(definition.key, set()) if callees | callers.get(definition.key, set()) <= same else set()
        return frozenset(keys)


def _callees(definition: FunctionDefinition, units: frozenset[str], by_key: Mapping[str, Counterpart], side: int) -> Iterator[Counterpart]:
    """Yield the functions that a function may have inlined: those that it calls, directly or not, and that its sources define."""
    seen, waiting = {definition.key}, [definition]
    while waiting:
        for key in waiting.pop().calls:
            pair = by_key.get(key)
            callee = None if pair is None else _side(pair, side)
            if pair is None or callee is None or key in seen or not _units(callee) & units:
                continue
            seen.add(key)
            waiting.append(callee)
            yield pair


def _callers(changed: Iterable[Counterpart], by_key: Mapping[str, Counterpart], side: int) -> dict[str, set[Key]]:
    """Return by function the changed ones that call it, directly or not, where their sources define it."""
    callers: dict[str, set[Key]] = {}
    for pair in changed:
        definition = _side(pair, side)
        for callee in _callees(definition, _units(definition), by_key, side) if definition is not None else ():
            inner = _side(callee, side)
            callers.setdefault(inner.key if inner is not None else "", set()).add(_key(pair))
    return callers


def _side(pair: Counterpart, side: int) -> FunctionDefinition | None:
    return pair.head if side else pair.base


def _key(pair: Counterpart) -> Key:
    return (pair.base.key if pair.base is not None else None, pair.head.key if pair.head is not None else None)


def _units(definition: FunctionDefinition) -> frozenset[str]:
    """Return the sources that a definition was compiled in, relative to the tree."""
    return frozenset(key.removeprefix(FLAGS) for key in definition.uses if key.startswith(FLAGS))


def _renames(pairs: Iterable[Counterpart]) -> dict[str, str]:
    """Return head's names for symbols of base that were renamed, where neither name means anything on the other side."""
    both = [(pair.base, pair.head) for pair in pairs]
    taken = [{name for pair in both if (function := pair[side]) is not None for name in function.linkage} for side in (0, 1)]
    renames: dict[str, str] = {}
    for base, head in both:
        if base is not None and head is not None and len(base.linkage) == len(head.linkage):
            for before, after in zip(base.linkage, head.linkage, strict=True):
                if before != after and before not in taken[1] and after not in taken[0]:
                    renames[before] = after
    return renames


def _unlike_order(objects: tuple[Mapping[str, ObjectCode], Mapping[str, ObjectCode]]) -> Iterator[Node]:
    """Yield objects and sections of theirs that are walked through in order and are not the same."""
    for name in objects[0].keys() | objects[1].keys():
        before, after = (side[name].ordered if name in side else {} for side in objects)
        yield from ((name, section) for section in before.keys() | after.keys() if before.get(section) != after.get(section))


def _bounded(says: Sequence[str]) -> tuple[str, ...]:
    rest = len(says) - MOST_NAMED
    return (*says[:MOST_NAMED], f"and {rest} more") if rest > 0 else tuple(says)
