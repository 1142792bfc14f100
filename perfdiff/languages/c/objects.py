"""The objects of one build, taken apart: those that lie in its tree, members of archives, and what was removed and is compiled again."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from perfdiff import temporary
from perfdiff.languages.c import elf
from perfdiff.languages.c.built_files import BuiltFiles
from perfdiff.languages.c.driver import OUTPUTS
from perfdiff.languages.c.front import options
from perfdiff.languages.c.object_code import MACHINES
from perfdiff.languages.protocol import CompileCommand

_TIMEOUT_S = 300.0  # as long as a large unit of templates takes to compile
_MOST_BYTES = 1 << 30  # of objects in a tree; a larger one (Chromium's) takes minutes to read alone
_GONE = "its object is gone, and it was not compiled again"
_DROPPED = frozenset(("-MD", "-MMD", "-MP", "-MG", "-M", "-MM", "-c"))


@dataclass(frozen=True, slots=True)
class ObjectFile:
    """An object, and the sources that it was, or may have been, compiled from, relative to the tree; None where nothing tells."""

    elf: elf.Elf
    units: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class Unknown:
    """Why there is no code to compare, and a digest of what there is instead."""

    reason: str
    digest: bytes | None = None


@dataclass(frozen=True, slots=True)
class Objects:
    """The objects of a build by name, as far as they can be read.

    `units` are the sources whose code is among them; `unknown` are the sources, or files that no source is known of, whose code is not.
    """

    files: Mapping[str, ObjectFile]
    units: frozenset[str]
    unknown: Mapping[str, Unknown]


def gather(tree: Path, commands: Sequence[CompileCommand], files: BuiltFiles, *, again: bool) -> Objects:
    """Return the objects of a build; where `again`, sources whose objects are gone are compiled again, by the same commands."""
    collection = _Collection(_by_output(tree, commands))
    try:
        for name, content in _contents(tree, files):
            collection.take(name, content)
    except _TooLargeError as error:
        return Objects({}, frozenset(), {"objects": Unknown(str(error))})
    for name in files.bitcode:
        collection.refuse(name, "compiled to bitcode, for the linker to optimise", (tree / name).read_bytes())
    missing = [
        ways[0]
        for ways in _ways(commands).values()
        if collection.lacks(_relative(ways[0].file, tree), [_relative(_output(command), tree) for command in ways])
    ]
    for command, answer in zip(missing, _compiled(missing) if again else [_GONE] * len(missing), strict=True):
        collection.take_again(_relative(command.file, tree), answer)
    return collection.objects()


class _TooLargeError(Exception):
    """A tree has more objects than can be read."""


class _Collection:
    """Objects as they come, each with its sources: by the commands that name it as their output, else by the name it tells itself."""

    def __init__(self, by_output: Mapping[str, frozenset[str]]) -> None:
        self._by_output = by_output
        self._sources = frozenset(unit for units in by_output.values() for unit in units)
        self._files: dict[str, ObjectFile] = {}
        self._units: set[str] = set()
        self._of_no_command: set[str] = set()  # sources with objects that lie elsewhere than where commands put them
        self._unknown: dict[str, Unknown] = {}

    def take(self, name: str, content: bytes) -> None:
        """Take an object that lies in the tree."""
        self._take(name, content, self._by_output.get(name))

    def take_again(self, unit: str, content: bytes | str) -> None:
        """Take what a source was compiled to again, or the reason why it was not."""
        if isinstance(content, str):
            self._unknown[unit] = Unknown(content)
            return
        name = f"{unit} compiled again"
        while name in self._files:
            name += "#"
        self._take(name, content, frozenset((unit,)))

    def refuse(self, name: str, reason: str, content: bytes) -> None:
        """Note that nothing can be told of an object."""
        for unit in self._by_output.get(name) or (name,):
            self._unknown[unit] = Unknown(reason, _digest(content))

    def lacks(self, unit: str, outputs: Iterable[str]) -> bool:
        """Return whether nothing is there of what a source was compiled to as one of `outputs`, and nothing was refused."""
        if unit in self._unknown or unit in self._of_no_command:
            return False
        return unit not in self._units or self._files.keys().isdisjoint(outputs)

    def objects(self) -> Objects:
        """Return what was taken."""
        return Objects(self._files, frozenset(self._units), self._unknown)

    def _take(self, name: str, content: bytes, compiled_from: frozenset[str] | None) -> None:
        try:
            taken = _readable(content)
        except elf.DamagedElfError as error:
            for unit in compiled_from or (name,):
                self._unknown[unit] = Unknown(str(error), _digest(content))
            return
        named = compiled_from or self._named(taken)
        if compiled_from is not None or len(named) == 1:
            self._units |= named
        if compiled_from is None:
            self._of_no_command |= named
        self._files[name] = ObjectFile(taken, named or None)

    def _named(self, taken: elf.Elf) -> frozenset[str]:
        """Return the sources that an object may be compiled from, by the file names among its symbols."""
        names = {symbol.name.rpartition("/")[2] for symbol in taken.symbols if symbol.kind == elf.FILE}
        return frozenset(unit for unit in self._sources if unit.rpartition("/")[2] in names)


def _contents(tree: Path, files: BuiltFiles) -> Iterator[tuple[str, bytes]]:
    """Yield the objects of a tree, then members of its archives that lie nowhere else."""
    total, seen = 0, set[bytes]()
    for name in (*files.objects, *files.archives):
        total += (tree / name).stat().st_size
        if total > _MOST_BYTES:
            raise _TooLargeError(f"more than {_MOST_BYTES >> 30} GiB of them")
        content = (tree / name).read_bytes()
        if name in files.objects:
            seen.add(_digest(content))
            yield name, content
            continue
        repeated: dict[str, int] = defaultdict(int)
        for member, inner in elf.members(content):
            repeated[member] += 1
            if inner.startswith(elf.ELF_MAGIC) and _digest(inner) not in seen:
                yield f"{name}({member}{'#' * (repeated[member] - 1)})", inner


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def _readable(content: bytes) -> elf.Elf:
    """Return an object that can be compared; raise DamagedElfError with the reason where it cannot."""
    taken = elf.read(content)
    if taken.kind != elf.OBJECT:
        raise elf.DamagedElfError("no relocatable object")
    if taken.has_lto:
        raise elf.DamagedElfError("compiled for the linker to optimise (-flto)")
    if taken.machine not in MACHINES:
        raise elf.DamagedElfError(f"for a machine that is not known here ({taken.machine})")
    return taken


def _by_output(tree: Path, commands: Iterable[CompileCommand]) -> dict[str, frozenset[str]]:
    """Return which sources each file was compiled from, as the commands say."""
    units_by_output: dict[str, set[str]] = defaultdict(set)
    for command in commands:
        units_by_output[_relative(_output(command), tree)].add(_relative(command.file, tree))
    return {name: frozenset(units) for name, units in units_by_output.items()}


def _ways(commands: Iterable[CompileCommand]) -> dict[tuple[Path, str, tuple[str, ...]], list[CompileCommand]]:
    """Return the commands by what they compile and how: of one source, several objects may be made that are not the same."""
    by_way: dict[tuple[Path, str, tuple[str, ...]], list[CompileCommand]] = defaultdict(list)
    for command in commands:
        by_way[command.file, command.compiler, tuple(_words(command.arguments))].append(command)
    return by_way


def _output(command: CompileCommand) -> Path:
    named = [option for option in options(command.arguments) if option[0].startswith("-o") and not option[0].startswith("-o=")]
    if not named:
        return command.directory / f"{command.file.stem}.o"
    return command.directory / (named[-1][1] if len(named[-1]) > 1 else named[-1][0].removeprefix("-o"))


def _relative(path: Path, tree: Path) -> str:
    return os.path.relpath(path.resolve(), tree.resolve())


def _compiled(commands: Sequence[CompileCommand]) -> list[bytes | str]:
    """Compile sources again; return the objects, or why there is none."""
    with temporary.folder() as folder, ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(_compile, commands, (folder / f"{number}.o" for number in range(len(commands)))))


def _compile(command: CompileCommand, target: Path) -> bytes | str:
    call = [command.compiler, *_words(command.arguments), "-c", "-o", str(target)]
    try:
        ended = subprocess.run(call, cwd=command.directory, capture_output=True, timeout=_TIMEOUT_S, check=False, stdin=subprocess.DEVNULL)
        return target.read_bytes() if ended.returncode == 0 else _GONE
    except (OSError, subprocess.TimeoutExpired):
        return _GONE


def _words(arguments: Sequence[str]) -> list[str]:
    """Return a compiler's arguments without those that say what is written where."""
    remaining, words = [], iter(arguments)
    for word in words:
        if word in OUTPUTS:
            next(words, None)
        elif word not in _DROPPED and not word.startswith(("-o", "-MF", "-MT", "-MQ", "-save-temps", "-Wl,", "-l")):
            remaining.append(word)
    return remaining
