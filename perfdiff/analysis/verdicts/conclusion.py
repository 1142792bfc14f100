"""The verdict on the whole comparison: what whole runs, exact counts and single functions say together, and the sentence that says it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from perfdiff import units
from perfdiff.analysis.counts.suspects import ExtraWork
from perfdiff.analysis.counts.work import Work
from perfdiff.analysis.findings import EndToEnd, FiredRule, FunctionFinding, PointStanding, Rung, Verdict
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.trends.lines import MatchedLines
from perfdiff.analysis.verdicts.behaviour import weighed
from perfdiff.analysis.verdicts.parallel import allowed, apart_in_time
from perfdiff.analysis.verdicts.rules import Conclusion
from perfdiff.analysis.verdicts.wholeruns import WholeRuns
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Note, Reach, Run
from perfdiff.records.witnessed import PointBehaviour
from perfdiff.statistics.pairs import MOST_PAIRS

SUSPECTS = 2  # named in a sentence
NAMED = 4  # machines in a sentence


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known besides the functions: whole runs, the work that was counted, and whether all that runs can observe is the same.

    `suspects` are changed functions that execute more, those that take most of it first; `lines` is how often lines ran, None where that
    was not counted; `savers` are changed functions that execute less, those that save most first. `is_timed` tells whether calls were.
    `reach` is how much of what changed ran, None where that is not known; `met` are files that differ and that slower runs meet.
    `outside` are files outside of the trees that runs read and that builds or earlier runs wrote. `witnessed` is what whole runs did, point
    by point, and `counted_runs` are those that were counted.
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
    outside: tuple[str, ...] = ()
    witnessed: tuple[PointBehaviour, ...] = ()
    counted_runs: tuple[Run, ...] = ()

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
class Program:
    """All that is known of a program: its functions with their verdicts, and the evidence on the whole."""

    functions: Sequence[FunctionFinding]
    evidence: Evidence
    config: CompareConfig

    def of(self, verdict: Verdict) -> list[FunctionFinding]:
        """Return the functions with a verdict."""
        return [each for each in self.functions if each.verdict is verdict]

    @property
    def runs(self) -> WholeRuns:
        """Return what whole runs show."""
        return self.evidence.runs

    @property
    def is_judged_alone(self) -> bool:
        """Return whether the user asked for the program alone, whatever single functions cost."""
        return self.config.judge == "program"

    @property
    def is_open(self) -> bool:
        """Return whether whole runs leave more than what the places of code make, or seem to be slower at some point."""
        is_bounded = not self.runs.ends or self.runs.excluded <= 1 + max(self.config.min_effect, POLICY.places)
        return not is_bounded or any(end.low > 1 for end in self.runs.ends)

    @property
    def excluded(self) -> float | None:
        """Return from which ratio on whole runs exclude slow-downs, None where that is no answer that anybody waits for."""
        return self.runs.excluded if self.runs.excluded <= POLICY.awaited else None


@dataclass(frozen=True, slots=True)
class ProgramRule:
    """One way to a verdict on a program: the rung it rests on, what it asks, and the sentence, "" where it does not hold."""

    name: str
    verdict: Verdict
    rung: Rung
    asks: str
    sentence: Callable[[Program], str]

    def conclusion(self, sentence: str, program: Program) -> Conclusion:
        """Return the conclusion that a sentence says."""
        tells = self.verdict is not Verdict.REGRESSION and self.rung is not Rung.CODE
        return Conclusion(self.verdict, sentence, self.rung, program.excluded if tells else None, (FiredRule(self.name, self.asks),))


def _function_slower(program: Program) -> str:
    guilty, runs = program.of(Verdict.REGRESSION), program.runs
    if not guilty or program.is_judged_alone or _are_outweighed(guilty, runs):
        return ""
    not_felt = f" of a function, not of the program ({_excluded(runs, program.config)})" if runs.are_not_slower else ""
    return f"Regression{not_felt}: {_guilty(guilty)}{_elsewhere(runs)}"


def _slower_by_function(program: Program) -> str:
    guilty = program.of(Verdict.REGRESSION)
    return f"Regression: {_guilty(guilty)}{_elsewhere(program.runs)}" if guilty and program.runs.slower else ""


def _places(program: Program) -> str:
    """Tell of whole runs that are slower by no more than places of code make, where counts say that no work was added."""
    work, slower = program.evidence.work, program.runs.slower
    if not slower or work is None or not work.adds_nothing or any(end.low > 1 + POLICY.places for end in slower):
        return ""
    return _undecided(f"{_takes(slower[0])}, but counts say that no work was added: the place of code in memory may make that", program)


def _not_located(program: Program) -> str:
    """Tell of slower whole runs that no function explains."""
    evidence, slower = program.evidence, program.runs.slower
    if not slower:
        return ""
    reasons = []
    if evidence.met:
        files = units.listed([f"`{name}`" for name in evidence.met], NAMED)
        differ = "differs" if len(evidence.met) == 1 else "differ"
        reasons.append(f"{files}, which runs open or ask after, {differ} between base and head")
    if any(each.info.change.is_suspect for each in program.functions):
        likely = " and ".join(f"`{each.name}` {each.says}" for each in evidence.suspects[:SUSPECTS])
        calls = "no single call explains it" if evidence.is_timed else "no calls could be timed"
        reasons.append(f"{calls}{f'; by counts, {likely}' if likely else ''}")
    elif evidence.met:
        reasons.append("no function that ran has changed")
    else:
        reasons.append("no function that ran has changed: look at data files, build options and libraries")
    return f"Regression, not located: {_takes(slower[0])}; {'; '.join(reasons)}"


def _same_code(program: Program) -> str:
    is_same = program.evidence.same_code
    return f"No regression: nothing that runs differs between base and head{_confirmed(program.runs)}" if is_same else ""


def _faster(program: Program) -> str:
    """Tell of whole runs that are faster at some point and slower nowhere: clearly, or beyond chance where calls of a function are, too."""
    runs, improved = program.runs, program.of(Verdict.IMPROVEMENT)
    faster = runs.of(PointStanding.FASTER) or [end for end in runs.ends if improved and end.high < 1]
    if not runs.are_not_slower or not faster:
        return ""
    best = min(faster, key=lambda end: end.high)
    return f"Improvement: {improved[0].headline if improved else f'{_takes(best)}{_saved(program.evidence.savers, faster)}'}"


def _not_slower(program: Program) -> str:
    runs = program.runs
    return f"No regression{program.evidence.where}: {_excluded(runs, program.config)}" if runs.are_not_slower else ""


def _runs_open(program: Program) -> str:
    return _undecided(_needed(program.runs), program) if program.is_open or program.is_judged_alone else ""


def _function_faster(program: Program) -> str:
    improved, least = program.of(Verdict.IMPROVEMENT), 1 + program.config.min_effect
    may_be_slower = any(end.high > least and end.ratio and end.ratio.value > 1 for end in program.runs.ends)
    return f"Improvement: {improved[0].headline}" if improved and not may_be_slower else ""


def _same_counts(program: Program) -> str:
    work = program.evidence.work
    is_same = work is not None and work.excludes_more and program.runs.ends
    return f"No regression{program.evidence.where}: {work.says}{_beside(program)}" if work is not None and is_same else ""


def _no_function_slower(program: Program) -> str:
    is_open = program.of(Verdict.INCONCLUSIVE)
    return "" if is_open else f"No regression{program.evidence.where}: {_looked_at(program.functions)}{_beside(program)}"


def _function_open(program: Program) -> str:
    return _undecided(program.of(Verdict.INCONCLUSIVE)[0].headline, program)


_REGRESSION, _IMPROVEMENT, _UNCHANGED, _INCONCLUSIVE = Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.UNCHANGED, Verdict.INCONCLUSIVE
PROGRAM_RULES = (
    ProgramRule("function-slower", _REGRESSION, Rung.CALLS, "is a function slower, by more than runs gained?", _function_slower),
    ProgramRule("slower-by-function", _REGRESSION, Rung.RUNS, "judged alone: runs slower, and a function?", _slower_by_function),
    ProgramRule("places", _INCONCLUSIVE, Rung.RUNS, "runs slower by little, and no work added, by counts?", _places),
    ProgramRule("not-located", _REGRESSION, Rung.RUNS, "are whole runs slower?", _not_located),
    ProgramRule("same-code", _UNCHANGED, Rung.CODE, "is nothing that runs observe different?", _same_code),
    ProgramRule("faster", _IMPROVEMENT, Rung.RUNS, "are whole runs faster, and slower nowhere?", _faster),
    ProgramRule("not-slower", _UNCHANGED, Rung.RUNS, "do whole runs exclude slow-downs of interest everywhere?", _not_slower),
    ProgramRule("runs-open", _INCONCLUSIVE, Rung.RUNS, "do whole runs leave more than code's places make?", _runs_open),
    ProgramRule("function-faster", _IMPROVEMENT, Rung.CALLS, "is a function faster, and do no runs seem slower?", _function_faster),
    ProgramRule("same-counts", _UNCHANGED, Rung.COUNTS, "do exact counts exclude more work?", _same_counts),
    ProgramRule("no-function-slower", _UNCHANGED, Rung.CALLS, "is no function open?", _no_function_slower),
    ProgramRule("function-open", _INCONCLUSIVE, Rung.CALLS, "else", _function_open),
)


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a conclusion must not say, whichever rule came to it: what it asks, and the conclusion that is left."""

    name: str
    asks: str
    left: Callable[[Conclusion, Program], Conclusion]


def _of_what_ran(conclusion: Conclusion, program: Program) -> Conclusion:
    """Return a conclusion that says nothing of changes that did not run."""
    reach = program.evidence.reach
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


def _of_what_met(conclusion: Conclusion, program: Program) -> Conclusion:
    evidence = program.evidence
    return allowed(conclusion, apart_in_time(evidence.witnessed), evidence.work, evidence.counted_runs)


def _of_a_like_start(conclusion: Conclusion, program: Program) -> Conclusion:
    """Return a conclusion that says no more than could be seen where base and head found what one of them left."""
    files = program.evidence.outside
    if not files or conclusion.verdict not in (Verdict.UNCHANGED, Verdict.IMPROVEMENT):
        return conclusion
    names = units.listed([f"`{name}`" for name in files], NAMED)
    without = f"{conclusion.sentence[0].lower()}{conclusion.sentence[1:]}"
    why = f"runs read {names}, outside of their trees, which a build or an earlier run wrote, so that base and head did not start alike"
    return Conclusion(Verdict.INCONCLUSIVE, f"Inconclusive: {why}; by time alone: {without}", conclusion.rung)


def _of_same_work(conclusion: Conclusion, program: Program) -> Conclusion:
    return weighed(conclusion, program.evidence.witnessed, program.config)


RESERVATIONS = (
    Reservation("nothing-ran", "no regression, or open, and nothing that changed ran?", _of_what_ran),
    Reservation("tasks-apart", "no regression, and tasks of a program hardly met?", _of_what_met),
    Reservation("unlike-start", "good news, and runs read what builds or runs wrote outside of their trees?", _of_a_like_start),
    Reservation("other-work", "good news, and head may do less work?", _of_same_work),
)


def conclude(functions: Sequence[FunctionFinding], evidence: Evidence, config: CompareConfig) -> Conclusion:
    """Return the verdict on the comparison: that of the first rule that holds, as far as no reservation takes it back.

    Whole runs judge *whether* the program is slower, single functions *where*: a function may be slower in a program that does not feel
    it, and a program may be slower where nobody found the guilty function. A program that became faster is an improvement, as long as
    its slower functions do not take most of that back.
    """
    program = Program(functions, evidence, config)
    return reserved(first_conclusion(program), program)


def first_conclusion(program: Program) -> Conclusion:
    """Return the conclusion of the first rule that holds."""
    found = next(rule.conclusion(sentence, program) for rule in PROGRAM_RULES if (sentence := rule.sentence(program)))
    guilty = program.of(Verdict.REGRESSION) if program.is_judged_alone and found.verdict is not Verdict.REGRESSION else []
    names = units.listed([f"`{each.info.name}`" for each in guilty], NAMED)
    return replace(found, sentence=f"{found.sentence}; slower functions that it does not feel: {names}") if guilty else found


def reserved(conclusion: Conclusion, program: Program) -> Conclusion:
    """Return what reservations leave of a conclusion, with those that took something back."""
    for each in RESERVATIONS:
        left = each.left(conclusion, program)
        held = (FiredRule(each.name, each.asks),) if left.verdict is not conclusion.verdict else ()
        conclusion = replace(left, rules=(*conclusion.rules, *held))
    return conclusion


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


def _saved(savers: Sequence[ExtraWork], faster: Sequence[EndToEnd]) -> str:
    """Return what counts say of a faster program, "" where no changed function certainly saves a material part of the faster runs."""
    run_ns = sum(end.base_ns for end in faster)
    likely = [f"`{each.name}` {each.says}" for each in savers if each.repeats and -each.total_ns >= POLICY.material * run_ns]
    return f"; by counts, {' and '.join(likely[:SUSPECTS])}" if likely else ""


def _undecided(why: str, program: Program) -> str:
    """Tell that a slow-down of interest may be there, and how large it cannot be."""
    excluded = program.excluded
    return f"Inconclusive: {why}" if excluded is None else f"Inconclusive, with {_slow_downs(excluded)} excluded: {why}"


def _beside(program: Program) -> str:
    return f"; whole runs exclude {_slow_downs(program.excluded)}" if program.excluded is not None else ""


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
