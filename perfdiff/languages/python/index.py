"""The functions and declarations of a Python program: all files of its tree, parsed and linked."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from perfdiff.languages.kept import FactsCache
from perfdiff.languages.protocol import Program
from perfdiff.languages.python.facts import ModuleFacts
from perfdiff.languages.python.linking import link
from perfdiff.languages.python.module import module_facts
from perfdiff.languages.python.sources import SourceFile, source_files


def index(tree: Path, *, depth: int, cache: Path | None = None, foreign: Sequence[SourceFile] = ()) -> Program:
    """Parse the Python files of `tree`, and `foreign` ones, and return the program's functions and declarations.

    Features follow at most `depth` attributes from a parameter or global. Files that cannot be parsed are the program's problems. `cache`
    is a folder that keeps what each file told.
    """
    kept = FactsCache(cache, ModuleFacts, Path(__file__).parent.glob("*.py"))
    sources = (*source_files(tree), *foreign)
    return link(kept.facts(_told_by(source, depth), partial(module_facts, source, depth)) for source in sources)


def _told_by(source: SourceFile, depth: int) -> bytes:
    """Return all that a file's facts are made of, the parser's version too."""
    parts = (platform.python_version(), str(depth), source.file, source.module, str(source.is_package))
    return "\0".join((*parts, "")).encode(errors="surrogateescape") + source.data
