"""Count how often each rule of the judge decides, over the experiments of caches: a rule that never does need not be there.

The folders are caches that comparisons were made in (`--cache`), such as those of `scripts/bench hidden --cache DIR`.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.findings import Findings
from perfdiff.analysis.verdicts.conclusion import PROGRAM_RULES, RESERVATIONS
from perfdiff.analysis.verdicts.ruling import JOINT_RULES
from perfdiff.analysis.verdicts.verdict import RULES
from perfdiff.config import CompareConfig
from perfdiff.errors import PerfdiffError
from perfdiff.records import recorded
from studies.support import figures

TABLES: dict[str, tuple[Any, ...]] = {"function": RULES, "together": JOINT_RULES, "program": PROGRAM_RULES, "reservation": RESERVATIONS}


def findings(caches: list[Path]) -> Iterator[Findings]:
    """Yield the findings of all experiments of two revisions that can be read."""
    for folder in (folder for cache in caches for folder in sorted((cache / "experiments").iterdir())):
        try:
            found = recorded.load(folder)
        except PerfdiffError:  # begun and not finished
            continue
        yield analyse(found.experiment, found.samples, CompareConfig(), found.counts, found.lines())


def main() -> None:
    """Print a table of all rules with how often each held and decided."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("caches", type=Path, nargs="+", metavar="CACHE")
    held: Counter[str] = Counter()
    decided: Counter[str] = Counter()
    experiments = functions = 0
    for each in findings(parser.parse_args().caches):
        experiments, functions = experiments + 1, functions + len(each.functions)
        rules = [[rule.name for rule in function.rules] for function in each.functions]
        rules.append([rule.name for rule in each.rules])
        held.update(name for names in rules for name in names)
        decided.update(names[-1] for names in rules if names)
    with figures.printed("How often each rule decides", "of", "rule", "held", "decided") as table:
        for of, rules_of in TABLES.items():
            for rule in rules_of:
                table.add(of, rule.name, str(held[rule.name]), str(decided[rule.name]))
        table.remarks.append(f"{experiments} experiments, {functions:,} functions.")
