"""Whether two revisions are the same for everything that workloads run, told by their functions, without running any."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import PurePosixPath

from perfdiff.collect.workshop import Workshop

# Files whose whole effect on the program is in its functions and what they depend on, as the index of the language sees it.
SOURCES = frozenset((".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".ipp", ".tpp", ".inl", ".py"))


def are_sources(files: Collection[str]) -> bool:
    """Return whether nothing but sources is among files: of others the functions do not tell what they do."""
    return all(PurePosixPath(file).suffix.lower() in SOURCES for file in files)


def unchanged(workshop: Workshop, depth: int, idle: Collection[str]) -> bool:
    """Return whether no function differs between both sides, nor what it depends on, but for `idle` ones, which no workload calls.

    Both sides are built as they are, which measuring them would do as well; raise BuildError. A file that cannot be parsed leaves it open:
    then they may differ.
    """
    programs = [workshop.packs.index(built, depth=depth) for built in workshop.plain().values()]
    if any(program.problems for program in programs):
        return False
    differing = (pair for pair in workshop.packs.match(*programs) if pair.change.is_suspect)
    return all(pair.shown.name in idle for pair in differing)
