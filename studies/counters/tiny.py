"""Whether tiny functions whose threads get in each other's way are found, with those lines as the first cause: `fixtures/tiny`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import sharing
from perfdiff import pipeline
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.progress import Silent
from studies.support import figures

THREADS, RUNS = 2, 6
FIRST_SEED = 7500


def study(room: Path, names: Sequence[str] = (), repeats: int = 1) -> None:
    """Print what each head is called, the function that comes first, and its first cause, with a line for each as it ends."""
    columns = ("program", "head", "verdict", "first", "its cause", "right", "seconds")
    with figures.printed(f"Tiny functions, {THREADS} threads", *columns) as table:
        rows = [
            _row(program, head, repeat, room)
            for program in sharing.programs(sharing.TINY)
            if not names or program.name in names
            for head in program.revisions[1:]
            for repeat in range(repeats)
        ]
        for row in rows:
            table.add(*row)
        table.remarks.append(f"Right: {sum(row[5] == 'yes' for row in rows)} of {len(rows)}.")


def _row(program: sharing.Program, head: str, repeat: int, room: Path) -> tuple[str, ...]:
    start = time.perf_counter()
    asked = sharing.request(program, room, "base", head)
    sizes = asked.config.workloads[0].parameters["n"][:1]
    config = sharing.with_workload(asked.config, threads=(THREADS,), sizes=sizes, runs=RUNS)
    config = replace(config, compare=replace(config.compare, seed=FIRST_SEED + repeat))
    findings = pipeline.compare(replace(asked, config=config), Silent()).findings
    first = next((function for function in findings.functions if function.rank == 1), None)
    name = sharing.plain_name(first.info.name) if first else ""
    cause = first.causes[0].name if first and first.causes else ""
    right = is_right(program.expected[head], findings)
    row = program.name, head, findings.verdict.value, name, cause, "yes" if right else "no", f"{time.perf_counter() - start:.0f}"
    print(", ".join(row), flush=True)
    return row


def is_right(expected: Mapping[str, Any], findings: Findings) -> bool:
    """Return whether a defect is a regression whose first function and its first cause are as expected, or no head without one is one."""
    if "cause" not in expected:
        return findings.verdict is not Verdict.REGRESSION
    first = next((function for function in findings.functions if function.rank == 1), None)
    if findings.verdict is not Verdict.REGRESSION or first is None or not first.causes:
        return False
    return sharing.plain_name(first.info.name) in expected["guilty"] and first.causes[0].name == expected["cause"]
