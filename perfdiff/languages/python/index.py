"""The functions and declarations of a Python program: all files of its tree, parsed and linked."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from perfdiff.languages.kept import FactsCache
from perfdiff.languages.protocol import Program
from perfdiff.languages.python import sources
from perfdiff.languages.python.declarations import classes, variables
from perfdiff.languages.python.facts import ModuleFacts
from perfdiff.languages.python.functions import ModuleFunctions
from perfdiff.languages.python.linking import link
from perfdiff.languages.python.normal import normalise
from perfdiff.languages.python.sources import PythonFile, source_files


def index(tree: Path, *, depth: int, cache: Path | None = None, foreign: Sequence[PythonFile] = ()) -> Program:
    """Parse the Python files of `tree`, and `foreign` ones, and return the program's functions and declarations.

    Features follow at most `depth` attributes from a parameter or global. Files that cannot be parsed are the program's problems. `cache`
    is a folder that keeps what each file told.
    """
    facts_cache = FactsCache(cache, ModuleFacts, Path(__file__).parent.glob("*.py"))
    files = (*source_files(tree), *foreign)
    return link(facts_cache.facts(_told_by(source, depth), partial(module_facts, source, depth)) for source in files)


def _told_by(source: PythonFile, depth: int) -> bytes:
    """Return all that a file's facts are made of, the parser's version too."""
    parts = (platform.python_version(), str(depth), source.file, source.module, str(source.is_package))
    return "\0".join((*parts, "")).encode(errors="surrogateescape") + source.data


def module_facts(source: PythonFile, depth: int) -> ModuleFacts:
    """Return the facts of one file, parsed and put into its normal form; where it cannot be parsed, why."""
    try:
        tree = sources.parse(source)
        walk = ModuleFunctions(source, depth, normalise(tree))
        functions = walk.facts(tree)
    except SyntaxError as error:
        place = f" (line {error.lineno})" if error.lineno else ""
        return _nothing(source, f"Python {platform.python_version()}, which perfdiff runs under, cannot parse it: {error.msg}{place}")
    except (ValueError, RecursionError, MemoryError) as error:
        return _nothing(source, f"it cannot be parsed: {error}")
    return ModuleFacts(
        source.file,
        source.module,
        source.is_package,
        functions,
        tuple(classes(walk.names, walk.scope)),
        tuple(variables(walk.names, walk.scope)),
        tuple(dict.fromkeys(walk.names.imports)),
    )


def _nothing(source: PythonFile, problem: str) -> ModuleFacts:
    return ModuleFacts(source.file, source.module, source.is_package, (), (), (), (), problem)
