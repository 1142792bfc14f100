"""The command line, as the package's description has it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

LISTING = "PERFDIFF_LISTING"


def main(words: list[str]) -> int:
    """Carry out a task; return its exit code. What a kind of benchmark needs is imported for this kind alone."""
    task, kind, *rest = words
    if kind == "asv":
        from . import asv

        tasks: dict[str, Callable[..., Any]] = {"list": asv.list_suite, "run": asv.run, "cache": asv.keep_cache}
    elif kind == "pytest":
        from . import items

        tasks = {"list": items.list_selection, "run": items.run}
    else:
        from . import functions

        tasks = {"list": functions.list_function, "run": functions.run}
    if task != "run":
        found = tasks[task](*rest)
        if task == "list":
            _write(found)
        return 0
    target, name, *given, _, calls = rest
    code: int = tasks[task](target, name, dict(each.split("=", 1) for each in given), int(calls))
    return code


def _write(found: object) -> None:
    import json
    from pathlib import Path

    Path(os.environ.get(LISTING, "/dev/stderr")).write_text(json.dumps(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
