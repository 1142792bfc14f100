"""The functions and declarations of a Java program: the class files of its tree, and the sources that they come from."""

from __future__ import annotations

from pathlib import Path

from perfdiff.languages.java.classes import Class, ClassFile, ClassReader, class_files
from perfdiff.languages.java.functions import JavaFunctions
from perfdiff.languages.java.hierarchy import Hierarchy
from perfdiff.languages.java.jdks import Jdk
from perfdiff.languages.java.joining import PlacedClass, join
from perfdiff.languages.java.linking import link
from perfdiff.languages.java.sources import JavaFile, SourceReader
from perfdiff.languages.protocol import Program
from perfdiff.records.differences import SkippedFunction

_NO_CLASSES = "no class file of it is in the tree: has the build compiled it?"


def index(tree: Path, jdk: Jdk, *, depth: int, cache: Path | None, helpers: Path) -> Program:
    """Return the program of a built tree.

    Features follow at most `depth` fields from what a call is given. What cannot be read are the program's problems. `cache` is a folder
    that keeps what each file told, `helpers` that of our compiled programs. Raises BuildError where these cannot be run.
    """
    sources = SourceReader(cache).read(tree)
    declared = {name for source in sources for name in source.top_types}
    files = list(class_files(tree, declared))
    outcomes = ClassReader(jdk, cache, helpers).read(file.data for file in files)
    candidates = [PlacedClass(file.place, outcome) for file, outcome in zip(files, outcomes, strict=True) if isinstance(outcome, Class)]
    joined = join(candidates, sources)
    by_name: dict[str, Class] = {}
    for candidate in candidates:  # what compilers made up too: what it does is looked up
        by_name.setdefault(candidate.compiled.name, candidate.compiled)
    by_name |= {joined_class.compiled.name: joined_class.compiled for joined_class in reversed(joined)}
    hierarchy = Hierarchy(by_name)
    broken = [(file.place, outcome) for file, outcome in zip(files, outcomes, strict=True) if isinstance(outcome, str)]
    broken += [(source.file, source.syntax.problem) for source in sources if source.syntax.problem is not None]
    problems = (*(SkippedFunction(file.rpartition("/")[2], file, problem) for file, problem in broken), *_uncompiled(sources, files))
    return link(JavaFunctions(joined, hierarchy, depth).all(), joined, hierarchy, problems)


def _uncompiled(sources: tuple[JavaFile, ...], files: list[ClassFile]) -> tuple[SkippedFunction, ...]:
    """Tell of one source where nothing at all was compiled: a tree may have some that are no part of its build."""
    first = next((source for source in sources if source.top_types), None)
    if files or first is None:
        return ()
    return (SkippedFunction(first.file.rpartition("/")[2], first.file, _NO_CLASSES),)
