"""The verdict on the whole comparison: what whole runs, exact counts and single functions say together, and the sentence that says it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from perfdiff import units
from perfdiff.analysis.counts.suspects import ExtraWork
from perfdiff.analysis.counts.work import Work
from perfdiff.analysis.findings import EndToEnd, FunctionFinding, PointStanding, Rung, Verdict
from perfdiff.analysis.policy import MATERIAL, PLACES
from perfdiff.analysis.stats.pairs import MOST_PAIRS
from perfdiff.analysis.trends.lines import MatchedLines
from perfdiff.analysis.verdicts.wholeruns import WholeRuns
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Note, Reach

SUSPECTS = 2  # named in a sentence
NAMED = 4  # machines in a sentence
TOLD = 2.0  # slow-downs that are excluded only beyond this ratio are no answer that anybody waits for


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known besides the functions: whole runs, the work that was counted, and whether all that runs can observe is the same.

    `suspects` are changed functions that execute more, those that take most of it first; `lines` is how often lines ran, None where that
    was not counted; `savers` are changed functions that execute less, those that save most first. `is_timed` tells whether calls were.
    `reach` is how much of what changed ran, None where that is not known; `met` are files that differ and that slower runs meet.
    """

    runs: WholeRuns = field(default_factory=WholeRuns)
    work: Work | None = None
    same_code: bool = False
    suspects: tuple[ExtraWork, ...] = ()
    lines: MatchedLines | None = None
    savers: tuple[ExtraWork, ...] = ()
    is_timed: bool = True
    reach: Reach | None = None
    met: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """Return of how many changed functions an answer speaks, to stand behind "No regression"; "" where none changed."""
        reach = self.reach
        if reach is None or not reach.changed or reach.is_none:
            return ""
        if not reach.ran:
            return f" (whether the {reach.changed} changed functions ran is not known, as some carry no probe)"
        unknown = f" (of {reach.unknown} without a probe it is not known)" if reach.unknown else ""
        if reach.ran == reach.changed:
            return " in the changed function, which ran" if reach.ran == 1 else f" in the {reach.ran} changed functions, all of which ran"
        return f" in the {reach.ran} of {reach.changed} changed functions that ran{unknown}"


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The verdict with its sentence, the rung of evidence that it rests on, and from which ratio on slow-downs are excluded."""

    verdict: Verdict
    sentence: str
    rung: Rung
    excluded: float | None = None


def conclude(functions: Sequence[FunctionFinding], evidence: Evidence, config: CompareConfig) -> Conclusion:
    """Return the verdict on the comparison, from the most certain evidence that decides it.

    Whole runs judge *whether* the program is slower, single functions *where*: a function may be slower in a program that does not feel
    it, and a program may be slower where nobody found the guilty function. A program that became faster is an improvement, as long as
    its slower functions do not take most of that back. Where nothing that changed ran, no answer is that nothing is slower.
    """
    return _of_what_ran(_conclude(functions, evidence, config), evidence.reach)


def _of_what_ran(conclusion: Conclusion, reach: Reach | None) -> Conclusion:
    """Return a conclusion that says nothing of changes that did not run."""
    if reach is None or not reach.is_none or conclusion.verdict not in (Verdict.UNCHANGED, Verdict.INCONCLUSIVE):
        return conclusion
    names = units.listed([f"`{name}`" for name in reach.idle], NAMED)
    which = (
        f"no workload calls {names}, which changed"
        if reach.changed == 1
        else f"none of the {reach.changed} changed functions ran ({names})"
    )
    beside = f"; whole runs exclude {_slow_downs(conclusion.excluded)}" if conclusion.excluded is not None else ""
    sentence = f"Inconclusive: {which}, so nothing is said of the change{beside}: add a workload that calls what changed"
    return replace(conclusion, verdict=Verdict.INCONCLUSIVE, sentence=sentence)


def _conclude(functions: Sequence[FunctionFinding], evidence: Evidence, config: CompareConfig) -> Conclusion:
    """Return the verdict, whatever ran of the changes."""
    by = {verdict: [each for each in functions if each.verdict is verdict] for verdict in Verdict}
    program = _of_program(functions, by, evidence, config)
    guilty, runs = by[Verdict.REGRESSION], evidence.runs
    if config.judge == "program":
        found = program or _undecided(_needed(runs), Rung.RUNS, runs)
        names = units.listed([f"`{each.info.name}`" for each in guilty], NAMED)
        told = f"; slower functions that it does not feel: {names}" if guilty and found.verdict is not Verdict.REGRESSION else ""
        return replace(found, sentence=f"{found.sentence}{told}")
    if guilty and not _are_outweighed(guilty, runs):
        whose = f"Regression of a function, not of the program ({_excluded(runs, config)})" if runs.are_not_slower else "Regression"
        return Conclusion(Verdict.REGRESSION, f"{whose}: {_guilty(guilty)}{_elsewhere(runs)}", Rung.CALLS)
    return program or _open(functions, by, evidence, config)


def slower_beside(verdict: Verdict, functions: Sequence[FunctionFinding]) -> Iterator[Note]:
    """Yield a note on functions that are slower in a program that became faster."""
    guilty = [each for each in functions if each.verdict is Verdict.REGRESSION]
    if guilty and verdict is Verdict.IMPROVEMENT:
        yield Note("slower-beside", f"slower all the same, in a program that is faster as a whole: {_guilty(guilty)}")


def _are_outweighed(guilty: Sequence[FunctionFinding], runs: WholeRuns) -> bool:
    """Return whether whole runs are faster, and slower nowhere, by more than slower functions add: most of what was gained is left.

    More memory, and work that time does not show, are outweighed by nothing.
    """
    if not runs.are_not_slower or not runs.of(PointStanding.FASTER):
        return False
    by_time = all(each.extra_ci_ns is not None for each in guilty if each.info.change.is_suspect)
    return by_time and sum(each.extra_ns for each in guilty) < sum(end.base_ns - end.head_ns for end in runs.ends)


def _of_program(
    functions: Sequence[FunctionFinding], by: Mapping[Verdict, Sequence[FunctionFinding]], evidence: Evidence, config: CompareConfig
) -> Conclusion | None:
    """Return what whole runs or the machine code decide, None where they leave it open."""
    runs = evidence.runs
    if runs.slower:
        guilty = by[Verdict.REGRESSION]
        if guilty:
            return Conclusion(Verdict.REGRESSION, f"Regression: {_guilty(guilty)}{_elsewhere(runs)}", Rung.RUNS)
        return _of_places(runs) if _may_be_places(evidence) else _not_located(functions, evidence)
    if evidence.same_code:
        sentence = "No regression: nothing that runs differs between base and head"
        return Conclusion(Verdict.UNCHANGED, f"{sentence}{_confirmed(runs)}", Rung.CODE)
    return _not_slower(by, evidence, config) if runs.are_not_slower else None


def _confirmed(runs: WholeRuns) -> str:
    """Say what the whole runs show that confirm a proof."""
    if not runs.ends:
        return ""
    longest = max(runs.ends, key=lambda end: (end.ratio is not None, end.base_ns))
    if longest.ratio is None:
        took = f"{units.duration(longest.base_ns)} and {units.duration(longest.head_ns)}"
        return f", and the few whole runs that there was time for agree ({took} at {longest.point.label})"
    shown = f"{units.ratio(longest.ratio.value)} [{units.significant(longest.ratio.low)}, {units.significant(longest.ratio.high)}]"
    return f", and {longest.ratio.runs_base} pairs of whole runs at {longest.point.label} agree ({shown})"


def _guilty(guilty: Sequence[FunctionFinding]) -> str:
    others = len(guilty) - 1
    more = "" if not others else "; 1 more function is slower" if others == 1 else f"; {others} more functions are slower"
    return f"{guilty[0].headline}{more}"


def _elsewhere(runs: WholeRuns) -> str:
    """Tell of points where whole runs are not slower beside some where they are, as the end of a sentence."""
    spared = [*runs.of(PointStanding.NOT_SLOWER), *runs.of(PointStanding.FASTER)]
    if not runs.slower or not spared:
        return ""
    standings = (("slower", runs.of(PointStanding.SLOWER)), ("not", spared), ("open", runs.of(PointStanding.OPEN)))
    where = (f"{standing} at {units.listed([end.point.label for end in ends], NAMED)}" for standing, ends in standings if ends)
    return f"; whole runs are {', '.join(where)}"


def _not_located(functions: Sequence[FunctionFinding], evidence: Evidence) -> Conclusion:
    """Tell of slower whole runs that no function explains."""
    worst, reasons = evidence.runs.slower[0], []
    if evidence.met:
        files = units.listed([f"`{name}`" for name in evidence.met], NAMED)
        differ = "differs" if len(evidence.met) == 1 else "differ"
        reasons.append(f"{files}, which runs open or ask after, {differ} between base and head")
    if any(each.info.change.is_suspect for each in functions):
        likely = " and ".join(f"`{each.name}` {each.says}" for each in evidence.suspects[:SUSPECTS])
        calls = "no single call explains it" if evidence.is_timed else "no calls could be timed"
        reasons.append(f"{calls}{f'; by counts, {likely}' if likely else ''}")
    elif evidence.met:
        reasons.append("no function that ran has changed")
    else:
        reasons.append("no function that ran has changed: look at data files, build options and libraries")
    return Conclusion(Verdict.REGRESSION, f"Regression, not located: {_takes(worst)}; {'; '.join(reasons)}", Rung.RUNS)


def _may_be_places(evidence: Evidence) -> bool:
    """Return whether counts say that nothing was added, so that slower whole runs may be what the places of code and data make."""
    work = evidence.work
    return work is not None and work.adds_nothing and all(end.low <= 1 + PLACES for end in evidence.runs.slower)


def _of_places(runs: WholeRuns) -> Conclusion:
    """Tell of whole runs that are slower by no more than the same instructions in other places are."""
    why = f"{_takes(runs.slower[0])}, but counts say that no work was added: the place of code in memory may make that"
    return _undecided(why, Rung.RUNS, runs)


def _not_slower(by: Mapping[Verdict, Sequence[FunctionFinding]], evidence: Evidence, config: CompareConfig) -> Conclusion:
    """Tell that slow-downs of interest are excluded at every point, and of a program that became faster."""
    runs, excluded = evidence.runs, evidence.runs.excluded
    faster = runs.of(PointStanding.FASTER)
    if faster:
        best = min(faster, key=lambda end: end.high)
        improved = by[Verdict.IMPROVEMENT]
        said = improved[0].headline if improved else f"{_takes(best)}{_saved(evidence.savers, faster)}"
        return Conclusion(Verdict.IMPROVEMENT, f"Improvement: {said}", Rung.RUNS, excluded)
    return Conclusion(Verdict.UNCHANGED, f"No regression{evidence.where}: {_excluded(runs, config)}", Rung.RUNS, excluded)


def _saved(savers: Sequence[ExtraWork], faster: Sequence[EndToEnd]) -> str:
    """Return what counts say of a faster program, "" where no changed function certainly saves a material part of the faster runs."""
    run_ns = sum(end.base_ns for end in faster)
    likely = [f"`{each.name}` {each.says}" for each in savers if each.repeats and -each.total_ns >= MATERIAL * run_ns]
    return f"; by counts, {' and '.join(likely[:SUSPECTS])}" if likely else ""


def _open(
    functions: Sequence[FunctionFinding], by: Mapping[Verdict, Sequence[FunctionFinding]], evidence: Evidence, config: CompareConfig
) -> Conclusion:
    """Decide by functions and counts where whole runs do not, as far as they exclude what those cannot see."""
    runs = evidence.runs
    is_bounded = not runs.ends or runs.excluded <= 1 + max(config.min_effect, PLACES)
    is_suspicious = any(end.low > 1 for end in runs.ends)
    excluded = runs.excluded if runs.ends and is_bounded else None
    beside = f"; whole runs exclude {_slow_downs(runs.excluded)}" if excluded is not None else ""
    if is_bounded and not is_suspicious:
        if by[Verdict.IMPROVEMENT] and not any(end.high > 1 + config.min_effect and end.ratio and end.ratio.value > 1 for end in runs.ends):
            return Conclusion(Verdict.IMPROVEMENT, f"Improvement: {by[Verdict.IMPROVEMENT][0].headline}", Rung.CALLS, excluded)
        if evidence.work is not None and evidence.work.excludes_more and runs.ends:
            return Conclusion(Verdict.UNCHANGED, f"No regression{evidence.where}: {evidence.work.says}{beside}", Rung.COUNTS, excluded)
        if not by[Verdict.INCONCLUSIVE]:
            return Conclusion(Verdict.UNCHANGED, f"No regression{evidence.where}: {_looked_at(functions)}{beside}", Rung.CALLS, excluded)
    if is_suspicious or not is_bounded or not by[Verdict.INCONCLUSIVE]:
        return _undecided(_needed(runs), Rung.RUNS, runs)
    return _undecided(by[Verdict.INCONCLUSIVE][0].headline, Rung.CALLS, runs)


def _undecided(why: str, rung: Rung, runs: WholeRuns) -> Conclusion:
    """Tell that a slow-down of interest may be there, and how large it cannot be."""
    if runs.excluded > TOLD:
        return Conclusion(Verdict.INCONCLUSIVE, f"Inconclusive: {why}", rung)
    told = f"Inconclusive, with {_slow_downs(runs.excluded)} excluded: {why}"
    return Conclusion(Verdict.INCONCLUSIVE, told, rung, runs.excluded)


def _excluded(runs: WholeRuns, config: CompareConfig) -> str:
    points = "at the only point" if len(runs.ends) == 1 else f"at all {len(runs.ends)} points"
    return f"{_slow_downs(runs.excluded)} are excluded {points} ({units.significant(100 * config.confidence)} %)"


def _slow_downs(ratio: float) -> str:
    if ratio <= 1:
        return "slow-downs of any size"
    return f"slow-downs of more than {units.significant(100 * (ratio - 1))} %"


def _needed(runs: WholeRuns) -> str:
    """Say which point is open, one that seems to be slower or else the last that would be decided, and how many runs would do so."""
    if not runs.ends:
        other = "what whole runs take is a matter of the clock, of services or of larger inputs, not of the program"
        return other if runs.left_out else "no whole runs were made"
    clocked, opened = runs.of(PointStanding.CLOCKED), runs.of(PointStanding.OPEN)
    if clocked and not any(end.low > 1 for end in opened):
        shown = units.listed([end.point.label for end in clocked], NAMED)
        remedy = "have them repeat it a fixed number of times"
        return f"whole runs at {shown} end by the clock, and which function they repeat is not known: {remedy}"
    worst = max(opened, key=lambda end: (end.low > 1, end.needed or math.inf, end.high))
    if worst.disagree and not worst.needed:
        each = [f"{name} {units.ratio(ratio.value)}" for name, ratio in worst.machines.items()]
        return f"machines disagree: whole runs at {worst.point.label} take {units.listed(each, NAMED)} the {worst.cost}"
    if worst.needed > MOST_PAIRS:
        remedy = "the place of code in memory makes more than the change" if worst.by_layouts else "try a quieter machine"
        return f"{_takes(worst)}, which {MOST_PAIRS} pairs would not tell from the smallest effect of interest: {remedy}"
    if worst.needed and worst.ratio and worst.needed > worst.ratio.runs_base:
        return f"{_takes(worst)}; about {units.count(worst.needed)} pairs of runs would decide: raise measure.budget_s"
    return f"{_takes(worst)}: raise measure.budget_s, or run on a quieter machine"


def _takes(end: EndToEnd) -> str:
    ratio = end.ratio
    if ratio is None:
        return f"whole runs at {end.point.label} are too few"
    interval = f"[{units.significant(ratio.low)}, {units.significant(ratio.high)}]"
    return f"whole runs at {end.point.label} take {units.ratio(ratio.value)} {interval} the {end.cost} ({ratio.runs_base} pairs)"


def _looked_at(functions: Sequence[FunctionFinding]) -> str:
    suspects = sum(each.info.change.is_suspect for each in functions)
    if not suspects:
        return "no function that ran has changed"
    ran = "1 changed function" if suspects == 1 else f"{suspects} changed functions"
    return f"{ran} compared, none makes the program slower"
