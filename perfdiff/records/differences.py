"""What differs of a function, or of what it depends on, as kinds beside the words that people read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class EntityKind(StrEnum):
    """What a function depends on, by how a change of it can reach the function."""

    RECORD = "record"  # a type with fields, which lie somewhere in its objects
    ALIAS = "alias"  # another name of a type
    TYPE = "type"  # anything else of a type: what it implements, or has as cases
    VARIABLE = "variable"  # one outside of functions and classes
    MEMBER = "member"  # data of a class or its objects
    CONSTANT = "constant"
    CASE = "case"  # of an enumeration
    MACRO = "macro"
    VERSION = "version"  # a macro or a constant by which a program tells its own version
    FUNCTION = "function"
    METHOD = "method"  # one that calls may reach in place of another
    FLAGS = "flags"  # of the compiler
    IMPORT = "import"
    DIRECTIVE = "directive"  # for all of a file
    UNKNOWN = "unknown"  # stored by another version, in words that this one does not know

    @property
    def is_laid_out(self) -> bool:
        """Return whether a change may be no more than where data lie."""
        return self in (EntityKind.RECORD, EntityKind.ALIAS)

    @property
    def is_in_code(self) -> bool:
        """Return whether its whole effect on a function is in the function's machine code."""
        return self in (EntityKind.MACRO, EntityKind.VERSION, EntityKind.FUNCTION, EntityKind.FLAGS)


@dataclass(frozen=True, slots=True)
class Entity:
    """A thing that functions depend on: its kind, the word for it in its language, and its name. `struct` `list`, `macro` `HASH`."""

    kind: EntityKind
    word: str
    name: str

    def __str__(self) -> str:
        return f"{self.word} {self.name}"


def function_entity(name: str) -> Entity:
    """Return the entity by which others depend on a function."""
    return Entity(EntityKind.FUNCTION, "function", name)


class ReasonKind(StrEnum):
    """Why a function is looked at."""

    TEXT = "text"  # its own text differs
    DECORATED = "decorated"  # what stands around it, such as a cache, is not what it was
    NEWLY = "newly"  # its own text does something in head that it did not do in base
    MOVED = "moved"  # it stands elsewhere, or has another name
    DEPENDENCY = "dependency"  # what it depends on differs
    ONE_SIDED = "one-sided"  # it is in one revision alone
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class ChangeReason:
    """Why a function is looked at: the kind, and the words that a report prints."""

    kind: ReasonKind
    says: str

    def __str__(self) -> str:
        return self.says


def is_decorated_anew(reasons: Iterable[ChangeReason]) -> bool:
    """Return whether what stands around a function differs."""
    return any(reason.kind is ReasonKind.DECORATED for reason in reasons)


def text_reason(says: str) -> ChangeReason:
    """Return that a function's own text differs, as `says` tells."""
    return ChangeReason(ReasonKind.TEXT, says)


def depends_reason(says: str) -> ChangeReason:
    """Return the reason that a function depends on something that differs; `says` is its text."""
    return ChangeReason(ReasonKind.DEPENDENCY, says)


def other_reason(says: str) -> ChangeReason:
    """Return a reason of no other kind, as `says` tells."""
    return ChangeReason(ReasonKind.OTHER, says)


class SkipKind(StrEnum):
    """Why a function was not measured."""

    OBSTACLE = "obstacle"  # it can carry no probe
    EXCLUDED = "excluded"  # by the user
    NEVER_CALLED = "never-called"  # by any workload
    FILE_NOT_RUN = "file-not-run"  # nor is anything of its file
    OTHER = "other"

    @property
    def is_idle(self) -> bool:
        """Return whether no workload runs it."""
        return self in (SkipKind.NEVER_CALLED, SkipKind.FILE_NOT_RUN)


@dataclass(frozen=True, slots=True)
class SkippedFunction:
    """A function that could not be probed, or is not touched by any workload, with the reason; `whole`: that is one of its whole file."""

    name: str
    file: str
    reason: str
    whole: bool = False
    kind: SkipKind = SkipKind.OTHER
