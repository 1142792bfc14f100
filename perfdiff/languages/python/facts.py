"""What one file tells by itself, before names are followed into other files."""

from __future__ import annotations

from dataclasses import dataclass

from perfdiff.languages.protocol import FunctionDefinition

MODULE = "<module>"  # the code name of a module's level, as interpreters have it


@dataclass(frozen=True, slots=True)
class Imported:
    """A name that an import binds: `module` is absolute, `attribute` what is taken from it ("" for the module itself, `*` for all)."""

    name: str
    module: str
    attribute: str
    line: int


@dataclass(frozen=True, slots=True)
class PythonReferences:
    """What a piece of code names. Dotted names are as written: `json.loads`.

    `free` begin at names that it does not bind itself, `own` at its own object (the part behind `self.`), `inherited` at `super()`; `loose`
    are attributes of anything else. `called` are those of `own` that are called. `imports` are made where the code runs. The `binds_*` are
    names and attributes that it sets; `inner` keys of functions of the same file that it knows by local names.
    """

    free: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    inherited: frozenset[str] = frozenset()
    loose: frozenset[str] = frozenset()
    imports: tuple[Imported, ...] = ()
    inner: frozenset[str] = frozenset()
    binds_free: frozenset[str] = frozenset()
    binds_own: frozenset[str] = frozenset()
    binds_loose: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PythonFunctionFacts:
    """A function; its definition's `uses`, `calls`, `reads` and `writes` are not filled in yet.

    `owner` is the qualified name of the class whose method it is, or ""; `decorators` are the dotted names of its decorators.
    """

    definition: FunctionDefinition
    owner: str
    decorators: tuple[str, ...]
    references: PythonReferences


@dataclass(frozen=True, slots=True)
class VariableFacts:
    """A variable of a module (`owner` ""), or an attribute of a class."""

    name: str
    owner: str
    line: int
    fingerprint: str
    summary: str
    references: PythonReferences


@dataclass(frozen=True, slots=True)
class PythonClassFacts:
    """A class of a module; `bases` are dotted names, `fingerprint` covers bases, decorators, slots and names of fields."""

    qualname: str
    line: int
    bases: tuple[str, ...]
    fingerprint: str
    summary: str
    references: PythonReferences


@dataclass(frozen=True, slots=True)
class ModuleFacts:
    """All of one file; `problem` says why it could not be parsed."""

    file: str
    module: str
    is_package: bool
    functions: tuple[PythonFunctionFacts, ...]
    classes: tuple[PythonClassFacts, ...]
    variables: tuple[VariableFacts, ...]
    imports: tuple[Imported, ...]
    problem: str | None = None
