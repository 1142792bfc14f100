"""The functions and declarations of a Python program: all files of its tree, parsed and linked."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

from perfdiff.languages.kept import TextCache
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
    kept = TextCache(cache, Path(__file__).parent.glob("*.py"))

    def facts(source: SourceFile) -> ModuleFacts:
        place = (platform.python_version(), str(depth), source.file, source.module, str(source.is_package), "")
        content = "\0".join(place).encode(errors="surrogateescape") + source.data
        return kept.value(ModuleFacts, content, lambda: module_facts(source, depth))

    return link(map(facts, (*source_files(tree), *foreign)))
