"""How often does perfdiff report a difference where there is none? Base against base, and revisions whose difference is harmless.

Base against base takes every function for changed, so that all are probed and none is cleared by its text. A pair is a metric of a
function that both sides have. Its alarm is that of its own test, at the configured rate of false discoveries; whether it would be told
depends on the size of the effect, on the runs' agreement and on the noise floor as well, which is the function's verdict.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import programs
from perfdiff import pipeline
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.config import CompareConfig
from perfdiff.languages.packs import Packs
from perfdiff.progress import Silent
from perfdiff.report.sentences import catalogue
from studies.null import Suspicious
from studies.support import figures, inputs
from studies.support.sizes import Size, listed, say, share

FIRST_SEED = 5_000_000
FDR = CompareConfig().fdr
PAIRS = 200  # at least
REPEATS = {Size.QUICK: 1, Size.SHORT: 1, Size.LONG: 5, Size.FULL: 20}
QUICK = ("coefficient", "list-append", "same-rewritten")
ALARMS = (Verdict.REGRESSION, Verdict.IMPROVEMENT)


def harmless() -> list[str]:
    """Return the programs whose head changes no cost."""
    return [case.name for case in programs.cases() if case.name.startswith("same-")]


def compared(name: str, revisions: tuple[str, str], seed: int, room: Path) -> Findings:
    """Compare two revisions, or base with itself and every function under suspicion."""
    asked = inputs.request(name, room, *revisions)
    config = asked.config  # counts would answer alone, and leave no times of calls to compare
    config = replace(config, compare=replace(config.compare, seed=seed), measure=replace(config.measure, thorough=True))
    packs = Packs(Suspicious(asked.packs.compiled)) if len(set(revisions)) == 1 else None
    return pipeline.compare(replace(asked, config=config), Silent(), packs=packs).findings


def counted(findings: Findings) -> Counter[str]:
    """Return the functions, the pairs, and the alarms of both."""
    found = Counter(functions=len(findings.functions), comparisons=1)
    found["reported"] = findings.verdict in ALARMS
    for function in findings.functions:
        tested = [metric for metric in function.metrics.values() if metric.ratio is not None]
        found["pairs"] += len(tested)
        found["significant"] += sum(metric.q <= FDR for metric in tested)
        found["alarms"] += function.verdict in ALARMS
        found["open"] += function.verdict is Verdict.INCONCLUSIVE
        # Of a function that is reported, every pair counts as an alarm that moved by itself beyond the level of interest.
        found["told"] += sum(metric.q <= FDR for metric in tested) if function.verdict in ALARMS else 0
    return found


def run(size: Size, room: Path) -> None:
    """Print the table."""
    names = list(QUICK) if size is Size.QUICK else inputs.names()
    kinds = [(name, ("base", "base")) for name in names] + [(name, ("base", "head")) for name in harmless() if name in names]
    columns = ("program", "revisions", "comparisons", "functions", "inconclusive", "pairs", "q ≤ fdr", "pairs told", "functions told")
    totals: dict[tuple[str, tuple[str, str]], Counter[str]] = {kind: Counter() for kind in kinds}
    misses: list[str] = []
    with figures.printed("(c) False alarms", *columns) as table:
        for turn in range(REPEATS[size]):
            for place, (name, revisions) in enumerate(kinds):
                start, seed = time.perf_counter(), FIRST_SEED + 1000 * turn + place
                findings = compared(name, revisions, seed, room)
                found = counted(findings)
                totals[name, revisions] += found
                say(f"{name} {'..'.join(revisions)} seed {seed}: {dict(found)}, {time.perf_counter() - start:.1f} s")
                for function in findings.functions:
                    if function.verdict in ALARMS:
                        misses.append(
                            f"`{function.info.name}` of {name} {'..'.join(revisions)}, seed {seed}: {catalogue.say(function.headline)}"
                        )
                if findings.verdict in ALARMS and not any(function.verdict in ALARMS for function in findings.functions):
                    misses.append(f"{name} {'..'.join(revisions)}, seed {seed}: {catalogue.say(findings.sentence)}")
        keys = ("comparisons", "functions", "open", "pairs", "significant", "told", "alarms")
        for (name, revisions), found in totals.items():
            table.add(name, "..".join(revisions), *(found[key] for key in keys))
        for revisions, label in ((("base", "base"), "base against base"), (("base", "head"), "harmless changes")):
            total = sum((found for (_, which), found in totals.items() if which == revisions), Counter[str]())
            table.add("all", "..".join(revisions), *(total[key] for key in keys))
            rate = total["told"] / total["pairs"] if total["pairs"] else 0.0
            table.remarks.append(
                f"{label}: pairs with q ≤ {FDR}: {share(total['significant'], total['pairs'])}; pairs told as different: "
                f"{share(total['told'], total['pairs'])}, bar {FDR}, {figures.against(rate, FDR)}; functions: "
                f"{share(total['alarms'], total['functions'])}; comparisons: {share(total['reported'], total['comparisons'])}."
            )
        pairs = sum(found["pairs"] for (_, which), found in totals.items() if which == ("base", "base"))
        table.remarks += [f"Pairs of base against base: {pairs:,}; the bar asks for {PAIRS}.", listed("False alarms", misses)]
