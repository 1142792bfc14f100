"""The command line, as the package's description has it."""

from __future__ import annotations

import importlib
import sys
from typing import Any

# What a kind of benchmark needs is imported for this kind alone.
ALONE = ("record", "again", "call")  # tasks of `alone`, which have no kind
KINDS = {"asv": "asv", "callable": "functions", "pytest": "items", "pyperf": "scripts", "unittest": "cases"}


def main(words: list[str]) -> int:
    """Carry out a task; return its exit code."""
    task, kind, *rest = words
    if task in ALONE:
        from . import alone

        getattr(alone, task)(kind, *rest)
        return 0
    if task == "list":
        from .watching import write_listing

        return write_listing([kind, *rest])
    module: Any = importlib.import_module(f".{KINDS[kind]}", __package__)
    if task == "try":
        from .reporting import Report

        report = Report.of_environment()
        module.try_all(report, *rest)
        report.end()
        return 0
    if task == "run":
        target, name, *values, _, calls = rest
        code: int = module.run(target, name, dict(value.split("=", 1) for value in values), int(calls))
    elif task == "batch":
        code = module.run_batch(*rest)
    else:
        code = module.keep_cache(*rest)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
