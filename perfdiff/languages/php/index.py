"""The functions and declarations of a PHP program: all files of its tree, parsed and linked."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from perfdiff.languages import syntax_trees
from perfdiff.languages.kept import TextCache
from perfdiff.languages.php.facts import FileFacts
from perfdiff.languages.php.functions import file_facts
from perfdiff.languages.php.linking import link
from perfdiff.languages.php.sources import SourceFile, source_files
from perfdiff.languages.protocol import Program


def index(tree: Path, *, depth: int, cache: Path | None = None, packages: Collection[str] = ()) -> Program:
    """Parse the PHP files of `tree`, and of some `packages` that Composer laid there, and return the program that they make.

    Features follow at most `depth` steps from what a call is given. Files that cannot be parsed are the program's problems. `cache` is a
    folder that keeps what each file told.
    """
    kept = TextCache(cache, (*Path(__file__).parent.glob("*.py"), Path(syntax_trees.__file__)))

    def facts(source: SourceFile) -> FileFacts:
        content = f"{depth}\0{source.file}\0".encode(errors="surrogateescape") + source.data
        return kept.value(FileFacts, content, lambda: file_facts(source, depth))

    return link(map(facts, source_files(tree, packages)))
