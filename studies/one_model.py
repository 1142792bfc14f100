"""Judge recorded fixtures by one statistical model, and by perfdiff's tables of rules beside it: which of them is right more often.

The model has what each suspect's change costs at each point as unknowns, and what no suspect explains. Whole runs, the sums of probed calls
and counts at their prices are observations of these with normal errors; functions and program are judged by the posterior alone, within the
reservations that hold for the rules as well. Each argument is a folder of fixtures and the cache that its comparisons were made in:
`fixtures/programs=DIR/cache`.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.stats import norm

import families
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.claims import claim
from perfdiff.analysis.compare.study import study_all
from perfdiff.analysis.findings import Rung, Verdict
from perfdiff.analysis.gathering import GatheredEvidence, at_usual_pace, comparison_context, gathered
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.levelling import levelled
from perfdiff.analysis.trends.lines import matched
from perfdiff.analysis.verdicts.case import Case as FunctionCase
from perfdiff.analysis.verdicts.conclusion import ProgramFindings, reserved
from perfdiff.analysis.verdicts.rules import Conclusion
from perfdiff.config import CompareConfig
from perfdiff.errors import PerfdiffError
from perfdiff.records import recorded
from perfdiff.records.arrays import Floats
from perfdiff.records.recorded import RecordedExperiment
from perfdiff.records.schema import Side
from programs import Case, cases
from studies.support import figures
from studies.support.fixture_verdicts import guilty

WIDE = 10.0  # runs: the prior deviation of what a change costs, which says nothing
PROBES = 0.02  # of a run: what probes and the machine's pace leave of a sum of calls
PRICES = 0.01  # of a run: what counts that are the same leave
WIDTH = 2 * norm.ppf(0.975)  # of an interval, in deviations


@dataclass(frozen=True, slots=True)
class Answer:
    """A verdict, and the names of slower functions, those that cost most first."""

    verdict: Verdict
    slower: tuple[str, ...]


@dataclass(slots=True)
class Observations:
    """Rows of a linear model of one point: what was observed, of which unknowns it is the sum, and its deviation, in ns of a run."""

    unknowns: int
    rows: list[Floats] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    deviations: list[float] = field(default_factory=list)

    def add(self, of: Sequence[int], value: float, deviation: float) -> None:
        """Add the sum of some unknowns."""
        row = np.zeros(self.unknowns)
        row[list(of)] = 1.0
        self.rows.append(row)
        self.values.append(value)
        self.deviations.append(max(deviation, 1.0))

    def posterior(self) -> tuple[Floats, Floats]:
        """Return the means (unknowns,) and covariances (unknowns, unknowns) after all that was observed."""
        weighted = np.array(self.rows) / np.array(self.deviations)[:, None]
        covariances = np.linalg.inv(weighted.T @ weighted)
        return covariances @ weighted.T @ (np.array(self.values) / np.array(self.deviations)), covariances


def judged(found: RecordedExperiment, config: CompareConfig, unexplained: float) -> Answer:
    """Return what the model says of a recording; `unexplained` is the prior deviation of what no suspect explains, in runs."""
    evidence = _gathered(found, config)
    suspects = [case for case in evidence.cases if case.info.change.is_suspect]
    ends = {end.point.id: end for end in evidence.evidence.runs.ends if end.ratio is not None}
    cost: dict[str, float] = {}
    likely_slower, is_bounded, is_faster = False, bool(ends), False
    level = config.confidence + (1 - config.confidence) / 2
    for point, end in ends.items():
        run_ns, least = end.base_ns, config.min_effect * end.base_ns
        model = Observations(len(suspects) + 1)
        model.add([len(suspects)], 0.0, unexplained * run_ns)
        assert end.ratio is not None
        model.add(range(len(suspects) + 1), run_ns * (end.ratio.value - 1), run_ns * (end.ratio.high - end.ratio.low) / WIDTH)
        for place, case in enumerate(suspects):
            model.add([place], 0.0, WIDE * run_ns)
            for value, deviation in _of_calls(case, point, run_ns):
                model.add([place], value, deviation)
            for value, deviation in _of_counts(case, point, run_ns):
                model.add([place], value, deviation)
        means, covariances = model.posterior()
        for place, case in enumerate(suspects):
            if norm.sf(least, means[place], np.sqrt(covariances[place, place])) > level:
                name = case.info.name.partition("(")[0]
                cost[name] = cost.get(name, 0.0) + float(means[place])
        total, spread = float(means.sum()), float(np.sqrt(covariances.sum()))
        likely_slower |= bool(norm.sf(least, total, spread) > level)
        is_faster |= bool(norm.cdf(-least, total, spread) > level)
        is_bounded &= bool(norm.cdf(least, total, spread) > config.confidence)
    slower = tuple(sorted(cost, key=lambda name: -cost[name]))
    verdict = Verdict.INCONCLUSIVE
    if slower or likely_slower:
        verdict = Verdict.REGRESSION
    elif is_bounded:
        verdict = Verdict.IMPROVEMENT if is_faster else Verdict.UNCHANGED
    elif not ends and found.experiment.same_code:
        verdict = Verdict.UNCHANGED
    concluded = Conclusion(verdict, claim("given", reason=verdict.value), Rung.RUNS)
    return Answer(reserved(concluded, ProgramFindings((), evidence.evidence, config)).verdict, slower)


def _gathered(found: RecordedExperiment, config: CompareConfig) -> GatheredEvidence:
    at_one_pace = levelled(found.experiment, found.samples)
    ledger, samples = at_usual_pace(at_one_pace.experiment, at_one_pace.samples, config)
    return gathered(
        comparison_context(at_one_pace, ledger, config),
        [*study_all(at_one_pace.experiment, samples, ledger, config)],
        matched(found.lines()),
    )


def _of_calls(case: FunctionCase, point: int, run_ns: float) -> Iterator[tuple[float, float]]:
    """Yield what the sums of probed calls say that a change costs at a point, with its deviation: blame, or else own time."""
    if point not in case.attribution.points:
        return
    place = case.attribution.points.index(point)
    if case.guilt is not None:
        low = case.guilt.least_ns[place]
        noise = np.broadcast_to(case.guilt.blur, case.guilt.ns.shape)[place]
        yield float(case.guilt.ns[place]), float(np.hypot(np.hypot(2 * (case.guilt.ns[place] - low) / WIDTH, noise), PROBES * run_ns))
        return
    ratio = case.ratio("self_ns") if "self_ns" in case.study.comparisons else None
    own_ns = float(case.ledger.at_points("self_ns", Side.BASE, case.info.id)[case.ledger.points.index(point)])
    if ratio is not None:
        yield own_ns * (ratio.value - 1), float(np.hypot(own_ns * (ratio.high - ratio.low) / WIDTH, PROBES * run_ns))


def _of_counts(case: FunctionCase, point: int, run_ns: float) -> Iterator[tuple[float, float]]:
    """Yield what exact counts at their prices say that a function's own work costs more at a point, with its deviation."""
    work = case.work
    if work is not None and work.repeats and point in work.points:
        least, most = (float(prices[work.points.index(point)]) for prices in (work.priced_ns, work.dearest_ns))
        yield (least + most) / 2, (most - least) / WIDTH + PRICES * run_ns


def by_rules(found: RecordedExperiment, config: CompareConfig) -> Answer:
    """Return what the tables of rules say of a recording."""
    findings = analyse(found.experiment, found.samples, config, found.counts, found.lines())
    slower = (each.info.name.partition("(")[0] for each in findings.functions if each.verdict is Verdict.REGRESSION)
    return Answer(findings.verdict, tuple(slower))


def verdict_on(case: Case, answer: Answer) -> str:
    """Return how an answer stands to what is known of a fixture."""
    is_of_family, expected = "ratio" in case.expected, case.expected["verdict"]
    best = families.BEST[expected] if is_of_family else Verdict(expected)
    if answer.verdict is not best:
        if answer.verdict is Verdict.INCONCLUSIVE or (is_of_family and families.is_allowed(case, answer.verdict)):
            return "open"
        return "false alarm" if answer.verdict is Verdict.REGRESSION else "false comfort"
    names = guilty(case)
    return "right" if not names or (answer.slower and answer.slower[0] in names) else "right, another function first"


def experiments(fixtures: Path, cache: Path) -> Iterator[tuple[Case, RecordedExperiment]]:
    """Yield the recordings of a cache with the fixture that each is of."""
    of_name: Mapping[str, Case] = {case.name: case for case in cases(fixtures) if "verdict" in case.expected}
    for folder in sorted((cache / "experiments").iterdir()):
        try:
            found = recorded.load(folder)
        except PerfdiffError:  # begun and not finished
            continue
        name = found.experiment.base.summary.partition(":")[0]
        if name in of_name:
            yield of_name[name], found


def main() -> None:
    """Print how often each way to judge is right, over all fixtures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rooms", nargs="+", metavar="FIXTURES=CACHE")
    options = parser.parse_args()
    ways = {"the rules": None, **{f"the model, {share:.0%} unexplained": share for share in (POLICY.material, POLICY.layout_shift, 1.0)}}
    tally: dict[str, Counter[str]] = {way: Counter() for way in ways}
    for room in options.rooms:
        fixtures, _, cache = room.partition("=")
        for case, found in experiments(Path(fixtures), Path(cache)):
            for way, unexplained in ways.items():
                answer = by_rules(found, CompareConfig()) if unexplained is None else judged(found, CompareConfig(), unexplained)
                stands = verdict_on(case, answer)
                tally[way][stands] += 1
                if not stands.startswith("right"):
                    print(f"{fixtures}/{case.name}: {way}: {stands}: {answer.verdict} {', '.join(answer.slower)}", flush=True)
    columns = ("right", "right, another function first", "open", "false alarm", "false comfort")
    with figures.printed("One model beside the rules", "judged by", *columns) as table:
        for way, counts in tally.items():
            table.add(way, *(str(counts[column]) for column in columns))
