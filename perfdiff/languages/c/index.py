"""The functions and declarations of a whole program: all translation units, parsed in parallel and merged."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from clang.cindex import TranslationUnitLoadError

from perfdiff import temporary
from perfdiff.languages.c import cython, front, lexer, vendored
from perfdiff.languages.c.cursors import TreeFiles
from perfdiff.languages.c.declarations import Dependency
from perfdiff.languages.c.obstacles import BY_MACRO
from perfdiff.languages.c.shared_headers import SharedHeaders
from perfdiff.languages.c.unit import IndexMemory, UnitFacts, index_unit
from perfdiff.languages.c.unit_cache import UnitCache
from perfdiff.languages.closure import closure
from perfdiff.languages.digest import digest
from perfdiff.languages.garbage import unsearched
from perfdiff.languages.matching import FLAGS
from perfdiff.languages.protocol import CompileCommand, Declaration, FunctionDefinition, MacroBody, Program
from perfdiff.processes import signals_held
from perfdiff.records.differences import Entity, EntityKind, SkippedFunction

_ASSEMBLER = frozenset((".s", ".S", ".sx", ".asm"))
_ALONE = 3  # up to so many units are parsed in this process: starting another one costs as much as parsing them
_MOST_WORKERS = 8
_FOLDER = "perfdiff-headers-"

Place = tuple[str, int, str]  # file and offset of the body, and the key where one macro makes several functions at one place


@unsearched()
def index(  # noqa: PLR0913 (what is parsed, how, and what it is compared with)
    tree: Path,
    commands: Sequence[CompileCommand],
    *,
    depth: int,
    workers: int | None = None,
    cache: Path | None = None,
    others: Sequence[Path] = (),
) -> Program:
    """Parse everything that was compiled in `tree` and return its functions and declarations.

    Files outside of `tree` are not the program's, nor are test frameworks that are the same in `others`, trees that it is compared with.
    What cannot be parsed is named in the program's problems; the rest is indexed.
    `workers` processes parse (by default one per CPU); `cache` is a folder that keeps what each translation unit told.
    """
    present, problems = _present(tree, commands)
    units = sorted({front.unit(command) for command in present}, key=lambda unit: (str(unit.file), unit.arguments))
    unit_cache = UnitCache(cache, tree, depth) if cache is not None else None
    facts = _all_facts(tree, units, depth, workers if workers is not None else min(_MOST_WORKERS, os.cpu_count() or 1), unit_cache)
    problems += [SkippedFunction(Path(unit.file).name, unit.file, unit.problem) for unit in facts if unit.problem is not None]
    return _Merge(tree, facts, _flags(tree, present), others).program(tuple(dict.fromkeys(problems)))


def _present(tree: Path, commands: Sequence[CompileCommand]) -> tuple[list[CompileCommand], list[SkippedFunction]]:
    root = tree.resolve()
    present, problems = [], []
    for command in commands:
        if command.file.suffix in _ASSEMBLER or not command.file.resolve().is_relative_to(root):
            continue
        if command.file.is_file():
            present.append(command)
        else:
            name = str(command.file.resolve().relative_to(root))
            problems.append(SkippedFunction(command.file.name, name, "the file is gone after the build"))
    return present, problems


def _flags(tree: Path, commands: Iterable[CompileCommand]) -> dict[str, Dependency]:
    """Return the compile flags of each file as a declaration."""
    flags: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for command in commands:
        flags[str(command.file.resolve().relative_to(tree.resolve()))].add(front.code_flags(command, tree))
    by_file = {}
    for file, sets in flags.items():
        summary = " and ".join(" ".join(flag_set) or "none" for flag_set in sorted(sets))
        declaration = Declaration(f"{FLAGS}{file}", Entity(EntityKind.FLAGS, "compile flags of", file), digest([summary]), summary, file, 1)
        by_file[file] = Dependency(declaration)
    return by_file


def _all_facts(tree: Path, units: Sequence[front.Unit], depth: int, workers: int, cache: UnitCache | None) -> list[UnitFacts]:
    cached = {unit: facts for unit in units if cache is not None and (facts := cache.load(unit)) is not None}
    fresh = _parsed(tree, [unit for unit in units if unit not in cached], depth, workers)
    if cache is not None:
        cache.store({unit: facts for unit, facts in fresh.items() if facts.files})
    # In one order, whichever were kept: of units that tell a function differently, the first counts.
    all_facts = cached | fresh
    return [all_facts[unit] for unit in units]


def _parsed(tree: Path, units: Sequence[front.Unit], depth: int, workers: int) -> dict[front.Unit, UnitFacts]:
    workers = min(workers, len(units))
    if workers < 2 or len(units) <= _ALONE:
        with temporary.folder(_FOLDER) as folder:
            return dict(zip(units, _index_batch(tree, units, depth, folder), strict=True))
    batches = _batches(units, workers)
    facts: dict[front.Unit, UnitFacts] = {}
    broken: list[front.Unit] = []
    with temporary.folder(_FOLDER) as folder, _pool(workers) as pool:
        running = [pool.submit(_index_batch, tree, batch, depth, folder / str(number)) for number, batch in enumerate(batches)]
        for batch, future in zip(batches, running, strict=True):
            try:
                facts |= zip(batch, future.result(), strict=True)
            except BrokenProcessPool:
                broken += batch
    return facts | {unit: _index_alone(tree, unit, depth) for unit in broken}


def _begin_worker() -> None:
    """Let Ctrl-C end a worker at once and without a word, and search for no garbage: what it makes stays until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    # Not forked: the caller may have threads, and libclang starts some of its own.
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=spawn, initializer=_begin_worker)
    try:
        yield pool
    except BaseException:  # nobody waits for what they parse any more
        for worker in multiprocessing.active_children():
            worker.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _batches(units: Sequence[front.Unit], count: int) -> list[list[front.Unit]]:
    """Deal out units so that each batch has about the same size of source; few batches, since headers are walked once in each."""
    batches: list[list[front.Unit]] = [[] for _ in range(count)]
    load = [0] * count
    for unit in sorted(units, key=lambda unit: (-unit.file.stat().st_size, str(unit.file))):
        lightest = load.index(min(load))
        batches[lightest].append(unit)
        load[lightest] += unit.file.stat().st_size
    return batches


def _index_batch(tree: Path, units: Sequence[front.Unit], depth: int, folder: Path) -> list[UnitFacts]:
    """Return the facts of some units; `folder`, which the caller removes, takes what they share on disk."""
    memory = IndexMemory(TreeFiles(tree))
    headers = SharedHeaders(units, memory.files, folder)
    facts = []
    for unit in units:
        try:
            with signals_held():  # libclang calls back, and no exception comes through it
                facts.append(index_unit(unit, headers.parse(unit), tree, depth=depth, memory=memory))
        except TranslationUnitLoadError:
            facts.append(_nothing(tree, unit, "libclang cannot parse it"))
    return facts


def _index_alone(tree: Path, unit: front.Unit, depth: int) -> UnitFacts:
    with temporary.folder(_FOLDER) as folder, _pool(1) as pool:
        try:
            return pool.submit(_index_batch, tree, [unit], depth, folder).result()[0]
        except BrokenProcessPool:
            return _nothing(tree, unit, "libclang crashed on it")


def _nothing(tree: Path, unit: front.Unit, problem: str) -> UnitFacts:
    return UnitFacts(str(unit.file.resolve().relative_to(tree.resolve())), (), (), {}, (), problem)


class _Merge:
    """Units become one program: one definition per place, one key per definition, declarations followed to the end."""

    def __init__(self, tree: Path, facts: Sequence[UnitFacts], flags: Mapping[str, Dependency], others: Sequence[Path]) -> None:
        self._tree = tree
        self._others = others
        self._of_frameworks: dict[str, bool] = {}
        self._places: dict[Place, list[FunctionDefinition]] = defaultdict(list)
        self._flags: dict[Place, set[str]] = defaultdict(set)
        self._known: dict[str, list[Place]] = defaultdict(list)
        self._overriders: dict[str, set[str]] = defaultdict(set)
        self._by_body: dict[MacroBody | None, set[Place]] = defaultdict(set)
        for unit in facts:
            for definition in unit.functions:
                is_made = definition.made is not None or definition.obstacle == BY_MACRO
                # What stands ahead of the body may be macros, which leave another beginning in each unit, and another name.
                place = (definition.file, definition.body, definition.key if is_made else "")
                self._flags[place].add(f"{FLAGS}{unit.file}")
                if definition not in self._places[place]:
                    self._places[place].append(definition)
                    self._known[definition.key].append(place)
                    self._by_body[definition.made].add(place)
            for method, bases in unit.overrides.items():
                for base in bases:
                    self._overriders[base].add(method)
        self._known = {key: sorted(set(places)) for key, places in self._known.items()}
        self._dependencies = _merged((dependency for unit in facts for dependency in unit.dependencies), flags.values())
        self._reach: dict[str, frozenset[str]] = {}
        self._sources: dict[str, bytes] = {}
        self._keys = self._final_keys()
        self._helpers = frozenset(self._keys[place] for place in self._places if self._is_helper(place))

    def program(self, problems: tuple[SkippedFunction, ...]) -> Program:
        """Return the merged program."""
        functions = {self._keys[place]: self._definition(place) for place in sorted(self._places) if self._keys[place] not in self._helpers}
        declarations = {key: dependency.declaration for key, dependency in sorted(self._dependencies.items())}
        return Program(functions, declarations, problems)

    def _final_keys(self) -> dict[Place, str]:
        sharing: dict[str, list[Place]] = defaultdict(list)
        for place, definitions in sorted(self._places.items()):
            sharing[min(definition.key for definition in definitions)].append(place)
        keys = {}
        for key, places in sharing.items():
            for place in places:
                # Two programs of one build may each have their main; two variants of a file may stand in it under #if.
                same_file = [other for other in places if other[0] == place[0]]
                file = f"|{place[0]}" if len(places) > len(same_file) else ""
                ordinal = f"#{same_file.index(place) + 1}" if len(same_file) > 1 else ""
                keys[place] = f"{key}{file}{ordinal}"
        return keys

    def _definition(self, place: Place) -> FunctionDefinition:
        instances = sorted(self._places[place], key=lambda instance: (instance.start, instance.key))
        first, *others = instances
        siblings = [sibling for other in self._made_with(place) for sibling in self._places[other]]
        used = self._declared({*self._flags[place]}.union(*(instance.uses for instance in instances)))
        uses = used.union(*map(self._reached, used))
        calls = {key for instance in instances for key in instance.calls} | {
            key for declaration in uses for key in self._dependencies[declaration].calls
        }
        source = self._source(first.file)
        text = source[first.start : first.end]
        definition = replace(
            first,
            key=self._keys[place],
            names=tuple(dict.fromkeys(name for instance in instances for name in instance.names)),
            linkage=tuple(dict.fromkeys(name for instance in instances for name in instance.linkage)),
            text=text.decode("utf-8", "replace"),
            no_code=tuple((first.line + at, first.line + at) for at in lexer.comment_lines(text)),
            uses=frozenset(uses),
            calls=frozenset(self._resolved(calls, first.file)),
            reads=frozenset().union(*(instance.reads for instance in instances)),
            writes=frozenset().union(*(instance.writes for instance in instances)),
            # A probe is written once for all that share the text, so it reads what all of them have.
            features=tuple(plan for plan in first.features if all(plan in instance.features for instance in (*others, *siblings))),
            branches=tuple(plan for plan in first.branches if all(plan in instance.branches for instance in others)),
            obstacle=self._obstacle(place),
        )
        return cython.as_written(definition, source, self._tree) if cython.is_made(source) else definition

    def _made_with(self, place: Place) -> set[Place]:
        """Return the functions that have their bodies in one place of a macro; none of one that is written out."""
        macro_body = self._places[place][0].made
        return set() if macro_body is None else self._by_body[macro_body]

    def _obstacle(self, place: Place) -> str | None:
        """Return why a function cannot carry a probe, or None. In a macro, where units must agree on its body, it is told by its name."""
        instances = self._places[place]
        names = Counter(self._places[other][0].name for other in self._made_with(place))
        if names[instances[0].name] > 1 or len({instance.made for instance in instances}) > 1:
            return BY_MACRO
        return next((instance.obstacle for instance in instances if instance.obstacle is not None), None)

    def _is_helper(self, place: Place) -> bool:
        """Return whether a function is not the project's, though its text is in a file of the tree."""
        if self._is_framework(place[0]):
            return True
        return cython.is_made(self._source(place[0])) and any(cython.is_helper(definition.name) for definition in self._places[place])

    def _is_framework(self, file: str) -> bool:
        if file not in self._of_frameworks:
            self._of_frameworks[file] = vendored.is_framework(file, self._source(file), self._others)
        return self._of_frameworks[file]

    def _source(self, file: str) -> bytes:
        if file not in self._sources:
            self._sources[file] = (self._tree / file).read_bytes()
        return self._sources[file]

    def _declared(self, keys: Iterable[str]) -> set[str]:
        return {key for key in keys if key in self._dependencies}

    def _reached(self, key: str) -> frozenset[str]:
        """Return all declarations that one leads to."""
        if key not in self._reach:
            self._reach[key] = frozenset(closure((key,), lambda other: self._declared(self._dependencies[other].uses)))
        return self._reach[key]

    def _resolved(self, keys: set[str], file: str) -> set[str]:
        """Return the final keys that references from `file` mean: definitions in the same file before all others, overriders too."""
        reached = closure(keys, lambda key: self._overriders.get(key, ())) if self._overriders else keys
        resolved = set[str]()
        for key in reached:
            places = self._known.get(key, ())
            if len(places) > 1:
                places = [place for place in places if place[0] == file] or places
            resolved.update(self._keys[place] for place in places)
        return resolved - self._helpers


def _merged(dependencies: Iterable[Dependency], flags: Iterable[Dependency]) -> dict[str, Dependency]:
    """Return one dependency per key; units that see different definitions of it make one that changes with any of them."""
    groups: dict[str, dict[Dependency, None]] = defaultdict(dict)
    # Most are the same in many units, and long to compare.
    for dependency in {id(dependency): dependency for dependency in (*dependencies, *flags)}.values():
        groups[dependency.declaration.key][dependency] = None
    merged = {}
    for key, group in groups.items():
        declarations = [dependency.declaration for dependency in group]
        first = min(declarations, key=lambda declaration: (declaration.file, declaration.line, declaration.fingerprint))
        fingerprints = sorted({declaration.fingerprint for declaration in declarations})
        fingerprint = fingerprints[0] if len(fingerprints) == 1 else digest(fingerprints)
        merged[key] = Dependency(
            replace(first, fingerprint=fingerprint),
            frozenset().union(*(dependency.uses for dependency in group)),
            frozenset().union(*(dependency.calls for dependency in group)),
        )
    return merged
