#!/usr/bin/env python3
"""Compare base with itself, moved: every function is taken for changed, and lies elsewhere. Whatever is reported is a false alarm.

What moves code is a function of random length, never called, at the top of each source of head: another build of the same program.
Builds are shared between the comparisons of a program; everything is run anew, in another order, under a seed of its own. With `--room`,
what was measured is kept there, and the same command goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import figures
import inputs
from scipy.stats import beta

from perfdiff import pipeline
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.languages.c.pack import C
from perfdiff.languages.packs import Packs
from perfdiff.languages.protocol import Counterpart, PlainBuild, Program
from perfdiff.progress import Silent
from perfdiff.records.schema import Change
from perfdiff.report import document, terminal

TITLE = "Base against base, moved, every function taken for changed"
REPEAT = 20
FIRST_SEED = 1000
CONFIDENCE = 0.95


class Nothing:
    """Says of no code that it is the same, as if nobody had looked."""

    identical = False
    other_files: tuple[str, ...] = ()

    def is_same(self, _pair: Counterpart) -> bool:
        """Return that it is not known."""
        return False

    def is_unlike(self, _pair: Counterpart) -> bool:
        """Return that it is not known."""
        return False


class Suspicious(C):
    """Takes every function for changed."""

    def match(self, base: Program, head: Program) -> tuple[Counterpart, ...]:
        """Pair the functions of both revisions."""
        pairs = super().match(base, head)
        return tuple(replace(pair, change=Change.CHANGED) if pair.base and pair.head else pair for pair in pairs)

    def same_code(self, _base: PlainBuild, _head: PlainBuild, _pairs: Sequence[Counterpart]) -> Nothing:
        """Compare nothing."""
        return Nothing()


def compared(name: str, seed: int, room: Path) -> Findings:
    """Compare base with base, moved."""
    asked = inputs.request(name, room, "base", inputs.MOVED)
    inputs.move(asked.repository)
    config = replace(asked.config, compare=replace(asked.config.compare, seed=seed))
    return pipeline.compare(replace(asked, config=config), Silent(), packs=Packs(Suspicious(asked.cache / "units"))).findings


def told(name: str, seed: int, findings: Findings, seconds: float) -> None:
    """Print one comparison in a line, with the functions that are not unchanged, and a false alarm in full."""
    print(f"{name:<20} seed {seed}: {findings.verdict}, {len(findings.functions)} functions, {seconds:.1f} s", flush=True)
    for function in findings.functions:
        if function.verdict is not Verdict.UNCHANGED:
            ratios = {metric: found.ratio for metric, found in function.metrics.items() if metric in ("wall_ns", "self_ns")}
            print(f"    {function.info.name}: {function.verdict}: {function.reason or function.headline} {ratios}")
    if findings.verdict in (Verdict.REGRESSION, Verdict.IMPROVEMENT):
        print(terminal.render(document.build(findings)), flush=True)


def interval(seen: int, n: int) -> str:
    """Return the exact interval of a share (Clopper and Pearson 1934): quantiles of beta(k, n - k + 1) and beta(k + 1, n - k)."""
    tail = (1 - CONFIDENCE) / 2
    low = beta.ppf(tail, seen, n - seen + 1) if seen else 0.0
    high = beta.ppf(1 - tail, seen + 1, n - seen) if seen < n else 1.0
    return f"{100 * low:.1f} to {100 * high:.1f} %"


def main() -> None:
    """Print a line per comparison, then the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=REPEAT, help=f"comparisons of each program (default: {REPEAT})")
    parser.add_argument("--case", nargs="+", choices=inputs.names(), default=inputs.names(), metavar="NAME", help="programs (default: all)")
    parser.add_argument("--room", type=Path, help="keep repositories, builds and measurements in this folder")
    options = parser.parse_args()
    counts: dict[str, Counter[Verdict]] = {name: Counter() for name in options.case}
    functions: Counter[Verdict] = Counter()
    with (
        tempfile.TemporaryDirectory() as passing,
        figures.printed(TITLE, "program", *Verdict) as table,
    ):
        for turn in range(options.repeat):
            for name in options.case:
                seed = FIRST_SEED + 1000 * turn + inputs.names().index(name)  # fixtures with the same base would share an experiment
                start = time.perf_counter()
                findings = compared(name, seed, options.room or Path(passing))
                told(name, seed, findings, time.perf_counter() - start)
                counts[name][findings.verdict] += 1
                functions.update(function.verdict for function in findings.functions)
        for name, count in counts.items():
            table.add(name, *(count[verdict] for verdict in Verdict))
        total = sum(counts.values(), Counter[Verdict]())
        table.add("all programs", *(total[verdict] for verdict in Verdict))
        table.add("all functions", *(functions[verdict] for verdict in Verdict))
        for what, count, verdict, bar in (
            ("comparisons", total, Verdict.REGRESSION, "at most 1 %"),
            ("comparisons", total, Verdict.IMPROVEMENT, "at most 1 %"),
            ("comparisons", total, Verdict.UNCHANGED, "at least 90 %"),
            ("functions", functions, Verdict.REGRESSION, "none"),
        ):
            n, seen = count.total(), count[verdict]
            share = f"{100 * seen / n:.1f} % ({100 * CONFIDENCE:.0f} % interval {interval(seen, n)})"
            table.remarks.append(f"{verdict}: {seen} of {n} {what}, {share}; bar: {bar}.")


if __name__ == "__main__":
    main()
