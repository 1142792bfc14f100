"""What is known of a language without its code loaded: words, names, files and prices, and where the pack that serves it lies."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

KEY = "[0-9a-f]{32}"  # the name of an entry of the cache
# What a process writes that has not ended, here and by earlier versions, with the names of `tempfile` alone. One in sixteen of those
# names has neither digit nor underscore, and is left: so is `.htaccess`.
DRAFT = r"|\.writing-[a-z0-9_]{8}|\.(?=[a-z]*[0-9_])[a-z0-9_]{8}|tmp(?=[a-z]*[0-9_])[a-z0-9_]{8}"


@dataclass(frozen=True, slots=True)
class Holding:
    """A folder of the cache: what it holds, in words, and the patterns of its entries' names, one for each level of folders.

    Entries are folders where `holds_folders`, else files. Those that are `ageing` go by the time since they were used. Files whose names
    `beside` matches lie beside the entries.
    """

    says: str
    names: tuple[str, ...]
    holds_folders: bool
    ageing: bool = True
    beside: str | None = None


def parsed(says: str) -> Holding:
    """Return a folder of what was read off sources: files of JSON in folders, both by digests; of short ones, the first two digits."""
    return Holding(says, (rf"[0-9a-f]{{2}}|{KEY}", rf"[0-9a-f]{{30}}(?:[0-9a-f]{{2}})?\.json{DRAFT}"), holds_folders=False)


class KeyKind(StrEnum):
    """What a key of the configuration holds."""

    TEXT = "text"
    TEXTS = "texts"
    TRUTH = "truth"


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a language's section in the configuration; `wanted` names the kind of value with an example."""

    kind: KeyKind
    wanted: str = ""


@dataclass(frozen=True, slots=True)
class Price:
    """What one event of a counter takes, in ns: usually, at most, and at the least; `models/prices.py` says what each is for."""

    usual_ns: float | None = None
    dearest_ns: float | None = None
    work_ns: float | None = None


@dataclass(frozen=True, slots=True)
class BuildCause:
    """Why a build fails, where its log matches `pattern`, whose group takes the place in `says`.

    One that counts only `without_error` may be what a script can do without: it counts where the log tells no error.
    """

    pattern: str
    says: str
    remedy: str
    without_error: bool = False


@dataclass(frozen=True, slots=True)
class ErrorLine:
    """A line of a build's log that tells an error; `hint` is in each match, and far faster to look for."""

    pattern: bytes
    hint: bytes


@dataclass(frozen=True, slots=True)
class Complaint:
    """What is the matter with a failed run, and what to do about it; `slug` names the message."""

    slug: str
    says: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Wording:
    """Words of the language's texts by which the analysis finds what a function returns, and whether only the layout of types differs.

    `statuses` say how a call ended and not what it found, `itself` is the object that a method is called on, `between` stand between
    values. `sizes` finds text that computes with the size of a type.
    """

    statuses: frozenset[str] = frozenset()
    itself: frozenset[str] = frozenset()
    between: frozenset[str] = frozenset()
    sizes: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class Queries:
    """Functions of libraries that ask another process and wait for its answer, by the names that counted runs give them.

    `functions` are whole names. Methods are named by the ends of what they belong to, `owners`, and their own names, `methods`, in any
    case. `prepares` matches what only prepares a statement that another function sends, `requests` finds what sends requests of HTTP.
    """

    functions: frozenset[str] = frozenset()
    owners: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    prepares: str | None = None
    requests: str | None = None


@dataclass(frozen=True, slots=True)
class Files:
    """Files of the language: `sources`, by their suffixes, whose effect on a program is in its functions and what they depend on.

    `kept_folders` are names of folders in which an interpreter keeps what it compiled, `byte_code` the suffix of what lies there, and
    `source_suffix` that of what it was compiled from. `outside` finds paths of files outside of trees that interpreters write for
    themselves. `packaging` are files at the top of a tree by which tools of the language build or install it.
    """

    sources: frozenset[str] = frozenset()
    packaging: frozenset[str] = frozenset()
    kept_folders: frozenset[str] = frozenset()
    byte_code: str | None = None
    source_suffix: str = ""
    outside: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class Building:
    """What the language has to do with builds: `tools` that `doctor` looks for, `variables` that change a result, folders of the cache.

    `errors` are lines of a log that tell one, `causes` say why builds fail. `vague_causes` often follow from other causes, and are looked
    for after all others. `packages` are the folders below a home in which package managers keep what they have loaded, by the variables
    that name them.
    """

    tools: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    errors: tuple[ErrorLine, ...] = ()
    causes: tuple[BuildCause, ...] = ()
    vague_causes: tuple[BuildCause, ...] = ()
    holdings: Mapping[str, Holding] = field(default_factory=lambda: MappingProxyType({}))
    packages: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Forking:
    """How a runtime is kept ready: `server` is a script for the `program`, a pattern of names, that forks for each run (see there).

    Behind `caller`, words of a command that follow the program's, stands what is done with single functions: their calls are recorded, and
    made alone (`benchmarks/alone.py` of Python's pack).
    """

    program: re.Pattern[str]
    server: Path
    caller: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Running:
    """A language's traits at run time: `variables` that it reads, and what it prints when a file is missing or something fails.

    `own_threads` is how names of threads begin by which the runtime compiles and collects garbage, as the kernel has them.
    `complaint` returns what the end of a failed run's standard error complains of, None where it knows nothing of it.
    `options` matches what decides of speed where an interpreter is started or configured: `-Xint`, `opcache.enable = 0`.
    """

    variables: tuple[str, ...] = ()
    absent_file: str | None = None
    own_threads: tuple[str, ...] = ()
    complaint: Callable[[str], Complaint | None] | None = None
    forking: Forking | None = None
    options: str | None = None


@dataclass(frozen=True, slots=True)
class Traits:
    """One language: the `name` that its functions and its section of the configuration have, and the `title` that people write.

    What loads more than this is named as `module:object`, and loaded when it is asked for: `pack` makes the language pack (see
    `registry`), `host` yields what `doctor` says of the machine, `project` recognises projects (`configuration/recognition.py`).
    `frameworks` are those of its benchmarks and tests (`frameworks.py`).
    `settings` is the value of its section, whose `keys` are its fields; a language without a section serves every tree.
    `unbuilt` says what becomes of a revision that no command builds.
    """

    name: str
    title: str
    pack: str
    host: str | None = None
    project: str | None = None
    frameworks: str | None = None
    settings: Callable[..., object] | None = None
    keys: Mapping[str, Key] = field(default_factory=lambda: MappingProxyType({}))
    unbuilt: str | None = None
    wording: Wording = Wording()
    queries: Queries = Queries()
    prices: Mapping[str, Price] = field(default_factory=lambda: MappingProxyType({}))
    files: Files = Files()
    building: Building = Building()
    running: Running = Running()
