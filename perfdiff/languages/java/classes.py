"""The class files of a built tree, and what each tells: read by a program of ours in one JVM, kept by content."""

from __future__ import annotations

import json
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from perfdiff.languages.java import tools
from perfdiff.languages.java.jdks import Jdk
from perfdiff.languages.kept import TextCache, shape

_READER = Path(__file__).parent / "facts"
_MAIN = "perfdiff.facts.Facts"
_ARCHIVES = (".jar", ".war")
_SUFFIX = ".class"
# What tools put into a tree, or keep there for themselves.
FOREIGN_FOLDERS = frozenset((".git", ".gradle", ".idea", ".mvn", "node_modules"))
# What JMH makes around the project's functions (in packages `jmh_generated`, up to 1.21 `generated`): its time is that of measuring.
OF_HARNESS = re.compile(r".*_jmh(?:Test|Type\w*)\.java")
STATIC, FINAL, SYNCHRONIZED, BRIDGE, NATIVE, INTERFACE = 0x0008, 0x0010, 0x0020, 0x0040, 0x0100, 0x0200
ABSTRACT, SYNTHETIC, ENUM = 0x0400, 0x1000, 0x4000


@dataclass(frozen=True, slots=True)
class ClassFile:
    """A class file of the tree. `place` is relative to it: `target/classes/com/acme/Box.class`, `app.jar!/com/acme/Box.class`."""

    place: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Field:
    """A field as its class file has it; `constant` is the value that compilers write into those that read it: `int 5`."""

    name: str
    descriptor: str
    access: int
    signature: str | None
    constant: str | None
    annotations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Code:
    """The instructions of a method.

    `text` is without places, lines and names of locals. `calls` are `KIND OWNER NAME DESCRIPTOR` (kinds `v`irtual, s`p`ecial, `s`tatic,
    `i`nterface), `made` are lambdas of its own class, in order, `NAME DESCRIPTOR`. Fields are `OWNER#NAME#DESCRIPTOR`, `paths` begin at
    `this`, `argN` or `static`. `asked` are paths whose methods are called or whose type is looked at, `opened` those that name a file.
    `lines` are all lines, `first` that of its first instruction, `jumps` those of its jumps that have a condition, in order, 0 where that
    is not known; `locals` the names of the slots at the start.
    """

    size: int
    text: str
    calls: tuple[str, ...]
    made: tuple[str, ...]
    types: tuple[str, ...]
    created: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    paths: tuple[str, ...]
    asked: frozenset[str]
    opened: frozenset[str]
    lines: tuple[int, ...]
    jumps: tuple[int, ...]
    locals: tuple[tuple[int, str], ...]
    first: int | None = None


@dataclass(frozen=True, slots=True)
class Method:
    """A method as its class file has it; `parameters` are names, where it was compiled to keep them."""

    name: str
    descriptor: str
    access: int
    signature: str | None
    annotations: tuple[str, ...]
    parameters: tuple[str | None, ...]
    code: Code | None

    @property
    def is_static(self) -> bool:
        """Return whether it has no object."""
        return bool(self.access & STATIC)

    @property
    def is_synthetic(self) -> bool:
        """Return whether compilers made it up: bridges, bodies of lambdas, ways to private members."""
        return bool(self.access & (SYNTHETIC | BRIDGE))


@dataclass(frozen=True)
class Class:
    """A class as its file has it, with internal names (`com/acme/Box$Row`).

    `enclosing` is the class, and the method's name and descriptor, that a local or anonymous one begins in. `inner` are classes that it
    knows as nested: name, the class around it unless it is local, its simple name unless it is anonymous, access.
    """

    name: str
    access: int
    parent: str | None
    interfaces: tuple[str, ...]
    source: str | None
    signature: str | None
    enclosing: tuple[str | None, ...]
    annotations: tuple[str, ...]
    inner: tuple[tuple[str, str | None, str | None, int], ...]
    components: tuple[tuple[str, str], ...] | None
    fields: tuple[Field, ...]
    methods: tuple[Method, ...]

    @cached_property
    def nested(self) -> tuple[str, str | None, str | None, int] | None:
        """Return the class's own entry of the attribute `InnerClasses`, None if it is not nested in another class."""
        return next((inner for inner in self.inner if inner[0] == self.name), None)

    @cached_property
    def by_signature(self) -> dict[tuple[str, str], Method]:
        """Return its methods by name and descriptor."""
        return {(method.name, method.descriptor): method for method in self.methods}

    @cached_property
    def by_field(self) -> dict[str, Field]:
        """Return its fields by name."""
        return {field.name: field for field in self.fields}

    @property
    def is_interface(self) -> bool:
        """Return whether it is an interface."""
        return bool(self.access & INTERFACE)

    @property
    def is_enum(self) -> bool:
        """Return whether it is an enum itself, not the body of a constant."""
        return bool(self.access & ENUM) and self.parent == "java/lang/Enum"

    @property
    def constants(self) -> tuple[str, ...]:
        """Return the names of an enum's constants, in order."""
        return tuple(field.name for field in self.fields if field.access & ENUM)


def class_files(tree: Path, declared: Collection[str]) -> Iterator[ClassFile]:
    """Yield the class files of the types `declared` (`com/acme/Box`) and of those inside them: in folders first, then in archives.

    An archive that cannot be read has none; what is in archives inside archives is not looked at.
    """
    wanted = DeclaredClasses(declared)
    archives = []
    for folder, folders, names in os.walk(tree):
        folders[:] = sorted(name for name in folders if name not in FOREIGN_FOLDERS)
        place = Path(folder)
        for name in sorted(names):
            path = place / name
            if name.endswith(_SUFFIX) and wanted.has(path.relative_to(tree).as_posix()) and path.is_file():
                yield ClassFile(path.relative_to(tree).as_posix(), path.read_bytes())
            elif name.endswith(_ARCHIVES) and path.is_file() and not path.is_symlink():
                archives.append(path)
    for path in archives:
        shown = path.relative_to(tree).as_posix()
        try:
            with zipfile.ZipFile(path) as archive:
                entries = [name for name in archive.namelist() if name.endswith(_SUFFIX) and wanted.has(name)]
                yield from [ClassFile(f"{shown}!/{name}", archive.read(name)) for name in entries]
        except (OSError, zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError):  # damaged, locked, packed in a rare way
            continue


class DeclaredClasses:
    """Which class files are of declared types, by their names: no other one is opened."""

    def __init__(self, declared: Collection[str]) -> None:
        self._declared = frozenset(declared)
        self._simple = frozenset(name.rpartition("/")[2] for name in declared)

    def has(self, file: str) -> bool:
        """Return whether a file is where a class of a declared type may be."""
        return bool(self.tops(file))

    def tops(self, file: str) -> set[str]:
        """Return the declared types that a file may hold a class of; which folders belong to its name is not known."""
        stem = file.removesuffix(_SUFFIX)
        folder, _, name = stem.rpartition("/")
        tops: set[str] = set()
        for top in {name[: match.start()] for match in re.finditer(r"\$", name)} | {name}:
            if top in self._simple:
                parts = [*folder.split("/"), top] if folder else [top]
                tops |= self._declared.intersection("/".join(parts[start:]) for start in range(len(parts)))
        return tops


class ClassReader:
    """Reads class files by a JDK; `cache` is the folder that keeps what they told, `helpers` the one of our compiled programs."""

    def __init__(self, jdk: Jdk, cache: Path | None, helpers: Path) -> None:
        self._jdk, self._helpers = jdk, helpers
        self._kept = TextCache(cache, _READER.glob("*.java"), shape=shape(Class))

    def read(self, files: Iterable[bytes]) -> list[Class | str]:
        """Return for each content of a class file what it tells, or why it cannot be read; raise BuildError."""
        contents = list(files)
        texts = {content: self._kept.text(content) for content in contents}
        unknown = [content for content, text in texts.items() if text is None]
        for content, text in zip(unknown, self._told(unknown), strict=True):
            self._kept.keep(content, text)
            texts[content] = text
        decoded = {content: _decoded(text or "") for content, text in texts.items()}
        for content in [content for content, class_ in decoded.items() if class_ is None]:  # an entry that was damaged
            [text] = self._told([content])
            self._kept.keep(content, text)
            decoded[content] = _decoded(text)
        return [decoded[content] or "it cannot be read" for content in contents]

    def _told(self, contents: Sequence[bytes]) -> list[str]:
        if not contents:
            return []
        asked = b"".join((struct.pack(">i", len(contents)), *(struct.pack(">i", len(content)) + content for content in contents)))
        return tools.run(self._jdk, self._helpers, _MAIN, (), asked).decode("ascii").split("\n")[:-1]


def _decoded(text: str) -> Class | str | None:
    """Return what a line of our program tells, the problem it names, or None where it is none of its lines."""
    try:
        document = json.loads(text)  # which takes texts that are no Unicode, as constants of classes may be
        return str(document["problem"]) if "problem" in document else msgspec.convert(document, Class)
    except (ValueError, TypeError, RecursionError, msgspec.ValidationError):
        return None
