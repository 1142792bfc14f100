"""The functions and declarations of a Python program: all files of its tree, parsed and linked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perfdiff.languages.protocol import Program
from perfdiff.languages.python.linking import link
from perfdiff.languages.python.module import module_facts
from perfdiff.languages.python.module_cache import ModuleCache
from perfdiff.languages.python.sources import SourceFile, source_files


def index(tree: Path, *, depth: int, cache: Path | None = None, foreign: Sequence[SourceFile] = ()) -> Program:
    """Parse the Python files of `tree`, and `foreign` ones, and return the program's functions and declarations.

    Features follow at most `depth` attributes from a parameter or global. Files that cannot be parsed are the program's problems. `cache`
    is a folder that keeps what each file told.
    """
    sources = (*source_files(tree), *foreign)
    if cache is None:
        return link(module_facts(source, depth) for source in sources)
    return link(map(ModuleCache(cache, depth).facts, sources))
