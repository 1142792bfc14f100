"""A plain build in several layouts: the same objects, linked in other orders and with room between them.

Where code and data happen to lie makes some percent of a program's time, once and for all for a build (Mytkowicz et al. 2009; Curtsinger
and Berger 2013). A comparison whose runs are spread over several layouts covers the next build, too (Kalibera and Jones 2013: the build is
a level of its own, above the run).
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from perfdiff import units
from perfdiff.build.built import Built
from perfdiff.build.files import files
from perfdiff.build.linker import Linker
from perfdiff.build.links import RecordedLink, is_program, is_same
from perfdiff.build.patterns import Pattern, compiled, pattern
from perfdiff.build.relinking import relink
from perfdiff.build.variants import build_environment
from perfdiff.records.schema import Note

MOST_BYTES = 2e9  # of all layouts of a build; what 40 layouts of 50 MB of programs hold, which take a second to copy
DISK_SHARE = 0.25  # of the free space that layouts may take
LEAST_S = 30.0  # that making layouts may take, usually a second; where the build itself took longer, as long as that
_OTHER_SIDE = "the other side's cannot be linked again"
_SHOWN = 3  # names that a note lists before it only counts
_OTHERS = frozenset((".git", "CMakeFiles", "meson-private", "meson-info"))  # folders with programs that build systems made for themselves


@dataclass(slots=True)
class Layouts:
    """What layouts of a plain build are made from, in the tree where it was built; `room` is an empty folder for what that needs.

    `most` says how many there can be, the build itself among them, and `why` no more than that. A tree in which nothing `is_compiled`, such
    as that of a pure Python program, runs in programs that both sides share: what lies elsewhere from run to run are its values alone,
    and each run is in a layout of its own.
    """

    built: Built
    environment: Mapping[str, str]
    room: Path
    most: int
    most_s: float = math.inf  # that making some may take, where that is less than what it may take as a rule
    why: str = ""
    is_compiled: bool = field(init=False)
    _refused: dict[Path, str] = field(default_factory=dict)
    _strangers: tuple[Path, ...] = ()
    _pattern: Pattern | None = None

    def __post_init__(self) -> None:
        self.environment = build_environment(self.environment)
        self.is_compiled = bool(self.built.commands or self.built.links) or self._holds_programs()
        if not self.is_compiled:
            return
        self._refused = {link.output: why for link in self.built.links if (why := link.obstacle()) is not None}
        usable = [link for link in self.built.links if link.output not in self._refused]
        if not self.built.links:
            self._end(1, "no link of a program or shared library was seen in its build: it calls `ld` itself, or links outside its tree")
        if self.most == 1 or not usable:
            self.most = 1
            return
        linker = self._linker(time.monotonic() + self.limit_s)
        try:
            if any(link.sources for link in usable):
                usable, failed = compiled(usable, self.room, linker)
                self._refused |= failed
            self._pattern = pattern(self.built.tree, usable, linker)
            self._strangers = tuple(_strangers(self.built.tree, self.built.links))
        except OSError as error:
            self._end(1, f"its tree cannot be read: {error}")
            return
        size = self._pattern.size_bytes
        affordable = 1 + int(self._most_bytes() // max(1, size))
        if affordable < self.most:
            self._end(affordable, f"its programs hold {units.size(size)}, and layouts may take {units.size(self._most_bytes())}")

    @property
    def limit_s(self) -> float:
        """Return how long it may take to make some layouts."""
        return min(max(LEAST_S, self.built.duration_s), self.most_s)

    def make(self, seed: str, deadline: float) -> bool:
        """Link everything again in the build's tree, as `seed` draws it, before a time of the monotonic clock; return whether it was done.

        The draw depends on the seed alone: what a layout makes of code that base and head share is much the same on both sides, and cancels
        where runs are compared in pairs of one layout (common random numbers). What is left in the tree where it was not done is for the
        caller to put back.
        """
        if self._pattern is None or not self._pattern.links:
            return False
        linker = self._linker(deadline)
        try:
            failed = {} if linker.is_late else relink(self._pattern, seed, linker)
        except OSError as error:  # a file that cannot be read or written, or a disk that others have filled meanwhile
            self._end(1, f"its programs cannot be written: {error}")
            return False
        if linker.is_late:
            self.why = f"linking again takes longer than {units.duration(1e9 * self.limit_s)}"
            return False
        self._refused |= failed
        return len(failed) < len(self._pattern.links)

    def _holds_programs(self) -> bool:
        try:
            return next(_programs(self.built.tree), None) is not None
        except OSError:  # then nobody knows
            return True

    def _linker(self, deadline: float) -> Linker:
        return Linker(self.environment, deadline)

    def _end(self, most: int, why: str) -> None:
        self.most, self.why = most, why

    def _most_bytes(self) -> float:
        return min(MOST_BYTES, DISK_SHARE * shutil.disk_usage(self.room).free)

    def notes(self, count: int, asked: int) -> tuple[Note, ...]:
        """Say why there are `count` layouts where more were `asked` for, and which programs lie in all of them as in the plain build.

        Of a build that compiled nothing there is nothing to say.
        """
        if asked == 1 or not (self.built.commands or self.built.links):
            return ()
        reasons = [*dict.fromkeys(self._refused.values())]
        if count == 1:
            why = self.why or next(iter(reasons), _OTHER_SIDE)
            return (
                Note("one-layout", f"the build could be had in one layout only, so that what layout makes of times is not known: {why}"),
            )
        notes = []
        if count < asked:
            notes.append(Note("fewer-layouts", f"{count} layouts of the build were made and not {asked}: {self.why or _OTHER_SIDE}"))
        reasons += [
            f"{path.relative_to(self.built.tree)} was not seen to be linked" for path in self._strangers if path not in self._refused
        ]
        if reasons:
            shown = units.listed(reasons, _SHOWN, ";")
            notes.append(Note("layout-kept", f"some programs of the build lie in memory as they do in its first layout: {shown}"))
        return tuple(notes)


def _strangers(tree: Path, links: Sequence[RecordedLink]) -> Iterator[Path]:
    """Yield the programs of a tree that are no link's output, nor a copy of one."""
    linked, sizes = {link.output.resolve() for link in links}, {link.size for link in links}
    for path in _programs(tree):
        if path not in linked and not _is_copy(path, links, sizes):
            yield path


def _is_copy(path: Path, links: Sequence[RecordedLink], sizes: Set[int]) -> bool:
    size = path.stat().st_size
    return size in sizes and any(is_same(path, link.size, link.digest) for link in links)


def _programs(tree: Path) -> Iterator[Path]:
    """Yield the programs and shared libraries of a tree, without those that build systems made to try compilers out."""
    for path in files(tree):
        if not path.is_symlink() and _OTHERS.isdisjoint(path.relative_to(tree).parts) and is_program(path):
            yield path
