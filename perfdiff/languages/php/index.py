"""The functions and declarations of a PHP program: all files of its tree, parsed and linked."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from perfdiff.languages.php.file_cache import FileCache
from perfdiff.languages.php.linking import link
from perfdiff.languages.php.sources import source_files
from perfdiff.languages.protocol import Program


def index(tree: Path, *, depth: int, cache: Path | None = None, packages: Collection[str] = ()) -> Program:
    """Parse the PHP files of `tree`, and of some `packages` that Composer laid there, and return the program that they make.

    Features follow at most `depth` steps from what a call is given. Files that cannot be parsed are the program's problems. `cache` is a
    folder that keeps what each file told.
    """
    return link(map(FileCache(cache, depth).facts, source_files(tree, packages)))
