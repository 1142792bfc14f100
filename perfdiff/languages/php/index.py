"""The functions and declarations of a PHP program: all files of its tree, parsed and linked."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from pathlib import Path

from perfdiff.languages import syntax_trees
from perfdiff.languages.kept import FactsCache
from perfdiff.languages.php.facts import FileFacts
from perfdiff.languages.php.functions import file_facts
from perfdiff.languages.php.linking import link
from perfdiff.languages.php.sources import PhpFile, source_files
from perfdiff.languages.protocol import Program


def index(tree: Path, *, depth: int, cache: Path | None = None, packages: Collection[str] = ()) -> Program:
    """Parse the PHP files of `tree`, and of some `packages` that Composer laid there, and return the program that they make.

    Features follow at most `depth` steps from what a call is given. Files that cannot be parsed are the program's problems. `cache` is a
    folder that keeps what each file told.
    """
    facts_cache = FactsCache(cache, FileFacts, (*Path(__file__).parent.glob("*.py"), Path(syntax_trees.__file__)))
    return link(facts_cache.facts(_told_by(source, depth), partial(file_facts, source, depth)) for source in source_files(tree, packages))


def _told_by(source: PhpFile, depth: int) -> bytes:
    """Return all that a file's facts are made of."""
    return f"{depth}\0{source.file}\0".encode(errors="surrogateescape") + source.data
