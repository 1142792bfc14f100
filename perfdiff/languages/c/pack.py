"""C and C++ behind the language protocol.

What reads programs, by libclang and as ELF files, is loaded where it is asked for: a command that measures nothing needs the name alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from perfdiff.config import Config
from perfdiff.languages.protocol import (
    AllocatingCall,
    CodeComparison,
    CompileCommand,
    Compiled,
    Counterpart,
    NamedLine,
    PlaceReader,
    PlainBuild,
    Probe,
    ProbeCosts,
    Program,
    Surroundings,
)
from perfdiff.records.hot_lines import HotLine
from perfdiff.records.lasting_blocks import LastingBlocks


def made(config: Config, surroundings: Surroundings) -> C:
    """Return the pack of C and C++."""
    return C(surroundings.cache / "units")


class C(Compiled):
    """The language pack of C and C++. `units` is a folder that keeps what each translation unit told, from one revision to the next."""

    name = "c"
    counts = True
    slowdown = 20.0  # some ten times in most programs, forty in those that mostly read and write memory

    def __init__(self, units: Path | None = None) -> None:
        self._units = units

    def index(self, built: PlainBuild, *, depth: int, others: Sequence[PlainBuild] = ()) -> Program:
        """Parse everything that was compiled in a tree and return its functions and declarations."""
        from perfdiff.languages.c.index import index

        return index(built.tree, built.commands, depth=depth, cache=self._units, others=[build.tree for build in others])

    def match(self, base: Program, head: Program) -> tuple[Counterpart, ...]:
        """Pair the functions of both revisions and say how each differs."""
        from perfdiff.languages.c.matching import match

        return match(base, head)

    def probe_costs(self, built: PlainBuild) -> ProbeCosts:
        """Return what a call costs in real programs, two to four times what it does in a loop of `scripts/bench probe`: caches are shared
        with the program there, branches are harder to foretell, and callees are not inlined (docs/studies/probes.md). What passes costs no
        more.
        """
        return ProbeCosts(timed_ns=60.0, counted_ns=40.0, passed_ns=1.5, marked_ns=25.0)

    def same_code(
        self, base: PlainBuild, head: PlainBuild, pairs: Sequence[Counterpart], differing: Mapping[str, Mapping[int, Path]]
    ) -> CodeComparison:
        """Compare the machine code of two plain builds whose functions are `pairs`."""
        from perfdiff.languages.c import machine_code

        return machine_code.same_code(base, head, pairs, differing)

    def insert(self, tree: Path, probes: Sequence[Probe], plain_tree: Path | None = None) -> Path:
        """Write the probes into the sources of `tree`; return the header to be included ahead of every translation unit.

        `plain_tree` is a tree that was built without probes, which has the sources that the build makes.
        """
        from perfdiff.languages.c.probes import insert

        return insert(tree, probes, plain_tree)

    def carried(self, tree: Path, probes: Sequence[Probe]) -> frozenset[int]:
        """Return the numbers of the probes that the sources of a built tree have; where each build makes another text, they are lost."""
        from perfdiff.languages.c.probes import carried

        return carried(tree, probes)

    def runtime(self, compiler: str, cache: Path) -> Path:
        """Return the folder of the runtime library built with the target's compiler, building it at the first call."""
        from perfdiff.languages.c import runtime_library

        return runtime_library.build(compiler, cache)

    def named(self, lines: Sequence[HotLine], tree: Path, commands: Sequence[CompileCommand]) -> tuple[NamedLine, ...]:
        """Return hot lines of a counted process with the variables, allocations and stacks that they lie in."""
        from perfdiff.languages.c import naming

        return naming.named(lines, tree, commands)

    def allocations(self, blocks: Sequence[LastingBlocks], tree: Path) -> tuple[AllocatingCall | None, ...]:
        """Return the call of the project's own code that each of the blocks was asked for by, None where the line is not known."""
        from perfdiff.languages.c import naming

        return naming.allocations(blocks, tree)

    def readable(self, symbols: Sequence[str]) -> tuple[str, ...]:
        """Return the names of functions that a counted process calls outside of the project, as programmers write them."""
        from perfdiff.languages.c import naming

        return naming.readable(symbols)

    def has_threads(self, tree: Path) -> bool:
        """Return whether what was built in `tree` may run several threads; True where that is not known."""
        from perfdiff.languages.c import threads

        return threads.has_threads(tree)

    def places(self, built: PlainBuild) -> PlaceReader:
        """Return the reader of a placed build's line counts."""
        from perfdiff.languages.c import places

        return places.places(built)
