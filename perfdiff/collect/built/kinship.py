"""Whether two revisions are the same for everything that workloads run, without running any."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import PurePosixPath

from perfdiff.collect.built.workshop import Workshop
from perfdiff.languages.installed import installed
from perfdiff.languages.kept_files import is_byte_code
from perfdiff.languages.tree_files import all_differing

# Files whose whole effect on the program is in its functions and what they depend on, as the index of the language sees it.
SOURCES = frozenset(suffix for traits in installed() for suffix in traits.files.sources)


def are_sources(files: Collection[str]) -> bool:
    """Return whether nothing but sources is among files: of others the functions do not tell what they do."""
    return all(PurePosixPath(file).suffix.lower() in SOURCES for file in files)


def unchanged(workshop: Workshop, depth: int, idle: Collection[str]) -> bool:
    """Return whether no function differs between both sides, nor what it depends on, but for `idle` ones, which no workload calls.

    Both sides are built as they are, which measuring them would do as well; raise BuildError. A file that cannot be parsed leaves it open:
    then they may differ. So does byte code that differs in more than such functions, as in the order of definitions or in annotations.
    """
    plain = workshop.plain()
    programs = [workshop.packs.index(built, depth=depth) for built in plain.values()]
    if any(program.problems for program in programs):
        return False
    pairs = workshop.packs.match(*programs)
    if not all(pair.shown.name in idle for pair in pairs if pair.change.is_suspect):
        return False
    base, head = plain.values()
    code = workshop.packs.same_code(base, head, pairs)
    byte_code = (name for name, _ in all_differing(base.tree, head.tree) if is_byte_code(name))
    return all(name in code.alike or name in code.by_function for name in byte_code)
