"""Analyse stored recordings again: CPU seconds of a look and of the analysis, and whether the findings are those of another revision.

`scripts/bench again write OUT FOLDER...` analyses the experiments in FOLDERs in one process, on one thread, and writes all findings to OUT;
`scripts/bench again compare BEFORE AFTER` prints every value that differs by more than the last digits, and ends with 1 where there is one.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.looks import look
from perfdiff.config import CompareConfig
from perfdiff.engines.serial import Serial
from perfdiff.models.threads import one_thread
from perfdiff.records import recorded
from perfdiff.records.recorded import TablesInMemory
from perfdiff.records.schema import Side

RELATIVE = 1e-9  # what another order of sums changes
TOLD = 40  # differences printed of each recording


def plain(value: Any) -> Any:
    """Return a value as JSON's types; numbers keep all digits."""
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, dict):
        return {str(key.value if isinstance(key, Enum) else key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    bare = value.item() if isinstance(value, np.generic) else value.value if isinstance(value, Enum) else value
    return bare if isinstance(bare, (str, int, float, bool)) or bare is None else str(bare)


def timed(what: str, work: Callable[[], Any]) -> Any:
    """Return what some work returns, and print the CPU seconds that it took."""
    start = time.process_time()
    found = work()
    print(f"  {what}: {time.process_time() - start:.2f} s of CPU", flush=True)
    return found


def analysed(folder: Path) -> dict[str, Any]:
    """Return the findings of a look and of the analysis."""
    print(folder.name)
    found = timed("loading", lambda: recorded.load(folder))
    experiment = found.experiment
    tables = [table for info in experiment.functions for side in Side if (table := found.samples(info.id, side)) is not None]
    print(f"  {len(experiment.functions)} functions, {sum(map(len, tables)):,} calls")
    held, config = TablesInMemory(tables), CompareConfig()
    with one_thread():  # its first entry looks for BLAS
        looked = timed("a look", lambda: look(experiment, held, config))
        end = timed(
            "the analysis", lambda: analyse(experiment, found.samples, config, found.counts, found.lines(), Serial())
        )  # in whose process CPU time is seen
    return {"look": plain(looked), "analysis": plain(end)}


def differences(before: Any, after: Any, where: str = "") -> Iterator[str]:
    """Yield where two values differ, with both."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            yield from differences(before.get(key), after.get(key), f"{where}.{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, pair in enumerate(zip(before, after, strict=True)):
            yield from differences(*pair, f"{where}[{place}]")
    elif isinstance(before, float) and isinstance(after, float):
        if not (math.isclose(before, after, rel_tol=RELATIVE) or (math.isnan(before) and math.isnan(after))):
            yield f"{where}: {before!r} became {after!r}"
    elif before != after:
        yield f"{where}: {before!r:.300} became {after!r:.300}"


def values(found: Any) -> int:
    """Return how many values there are."""
    if isinstance(found, dict):
        return sum(map(values, found.values()))
    return sum(map(values, found)) if isinstance(found, list) else 1


def main() -> int:
    """Run one of the two commands."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    write = commands.add_parser("write")
    write.add_argument("out", type=Path)
    write.add_argument("folders", type=Path, nargs="+")
    compare = commands.add_parser("compare")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.command == "write":
        given.out.write_text(json.dumps({folder.name: analysed(folder) for folder in given.folders}))
        return 0
    before, after = (json.loads(path.read_text()) for path in (given.before, given.after))
    count = 0
    for name, found in before.items():
        seen = list(differences(found, after[name]))
        count += len(seen)
        print(f"{name}: {values(found):,} values, {len(seen)} differ", *seen[:TOLD], sep="\n  ")
    return 1 if count else 0
