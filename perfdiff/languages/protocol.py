"""What perfdiff asks of a language: what a build needs, which functions there are, what changed, and how probes get into processes."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from perfdiff.records.arrays import Ints
from perfdiff.records.differences import ChangeReason, Entity, SkippedFunction
from perfdiff.records.hot_lines import HotLine
from perfdiff.records.lasting_blocks import LastingBlocks
from perfdiff.records.places import Place
from perfdiff.records.schema import Change, Note, Origin, Phase
from perfdiff.records.uncompared import ComparisonGap


@dataclass(frozen=True, slots=True)
class CompileCommand:
    """One recorded compiler call that turned a source file into an object. Paths are absolute."""

    file: Path
    directory: Path
    compiler: str  # the real compiler's path
    arguments: tuple[str, ...]  # without the compiler itself
    cplusplus: bool


class Load(StrEnum):
    """How a feature's value is read at the start of a call."""

    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOATING = "floating"
    TEXT = "text"  # length of a C string
    FILE = "file"  # size in bytes of the file a string names
    DEPTH = "depth"  # path components of the file a string names
    TYPE = "type"  # dynamic type, by its vtable pointer


@dataclass(frozen=True, slots=True)
class FeaturePlan:
    """A feature of a function's input, and how it is read.

    `expression` is in the terms of the pack that planned it: for C a complete call of a `pd_*` reader that fills one cell, with the cell's
    number left as `{cell}` (see `docs/architecture/probes.md`, the probe's text).
    """

    name: str  # as a programmer writes it: `n`, `list->size`, `this->count`, `strlen(path)`
    origin: Origin
    load: Load
    expression: str
    category: bool = False
    labels: Mapping[int, str] | None = None

    @property
    def is_far(self) -> bool:
        """Return whether reading it may take long: as long as a text is, or until the kernel has answered."""
        return self.load in (Load.TEXT, Load.FILE, Load.DEPTH)


@dataclass(frozen=True, slots=True)
class BranchPlan:
    """A condition whose outcomes can be counted: byte offsets of its text in its file, by which packs that rewrite sources wrap it.

    `expression` is in the terms of the pack that planned it, where it finds conditions otherwise.
    """

    start: int
    end: int
    line: int
    text: str
    expression: str = ""


@dataclass(frozen=True, slots=True)
class Written:
    """What a function was written as, where a tool made the code of it that is compiled: the file in the tree, its first line, the text."""

    file: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class MacroBody:
    """Where the body stands of functions that a macro makes, each under a name of its own: the offset is just behind its `{`."""

    file: str
    offset: int


@dataclass(frozen=True, slots=True)
class FunctionDefinition:
    """A function definition as one revision's build sees it; one per place in a file, whatever the number of translation units.

    `key` tells it from all others of its program and is stable between revisions (USR; with the file for internal linkage). `names`
    are all names it goes by (a body included several times under renaming macros, template instances). `body` is the byte offset
    just behind the body's `{`, `start` and `end` the extent. `tokens` digests the body and signature without comments and white
    space. `uses` are keys of `Declaration`s it depends on, transitively; `calls` are keys of functions; `reads` and `writes` names of
    fields (`struct list.tail`) and globals. `obstacle` says why it cannot carry a probe, or is None. `linkage` are the names of the
    symbols that it may become in an object (several for constructors), none of a template and of what stands in one. `language` is the
    name of the pack that found it. `above` lines of the text, such as decorators, stand above `line`. `no_code` are stretches of lines of
    the file, first and last, that are no code of its own: comments, docstrings, functions inside it that are told of by themselves. One
    that `loads` runs when a part of the program is loaded, once in a process, and pays for what it is the first to load; one that also
    `declares` calls nothing itself, and repeats nothing. `written` is what a tool made it of, which people are shown. `made` is where the
    body stands of one that a macro makes, whose extent is the macro's use.
    """

    key: str
    name: str
    names: tuple[str, ...]
    file: str  # relative to the tree
    line: int
    start: int
    body: int
    end: int
    text: str
    signature: str
    tokens: str
    uses: frozenset[str] = frozenset()
    calls: frozenset[str] = frozenset()
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    features: tuple[FeaturePlan, ...] = ()
    branches: tuple[BranchPlan, ...] = ()
    obstacle: str | None = None
    linkage: tuple[str, ...] = ()
    language: str = "c"
    above: int = 0
    no_code: tuple[tuple[int, int], ...] = ()
    loads: bool = False
    declares: bool = False
    written: Written | None = None
    made: MacroBody | None = None

    @property
    def first_line(self) -> int:
        """Return the number of the first line of its text."""
        return self.line - self.above


@dataclass(frozen=True, slots=True)
class Declaration:
    """A type, macro, global or set of compile flags that functions depend on."""

    key: str
    entity: Entity
    fingerprint: str  # digest of what dependants can see: layout, definition, initialiser
    summary: str  # what to print when it changed, e.g. "128 bytes"
    file: str
    line: int
    size_bytes: int | None = None  # of a type's objects, where its summary is that


@dataclass(frozen=True, slots=True)
class Program:
    """All functions and declarations of one built tree. Keys map to values; `problems` are files that could not be parsed."""

    functions: Mapping[str, FunctionDefinition]
    declarations: Mapping[str, Declaration]
    problems: tuple[SkippedFunction, ...]


@dataclass(frozen=True, slots=True)
class Counterpart:
    """A function on both sides; exactly one of `base` and `head` is None where it was added or removed, or is measured alone.

    One that is `followed` is measured whatever the survey says of it.
    """

    base: FunctionDefinition | None
    head: FunctionDefinition | None
    change: Change
    reasons: tuple[ChangeReason, ...]
    culprits: tuple[Entity, ...]
    followed: bool = False

    @property
    def shown(self) -> FunctionDefinition:
        """Return the definition that the function is shown by, head's where there is one."""
        definition = self.head or self.base
        assert definition is not None, "a counterpart exists on one side at least"
        return definition


@dataclass(frozen=True, slots=True)
class Probe:
    """A function that gets a probe: its number in both builds, and which of its features and branches are read (indices into the plan)."""

    id: int
    definition: FunctionDefinition
    features: tuple[int, ...]
    branches: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NamedLine:
    """A hot line and what it lies in, in words; nothing where that is not known. `threads` take part in what makes it hot."""

    line: HotLine
    says: tuple[str, ...]
    threads: int


@dataclass(frozen=True, slots=True)
class AllocatingCall:
    """A line of the project that asks for memory, by the function that it stands in and its file below the tree's root."""

    function: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where a pack works: the `project` folder of the user's checkout, the user's `environment`, and a `cache` that revisions share."""

    project: Path
    cache: Path
    environment: Mapping[str, str]


class PlainBuild(Protocol):
    """A finished build without probes: the root of its tree, what lies beside that, and the compile commands recorded in it."""

    @property
    def tree(self) -> Path:
        """Return the root of the built tree."""
        ...

    @property
    def beside(self) -> Path:
        """Return the folder of the build, where packs keep what they laid beside the tree."""
        ...

    @property
    def commands(self) -> tuple[CompileCommand, ...]:
        """Return the recorded compile commands."""
        ...


@dataclass(frozen=True, slots=True)
class CodeComparison:
    """What two plain builds have in common: what is proved of their files, and what a look at their code says of functions.

    Files are paths in the trees, of regular files that both sides have and that are not the same to the byte. Every other difference
    between the trees counts for a run that opens, lists or asks after it. Who runs or loads `alike` files gets the same: code and data to
    the byte, or the engine's own code. Those `by_function` differ in the bodies of functions that changed, and in nothing that is seen
    without calling these. `compiled` are the sources whose compiled form lies in the trees: to load it runs ask after the source, and open
    it not. Where `in_tree`, all that makes programs of the two builds differ lies in their trees.

    Functions are the same where they mean the same, unless a pack looks at their code.
    """

    alike: frozenset[str] = frozenset()
    by_function: frozenset[str] = frozenset()
    compiled: frozenset[str] = frozenset()
    in_tree: bool = False

    def is_same(self, pair: Counterpart) -> bool:
        """Return whether a function runs the same instructions on the same constants; False where that is not known."""
        return not pair.change.is_suspect

    def is_unlike(self, pair: Counterpart) -> bool:
        """Return whether a function has code of its own, not only in others that have it inlined, and that is not the same."""
        return pair.change.is_suspect


class PlaceReader(Protocol):
    """Reads how often each line of a placed build ran: the same places for each of its runs."""

    @property
    def places(self) -> tuple[Place, ...]:
        """Return the counted places by file, line and function; each instance of a template is one."""
        ...

    @property
    def sources(self) -> Mapping[str, tuple[str, ...]]:
        """Return the lines of each file that has places; none of a file that is not there."""
        ...

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the variables that make a run leave its counts in `folder`, which is there and empty."""
        ...

    def read(self, folder: Path) -> Ints:
        """Return how often each place ran in the run that wrote to `folder`, (places,), over all its processes."""
        ...

    def lost(self, folder: Path) -> int:
        """Return how many processes of the run ended without writing their counts."""
        ...


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a build command finds: `variables` that lead to what was laid for it. `command` is the one to run where the user names none."""

    variables: Mapping[str, str]
    command: str = ""


class Workplace(Protocol):
    """Something that a language puts beside a tree before the build command runs, such as an environment with packages."""

    @property
    def identity(self) -> str:
        """Return its part of a build's key, such as the version of an interpreter."""
        ...

    def prepare(self, beside: Path, tree: Path, place: Path, environment: Mapping[str, str]) -> Prepared:
        """Make what the build command needs in the folder `beside`; it runs in the folder `place` of `tree`; raise BuildError."""
        ...

    def broken(self, beside: Path) -> str | None:
        """Return why what was laid in the folder of a kept build does not serve any more, None where it does."""
        ...

    def finish(self, beside: Path, tree: Path, place: Path, environment: Mapping[str, str]) -> tuple[Note, ...]:
        """Do what is left after the build command; return what there is to tell; raise BuildError."""
        ...


@dataclass(frozen=True, slots=True)
class ProbeCosts:
    """The cost of a probe in ns: for a call that is timed with its inputs, one that is counted, and one that is skipped.

    `branch_ns` is what one outcome of a watched condition adds, `marked_ns` a counted call that leaves no entry on the shadow stack, but a
    mark at its frame; infinity where calls have no frame on the C stack.
    """

    timed_ns: float
    counted_ns: float
    passed_ns: float
    branch_ns: float = 1.0
    marked_ns: float = math.inf


class Language(Protocol):
    """One language pack. Several of them may serve one tree (see `packs`): a function knows which one found it.

    `counts` says whether it can count the work of single calls without a clock, and `slowdown` how many times longer such a run takes, as a
    rule. `draws` names variables that the order of things in a process depends on, such as the seed of hashes: runs of a pair have the same
    number there, other pairs another one. A pack says no more than what there is of its language: what stands here is that there is none.
    """

    name: str
    workplace: Workplace | None = None
    counts: bool
    slowdown: float
    draws: tuple[str, ...] = ()

    def index(self, built: PlainBuild, *, depth: int, others: Sequence[PlainBuild] = ()) -> Program:
        """Return the functions and declarations of a built tree; features lie up to `depth` steps from what a call is given.

        `others` are builds that it is compared with: what it uses of other projects belongs to it where it is not the same there.
        """
        ...

    def match(self, base: Program, head: Program) -> tuple[Counterpart, ...]:
        """Pair the functions of both revisions and say how each differs."""
        ...

    def probe_costs(self, built: PlainBuild) -> ProbeCosts:
        """Return what probes cost in the programs of a build."""
        ...

    def runs_on(self, built: PlainBuild) -> tuple[str, ...]:
        """Return what a build's programs run on, with versions: the interpreter, and packages of other projects."""
        return ()

    def told(self, base: PlainBuild, head: PlainBuild) -> tuple[Note, ...]:
        """Return notes on other differences of two builds, such as versions of what they use."""
        return ()

    def absent(self, base: PlainBuild, head: PlainBuild, differing: Mapping[str, Mapping[int, Path]]) -> tuple[str, ...]:
        """Return what `differing` files use where there is any, and that the user has by hand and the builds have not."""
        return ()

    def unfollowed(
        self, base: PlainBuild, head: PlainBuild, differing: Mapping[str, Mapping[int, Path]], met: Collection[str] | None
    ) -> tuple[ComparisonGap, ...]:
        """Return files that say what users install, where both builds have the same; runs `met` files, in trees by name, if known."""
        return ()

    def same_code(
        self, base: PlainBuild, head: PlainBuild, pairs: Sequence[Counterpart], differing: Mapping[str, Mapping[int, Path]]
    ) -> CodeComparison:
        """Compare the code of two plain builds whose functions are `pairs`, as it is run.

        `differing` are the files of their trees that are not the same, with where each lies: 0 base's, 1 head's.
        """
        ...

    def variables(self, built: PlainBuild, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return the variables that workloads of a build run with, besides their `environment`."""
        return {}

    def byte_code(self, built: PlainBuild) -> tuple[str, ...]:
        """Return files of a tree that the pack compiled, and that runs leave by themselves if the program lets them."""
        return ()

    def calm(self, built: PlainBuild, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return the variables with which threads of a runtime's own work while the program waits for them."""
        return {}

    def attach(self, phase: Phase, built: PlainBuild, probes: Sequence[Probe], folder: Path) -> Mapping[str, str]:
        """Return the variables that put probes into the processes of a run, those that are not in its sources; files go to `folder`."""
        return {}

    def places(self, built: PlainBuild) -> PlaceReader | None:
        """Return the reader of a placed build's line counts, None if lines cannot be counted."""
        return None


class Compiled(Language, Protocol):
    """A pack whose probes are written into the sources of a tree, and compiled with them."""

    def insert(self, tree: Path, probes: Sequence[Probe], plain_tree: Path | None = None) -> Path:
        """Write the probes into the sources of `tree`; return the header to be included ahead of every translation unit."""
        ...

    def carried(self, tree: Path, probes: Sequence[Probe]) -> frozenset[int]:
        """Return the numbers of those `probes` that stand in the sources of a built tree: a source that the build wrote anew has none."""
        ...

    def runtime(self, compiler: str, cache: Path) -> Path:
        """Return the folder of the runtime library built with the target's compiler, building it at the first call."""
        ...

    def named(self, lines: Sequence[HotLine], tree: Path, commands: Sequence[CompileCommand]) -> tuple[NamedLine, ...]:
        """Return hot lines of a counted process with the variables, allocations and stacks that they lie in."""
        ...

    def allocations(self, blocks: Sequence[LastingBlocks], tree: Path) -> tuple[AllocatingCall | None, ...]:
        """Return the call of the project's own code that each of the blocks was asked for by, None where the line is not known."""
        ...

    def readable(self, symbols: Sequence[str]) -> tuple[str, ...]:
        """Return the names of functions that a counted process calls outside of the project, as programmers write them."""
        ...

    def has_threads(self, tree: Path) -> bool:
        """Return whether what was built in `tree` may run several threads; True where that is not known."""
        ...
