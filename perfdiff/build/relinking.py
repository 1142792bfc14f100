"""Links done again where they were done: objects in another order, with room between them."""

from __future__ import annotations

import os
import random
import stat
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perfdiff import temporary
from perfdiff.build import archives, paddings
from perfdiff.build.files import replace_file
from perfdiff.build.linker import Linker
from perfdiff.build.links import RecordedLink, is_program
from perfdiff.build.patterns import LinkPattern, Pattern
from perfdiff.languages.c import elf

_ASIDE = ".perfdiff"  # behind the name of a file that is about to be replaced


def relink(pattern: Pattern, seed: str, linker: Linker) -> dict[Path, str]:
    """Make programs and shared libraries of a tree lie in memory as `seed` draws it.

    Returns what could not be linked so, by its path, with reasons: it is as it was. Raise OSError.
    """
    failed: dict[Path, str] = {}
    with temporary.folder() as room:
        job = _Job(room, linker, random.Random(seed))
        for archive in pattern.archives:
            job.shuffle(archive)
        for link_pattern in pattern.links:
            output = link_pattern.link.output
            if not job.link(link_pattern):
                why = "does not link with its objects in another order, nor with room between them, to the same program"
                failed[output] = f"{output.name} {why}"
                continue
            for copy in pattern.copies[output]:
                replace_file(copy, output)
    return failed


@dataclass(frozen=True, slots=True)
class _Job:
    """One layout at work; `room` is a folder for what it needs meanwhile, `paddings` are made by compiler and machine options."""

    room: Path
    linker: Linker
    rng: random.Random
    paddings: dict[tuple[str, ...], list[str]] = field(default_factory=dict)

    def shuffle(self, path: Path) -> None:
        """Put an archive's members into another order; where `ranlib` does not take it, it stays as it is."""
        archive = archives.read_archive(path)
        if archive is None:
            return
        draft = path.with_name(f"{path.name}{_ASIDE}")  # beside it: a thin archive names files from where it lies
        draft.write_bytes(archive.shuffled(self.rng))
        if self.linker.run("ranlib", [str(draft)], path.parent):
            replace_file(path, draft)
        draft.unlink()

    def link(self, pattern: LinkPattern) -> bool:
        """Link in another order with room between objects, else in the old order; return whether either could be done.

        Where several objects define a symbol, as inline functions, the order says whose definition is taken: where that is another one, the
        program is another one as well.
        What comes out has the mode and times of what was there: `make` would build anew what depends on a newer file.
        """
        link, before = pattern.link, pattern.link.output.with_name(f"{pattern.link.output.name}{_ASIDE}")
        padding = self._padding(link)
        if not padding:
            return False
        status, taken = link.output.stat(), _taken(link.output)
        link.output.rename(before)
        for ordered in (False, True):
            words = self._words(pattern, padding, ordered=ordered)
            is_linked = self.linker.run(link.compiler, words, link.directory, link.environment) and _came_out(link.output)
            if is_linked and _taken(link.output) >= taken:
                link.output.chmod(stat.S_IMODE(status.st_mode))
                os.utime(link.output, ns=(status.st_atime_ns, status.st_mtime_ns))
                before.unlink()
                return True
        before.replace(link.output)
        return False

    def _padding(self, link: RecordedLink) -> list[str]:
        """Return the objects that are room for this link, none where they cannot be assembled."""
        machine = paddings.machine_options(link.arguments)
        if (link.compiler, *machine) not in self.paddings:
            folder = self.room / f"padding{len(self.paddings)}"
            folder.mkdir()
            sources = paddings.write(folder, [paddings.front(self.rng), *paddings.between(self.rng)])
            are_assembled = self.linker.run(link.compiler, [*machine, "-c", *sources], folder)
            self.paddings[link.compiler, *machine] = [str(folder / source)[:-1] + "o" for source in sources] if are_assembled else []
        return self.paddings[link.compiler, *machine]

    def _words(self, pattern: LinkPattern, padding: Sequence[str], *, ordered: bool) -> list[str]:
        words = list(pattern.link.arguments)
        for group in () if ordered else pattern.exchangeable:
            for place, other in zip(group, self.rng.sample(group, len(group)), strict=True):
                words[place] = pattern.link.arguments[other]
        return paddings.among(words, pattern.objects or pattern.link.inputs[:1], padding, self.rng)


def _taken(program: Path) -> Counter[tuple[str, int]]:
    """Return which definitions of functions and variables were taken for a program, by name and bytes; none of one without symbols."""
    try:
        symbols = elf.read(program.read_bytes()).symbols
    except elf.DamagedElfError:
        return Counter()
    return Counter((symbol.name, symbol.size) for symbol in symbols if symbol.size and not symbol.is_local)


def _came_out(output: Path) -> bool:
    return output.is_file() and is_program(output)
