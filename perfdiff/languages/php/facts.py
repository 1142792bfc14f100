"""What one file tells by itself, before names are followed into other files."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from perfdiff.languages.protocol import FunctionDefinition
from perfdiff.records.differences import Entity

MAIN = "{main}"  # the engine's name of a file's own code
CLOSURE = "{closure}"
ANONYMOUS = "class@anonymous"

Member = tuple[str, str]  # the type of an object or the name of a class, "" where it is not known; and a name


class DeclaredKind(StrEnum):
    """What a value is that declarations give a name."""

    CONSTANT = "constant"
    CASE = "case"
    PROPERTY = "property"


@dataclass(frozen=True, slots=True)
class PhpReferences:
    """What a piece of code names.

    Types are full names of classes, followed by what is asked of their objects: `Space\\Box>items`, `Space\\Box>first()`; `fn:` begins the
    result of a function. `functions` and `constants` are full names, with `|` between two that one of them may have. `handed` are texts
    that may name a function which others call. `inner` are keys of functions of the same file. `included` are paths from the root of the
    tree, or their ends after a `*`. `imports` are names that `use` binds.
    """

    functions: frozenset[str] = frozenset()
    methods: frozenset[Member] = frozenset()
    classes: frozenset[str] = frozenset()
    constants: frozenset[str] = frozenset()
    class_constants: frozenset[Member] = frozenset()
    reads: frozenset[Member] = frozenset()
    writes: frozenset[Member] = frozenset()
    reads_globals: frozenset[str] = frozenset()
    writes_globals: frozenset[str] = frozenset()
    handed: frozenset[str] = frozenset()
    inner: frozenset[str] = frozenset()
    included: frozenset[str] = frozenset()
    imports: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PhpFunctionFacts:
    """A function; its definition's `uses`, `calls`, `reads` and `writes` are not filled in yet.

    `owner` is the full name of the class whose method it is, or around it; `name` what it is called there; `returns` a type or "".
    """

    definition: FunctionDefinition
    owner: str
    name: str
    returns: str
    references: PhpReferences


@dataclass(frozen=True, slots=True)
class ValueFacts:
    """A constant, a case of an enum, or a property with its default; `owner` is a class, or ""."""

    kind: DeclaredKind
    owner: str
    name: str
    line: int
    fingerprint: str
    summary: str
    type: str
    references: PhpReferences


@dataclass(frozen=True, slots=True)
class PhpClassFacts:
    """A class, interface, trait or enum. `parents` are classes and interfaces, `traits` what its own methods come from, too.

    `aliases` are methods of traits under another name: `name alias`. `fingerprint` covers all that, and the modifiers.
    """

    name: str
    kind: str
    line: int
    parents: tuple[str, ...]
    traits: tuple[str, ...]
    aliases: tuple[str, ...]
    fingerprint: str
    summary: str


@dataclass(frozen=True, slots=True)
class ImportFacts:
    """A name that a `use` statement binds, or a declaration that holds for the whole file."""

    key: str
    entity: Entity
    target: str
    line: int


@dataclass(frozen=True, slots=True)
class FileFacts:
    """The declarations of one PHP file; `strict`: it declares strict types; `problem`: why it could not be parsed, None if it was."""

    file: str
    functions: tuple[PhpFunctionFacts, ...]
    classes: tuple[PhpClassFacts, ...]
    values: tuple[ValueFacts, ...]
    imports: tuple[ImportFacts, ...]
    strict: bool
    problem: str | None = None
