"""Compare base with itself, moved: every function is taken for changed, and lies elsewhere. Whatever is reported is a false alarm.

What moves code is a function of random length, never called, in each source of head: another build of the same program.
Builds are shared between the comparisons of a program; everything is run anew, in another order, under a seed of its own. With `--room`,
what was measured is kept there, and the same command goes on where it was interrupted; `--limit` ends it after so many seconds, with what
was compared until then. `--short` looks at the smallest inputs alone, in few runs.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from scipy.stats import beta

from perfdiff import pipeline
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.config import Config
from perfdiff.languages.packs import Packs
from perfdiff.languages.protocol import CodeComparison, Counterpart, Language, Program
from perfdiff.progress import Silent
from perfdiff.records.schema import Change
from perfdiff.report import document, terminal
from perfdiff.report.sentences.catalogue import say
from studies.support import figures, inputs

TITLE = "Base against base, moved, every function taken for changed"
REPEAT = 20
FIRST_SEED = 1000
CONFIDENCE = 0.95
SHORT_POINTS, SHORT_RUNS, SHORT_BUDGET_S = 3, 5, 3.0


class Nothing(CodeComparison):
    """Says of no code that it is the same, as if nobody had looked."""

    def is_same(self, _pair: Counterpart) -> bool:
        """Return that it is not known."""
        return False

    def is_unlike(self, _pair: Counterpart) -> bool:
        """Return that it is not known."""
        return False


class Suspicious:
    """A language pack that takes every function for changed."""

    def __init__(self, pack: Language) -> None:
        self._pack = pack

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pack, name)

    def match(self, base: Program, head: Program) -> tuple[Counterpart, ...]:
        """Pair the functions of both revisions."""
        pairs = self._pack.match(base, head)
        return tuple(replace(pair, change=Change.CHANGED) if pair.base and pair.head else pair for pair in pairs)

    def same_code(self, *_builds: object) -> CodeComparison:
        """Compare nothing."""
        return Nothing()


def compared(name: str, seed: int, room: Path, *, language: str, short: bool) -> Findings:
    """Compare base with base, moved."""
    asked = inputs.request(name, room, "base", inputs.MOVED, language=language)
    inputs.move(asked.repository)
    config = replace(asked.config, compare=replace(asked.config.compare, seed=seed))
    asked = replace(asked, config=shortened(config) if short else config)
    known = asked.packs
    packs = Packs(Suspicious(known.compiled), tuple(map(Suspicious, known.others)))
    return pipeline.compare(asked, Silent(), packs=packs).findings


def shortened(config: Config) -> Config:
    """Return a configuration with few points and runs, and little time for either."""
    workloads = [
        replace(each, runs=SHORT_RUNS, parameters={name: values[:SHORT_POINTS] for name, values in each.parameters.items()})
        for each in config.workloads
    ]
    return replace(
        config,
        workloads=tuple(workloads),
        measure=replace(config.measure, budget_s=SHORT_BUDGET_S),
        counters=replace(config.counters, budget_s=SHORT_BUDGET_S),
    )


def told(name: str, seed: int, findings: Findings, seconds: float) -> None:
    """Print one comparison in a line, with the functions that are not unchanged, and a false alarm in full."""
    print(f"{name:<20} seed {seed}: {findings.verdict}, {len(findings.functions)} functions, {seconds:.1f} s", flush=True)
    for function in findings.functions:
        if function.verdict is not Verdict.UNCHANGED:
            ratios = {metric: found.ratio for metric, found in function.metrics.items() if metric in ("wall_ns", "self_ns")}
            print(f"    {function.info.name}: {function.verdict}: {say(function.reason) or say(function.headline)} {ratios}")
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
    parser.add_argument("--language", choices=inputs.LANGUAGES, default=inputs.LANGUAGES[0], help="whose programs (default: %(default)s)")
    parser.add_argument("--case", nargs="+", metavar="NAME", help="programs (default: all of the language)")
    parser.add_argument("--short", action="store_true", help="few points, runs and seconds")
    parser.add_argument("--limit", type=float, default=math.inf, metavar="S", help="begin no comparison after so many seconds")
    parser.add_argument("--room", type=Path, help="keep repositories, builds and measurements in this folder")
    options = parser.parse_args()
    known = inputs.names(options.language)
    chosen = options.case or known
    if strange := {*chosen} - {*known}:
        parser.error(f"no programs of {options.language}: {', '.join(sorted(strange))}")
    counts: dict[str, Counter[Verdict]] = {name: Counter() for name in chosen}
    lasted: list[float] = []
    begun = time.perf_counter()
    functions: Counter[Verdict] = Counter()
    with (
        tempfile.TemporaryDirectory() as passing,
        figures.printed(TITLE, "program", *Verdict) as table,
    ):
        for turn, name in itertools.product(range(options.repeat), chosen):
            if (start := time.perf_counter()) - begun > options.limit:
                break
            seed = FIRST_SEED + 1000 * turn + known.index(name)  # fixtures with the same base would share an experiment
            findings = compared(name, seed, options.room or Path(passing), language=options.language, short=options.short)
            told(name, seed, findings, time.perf_counter() - start)
            counts[name][findings.verdict] += 1
            lasted.append(sum(findings.stages.values()))  # when it was measured, be it kept since
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
        table.remarks.append(f"A comparison took {statistics.median(lasted):.0f} s in the median, {max(lasted):.0f} s at most.")
