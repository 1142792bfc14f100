"""One file: parsed, put into its normal form, and told as facts."""

from __future__ import annotations

import platform

from perfdiff.languages.python import sources
from perfdiff.languages.python.declarations import classes, variables
from perfdiff.languages.python.facts import ModuleFacts
from perfdiff.languages.python.functions import Functions
from perfdiff.languages.python.normal import normalise
from perfdiff.languages.python.sources import SourceFile


def module_facts(source: SourceFile, depth: int) -> ModuleFacts:
    """Return the facts of one file; where it cannot be parsed, why."""
    try:
        tree = sources.parse(source)
        walk = Functions(source, depth, normalise(tree))
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


def _nothing(source: SourceFile, problem: str) -> ModuleFacts:
    return ModuleFacts(source.file, source.module, source.is_package, (), (), (), (), problem)
