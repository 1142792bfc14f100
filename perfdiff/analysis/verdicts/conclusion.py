"""The verdict on the whole comparison: what whole runs, exact counts and single functions say together, and what is said of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.counts.suspects import ExtraWork
from perfdiff.analysis.findings import EndToEnd, FiredRule, FunctionFinding, PointStanding, Rung, Verdict
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.verdicts.behaviour import weighed
from perfdiff.analysis.verdicts.evidence import Evidence
from perfdiff.analysis.verdicts.frequency import of_what_is_done_as_often
from perfdiff.analysis.verdicts.parallel import allowed, apart_in_time, of_fewer_tasks
from perfdiff.analysis.verdicts.rules import Conclusion
from perfdiff.analysis.verdicts.uncompared import of_what_was_compared
from perfdiff.analysis.verdicts.wholeruns import WholeRuns
from perfdiff.config import CompareConfig
from perfdiff.records.schema import ComparedUnit
from perfdiff.statistics.pairs import MOST_PAIRS

SUSPECTS = 2  # named in a sentence


@dataclass(frozen=True, slots=True)
class ProgramFindings:
    """All that is known of a program: its functions with their verdicts, and the evidence on the whole."""

    functions: Sequence[FunctionFinding]
    evidence: Evidence
    config: CompareConfig

    def of(self, verdict: Verdict) -> list[FunctionFinding]:
        """Return the functions with a verdict."""
        return [finding for finding in self.functions if finding.verdict is verdict]

    @property
    def runs(self) -> WholeRuns:
        """Return the judgement on whole runs."""
        return self.evidence.runs

    @property
    def is_judged_alone(self) -> bool:
        """Return whether the user asked for the program alone, whatever single functions cost, or nothing is known of these."""
        return self.config.judge == "program" or self.evidence.compared is ComparedUnit.COMMANDS

    @property
    def is_open(self) -> bool:
        """Return whether whole runs leave more than what the places of code make, or seem to be slower or to wait more at some point."""
        are_small = all(end.high <= end.smallest(self.config) for end in self.runs.ends) and not self.runs.of(PointStanding.CLOCKED)
        is_bounded = not self.runs.ends or are_small or POLICY.may_be_places(self.runs.excluded)
        are_runs_apart = any(end.waits_more or end.is_of_two_kinds for end in self.runs.of(PointStanding.OPEN))
        return not is_bounded or are_runs_apart or any(end.low > 1 for end in self.runs.ends)

    @property
    def excluded(self) -> float | None:
        """Return from which ratio on whole runs exclude slow-downs, None where that is no answer that anybody waits for."""
        return self.runs.excluded if self.runs.excluded <= POLICY.awaited else None


@dataclass(frozen=True, slots=True)
class ProgramRule:
    """A rule on a program: the rung that it rests on, the question that it asks, and its conclusion, None if it does not hold."""

    name: str
    verdict: Verdict
    rung: Rung
    asks: str
    sentence: Callable[[ProgramFindings], Claim | None]

    def conclusion(self, sentence: Claim, program: ProgramFindings) -> Conclusion:
        """Return the conclusion that a sentence says."""
        tells = self.verdict is not Verdict.REGRESSION and self.rung is not Rung.CODE
        return Conclusion(self.verdict, sentence, self.rung, program.excluded if tells else None, (FiredRule(self.name, self.asks),))


def _head_does_not_end(program: ProgramFindings) -> Claim | None:
    """Tell of cases that do not end on head, which no other slow-down is beside; a function that is slower may be why, or not."""
    endless, guilty = sorted(program.evidence.endless, key=lambda case: -case.ratio), program.of(Verdict.REGRESSION)
    if not endless:
        return None
    first = endless[0]
    return claim(
        "endless-on-head",
        case=first.name,
        limit_ns=1e9 * first.limit_s,
        base_ns=1e9 * first.base_s,
        ratio=first.ratio,
        others=len(endless) - 1,
        beside=_guilty(guilty) if guilty else None,
    )


def _function_slower(program: ProgramFindings) -> Claim | None:
    guilty, runs = program.of(Verdict.REGRESSION), program.runs
    if not guilty or program.is_judged_alone or _are_outweighed(guilty, runs):
        return None
    if not runs.are_not_slower:
        return _regression(guilty, runs)
    return claim("unfelt-regression", guilty=_guilty(guilty), excluded=_excluded(runs, program.config), elsewhere=_elsewhere(runs))


def _slower_by_function(program: ProgramFindings) -> Claim | None:
    guilty = program.of(Verdict.REGRESSION)
    return _regression(guilty, program.runs) if guilty and program.runs.slower else None


def _regression(guilty: Sequence[FunctionFinding], runs: WholeRuns) -> Claim:
    return claim("regression", guilty=_guilty(guilty), elsewhere=_elsewhere(runs))


def _places(program: ProgramFindings) -> Claim | None:
    """Tell of whole runs slower by no more than places of code make, where counts, of runs like all others, add neither work nor waits."""
    work, slower = program.evidence.work, program.runs.slower
    if not slower or work is None or not work.adds_nothing:
        return None
    if any(end.waits_more or end.is_of_two_kinds or not POLICY.may_be_places(end.low) for end in slower):
        return None
    return _undecided(claim("made-by-places", takes=_takes(slower[0])), program)


def _command_slower(program: ProgramFindings) -> Claim | None:
    slower = program.runs.slower
    if not slower or program.evidence.compared is not ComparedUnit.COMMANDS:
        return None
    return claim("slower-command", takes=_takes(slower[0]), elsewhere=_elsewhere(program.runs))


def _not_located(program: ProgramFindings) -> Claim | None:
    """Tell of slower whole runs that no function explains."""
    evidence, slower = program.evidence, program.runs.slower
    if not slower:
        return None
    reasons = [claim("files-differ", names=evidence.met)] if evidence.met else []
    if changed := [finding.info.name for finding in program.functions if finding.info.change.is_suspect]:
        likely = _by_counts(evidence.suspects[:SUSPECTS])
        untimed = claim("no-call-timed", likely=likely or claim("may-be-why", names=tuple(changed)))
        reasons.append(claim("no-call-explains", likely=likely) if evidence.is_timed else untimed)
    else:
        reasons.append(claim("nothing-changed-ran" if evidence.met else "nothing-changed-ran-alone"))
    return claim("not-located", takes=_takes(slower[0]), reasons=tuple(reasons))


def _same_code(program: ProgramFindings) -> Claim | None:
    is_same = program.evidence.same_code
    return claim("no-regression", where=None, by=claim("nothing-differs"), beside=_confirmed(program.runs)) if is_same else None


def _faster(program: ProgramFindings) -> Claim | None:
    """Tell of whole runs that are faster at some point and slower nowhere: clearly, or beyond chance where calls of a function are, too."""
    runs, improved = program.runs, program.of(Verdict.IMPROVEMENT)
    faster = runs.of(PointStanding.FASTER) or [end for end in runs.ends if improved and end.high < 1]
    if not runs.are_not_slower or not faster:
        return None
    if improved:
        return claim("improvement", by=improved[0].headline, beside=None)
    best = min(faster, key=lambda end: end.high)
    return claim("improvement", by=_takes(best), beside=_saved(program.evidence.savers, faster))


def _not_slower(program: ProgramFindings) -> Claim | None:
    runs, repeats_less = program.runs, program.runs.are_as_fast and program.evidence.repeating
    return _no_regression(program, _excluded(runs, program.config), None) if runs.are_not_slower and not repeats_less else None


def _runs_open(program: ProgramFindings) -> Claim | None:
    return _undecided(_needed(program.runs, program.evidence.ended_by), program) if program.is_open or program.is_judged_alone else None


def _function_faster(program: ProgramFindings) -> Claim | None:
    improved = [] if program.evidence.repeating else program.of(Verdict.IMPROVEMENT)
    may_be_slower = any(end.high > end.smallest(program.config) and end.ratio and end.ratio.value > 1 for end in program.runs.ends)
    return claim("improvement", by=improved[0].headline, beside=None) if improved and not may_be_slower else None


def _same_counts(program: ProgramFindings) -> Claim | None:
    work = program.evidence.work
    is_same = work is not None and work.excludes_more and program.runs.ends
    return _no_regression(program, work.says, _beside(program.excluded)) if work is not None and is_same else None


def _no_function_slower(program: ProgramFindings) -> Claim | None:
    if program.of(Verdict.INCONCLUSIVE) or program.evidence.repeating:
        return None
    suspects = sum(finding.info.change.is_suspect for finding in program.functions)
    of_results = claim("no-benchmark-slower", compared=suspects) if program.evidence.compared is ComparedUnit.RESULTS else None
    looked_at = of_results or (claim("none-slower", compared=suspects) if suspects else claim("nothing-changed-ran"))
    return _no_regression(program, looked_at, _beside(program.excluded))


def _function_open(program: ProgramFindings) -> Claim:
    opened = program.of(Verdict.INCONCLUSIVE)
    return _undecided(opened[0].headline if opened else claim("clocked-more", points=program.evidence.repeating), program)


def _no_regression(program: ProgramFindings, by: Claim, beside: Claim | None) -> Claim:
    return claim("no-regression", where=program.evidence.where, by=by, beside=beside)


_REGRESSION, _IMPROVEMENT, _UNCHANGED, _INCONCLUSIVE = Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.UNCHANGED, Verdict.INCONCLUSIVE
PROGRAM_RULES = (
    ProgramRule("head-does-not-end", _REGRESSION, Rung.RUNS, "does a case end on base, and not on head?", _head_does_not_end),
    ProgramRule("function-slower", _REGRESSION, Rung.CALLS, "is a function slower, by more than runs gained?", _function_slower),
    ProgramRule("slower-by-function", _REGRESSION, Rung.RUNS, "judged alone: runs slower, and a function?", _slower_by_function),
    ProgramRule("places", _INCONCLUSIVE, Rung.RUNS, "runs slower by little, and no work added, by counts?", _places),
    ProgramRule("command-slower", _REGRESSION, Rung.RUNS, "of two commands: are runs of head slower?", _command_slower),
    ProgramRule("not-located", _REGRESSION, Rung.RUNS, "are whole runs slower?", _not_located),
    ProgramRule("same-code", _UNCHANGED, Rung.CODE, "is nothing that runs observe different?", _same_code),
    ProgramRule("faster", _IMPROVEMENT, Rung.RUNS, "are whole runs faster, and slower nowhere?", _faster),
    ProgramRule("not-slower", _UNCHANGED, Rung.RUNS, "do whole runs exclude slow-downs of interest everywhere?", _not_slower),
    ProgramRule("runs-open", _INCONCLUSIVE, Rung.RUNS, "do whole runs leave more than code's places make, or waits?", _runs_open),
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
    left: Callable[[Conclusion, ProgramFindings], Conclusion]


def _of_what_ran(conclusion: Conclusion, program: ProgramFindings) -> Conclusion:
    """Return a conclusion that says nothing of changes that did not run."""
    reach = program.evidence.reach
    if reach is None or not reach.is_none or conclusion.verdict not in (Verdict.UNCHANGED, Verdict.INCONCLUSIVE):
        return conclusion
    sentence = claim("nothing-ran", names=reach.idle, changed=reach.changed, beside=_beside(conclusion.excluded))
    return replace(conclusion, verdict=Verdict.INCONCLUSIVE, sentence=sentence)


def _of_all_points(conclusion: Conclusion, program: ProgramFindings) -> Conclusion:
    """Return a conclusion that says nothing of points at which there are no runs, unless nothing that runs differs."""
    points = program.evidence.unrun
    if not points or conclusion.rung is Rung.CODE or not conclusion.is_good_news:
        return conclusion
    return conclusion.opened(claim("points-not-run", points=points))


def _of_what_met(conclusion: Conclusion, program: ProgramFindings) -> Conclusion:
    evidence = program.evidence
    conclusion = of_fewer_tasks(conclusion, evidence.witnessed, program.runs.ends)
    return allowed(conclusion, apart_in_time(evidence.witnessed), evidence.work, evidence.counted_runs)


def _of_a_like_start(conclusion: Conclusion, program: ProgramFindings) -> Conclusion:
    """Return a conclusion that says no more than could be seen where base and head found what one of them left."""
    files = program.evidence.outside
    if not files or not conclusion.is_good_news:
        return conclusion
    return conclusion.opened(claim("unlike-start", files=files))


def _of_shares(conclusion: Conclusion, program: ProgramFindings) -> Conclusion:
    """Return a conclusion that does not say of the program what shares of its functions cannot tell."""
    if program.evidence.compared is not ComparedUnit.PROFILES or not conclusion.is_good_news:
        return conclusion
    return conclusion.opened(claim("profiles-alone"))


def _of_all_that_differs(conclusion: Conclusion, program: ProgramFindings) -> Conclusion:
    return of_what_was_compared(conclusion, program.evidence.uncompared)


def _of_same_work(conclusion: Conclusion, program: ProgramFindings) -> Conclusion:
    conclusion = of_what_is_done_as_often(conclusion, program.functions, program.evidence.witnessed, program.config)
    return weighed(conclusion, program.evidence.witnessed, program.config)


RESERVATIONS = (
    Reservation("nothing-ran", "no regression, or open, and nothing that changed ran?", _of_what_ran),
    Reservation("points-not-run", "good news, and there was no time for runs at some points?", _of_all_points),
    Reservation("tasks-apart", "no regression, and tasks of a program hardly met?", _of_what_met),
    Reservation(
        "unlike-start", "good news, and runs read outside of their trees what builds or runs wrote, or the checkout has?", _of_a_like_start
    ),
    Reservation("profiles-alone", "good news, by profiles alone, which tell no more than shares?", _of_shares),
    Reservation("uncompared", "good news, and a part of what differs was not compared?", _of_all_that_differs),
    Reservation("other-work", "good news, and head may do less work?", _of_same_work),
)


def conclude(functions: Sequence[FunctionFinding], evidence: Evidence, config: CompareConfig) -> Conclusion:
    """Return the verdict on the comparison: that of the first rule that holds, as far as no reservation takes it back.

    Whole runs judge *whether* the program is slower, single functions *where*: a function may be slower in a program that does not feel
    it, and a program may be slower where nobody found the guilty function. A program that became faster is an improvement, as long as
    its slower functions do not take most of that back.
    """
    program = ProgramFindings(functions, evidence, config)
    return reserved(first_conclusion(program), program)


def first_conclusion(program: ProgramFindings) -> Conclusion:
    """Return the conclusion of the first rule that holds."""
    conclusion = next(rule.conclusion(sentence, program) for rule in PROGRAM_RULES if (sentence := rule.sentence(program)))
    guilty = program.of(Verdict.REGRESSION) if program.is_judged_alone and conclusion.verdict is not Verdict.REGRESSION else []
    names = tuple(finding.info.name for finding in guilty)
    return replace(conclusion, sentence=claim("beside-unfelt", concluded=conclusion.sentence, names=names)) if guilty else conclusion


def reserved(conclusion: Conclusion, program: ProgramFindings) -> Conclusion:
    """Return a conclusion after the reservations, with those that changed it."""
    for reservation in RESERVATIONS:
        left = reservation.left(conclusion, program)
        held = (FiredRule(reservation.name, reservation.asks),) if left.verdict is not conclusion.verdict else ()
        conclusion = replace(left, rules=(*conclusion.rules, *held))
    return conclusion


def slower_beside(verdict: Verdict, functions: Sequence[FunctionFinding]) -> Iterator[Claim]:
    """Yield a note on functions that are slower in a program that became faster."""
    guilty = [finding for finding in functions if finding.verdict is Verdict.REGRESSION]
    if guilty and verdict is Verdict.IMPROVEMENT:
        yield claim("slower-beside", guilty=_guilty(guilty))


def _are_outweighed(guilty: Sequence[FunctionFinding], runs: WholeRuns) -> bool:
    """Return whether whole runs are faster, and slower nowhere, by more than slower functions add: most of what was gained is left.

    More memory, and work that time does not show, are outweighed by nothing.
    """
    if not runs.are_not_slower or not runs.of(PointStanding.FASTER):
        return False
    by_time = all(finding.extra_ci_ns is not None for finding in guilty if finding.info.change.is_suspect)
    return by_time and sum(finding.extra_ns for finding in guilty) < sum(end.base_ns - end.head_ns for end in runs.ends)


def _confirmed(runs: WholeRuns) -> Claim | None:
    """Return what the whole runs show that confirm a proof."""
    if not runs.ends:
        return None
    longest = max(runs.ends, key=lambda end: (end.ratio is not None, end.base_ns))
    label = longest.point.label
    if longest.ratio is None:
        return claim("few-runs-agree", base_ns=longest.base_ns, head_ns=longest.head_ns, point=label)
    return claim("runs-agree", pairs=longest.ratio.runs_base, point=label, ratio=longest.ratio.figures)


def _guilty(guilty: Sequence[FunctionFinding]) -> Claim:
    return claim("guilty", first=guilty[0].headline, others=len(guilty) - 1)


def _elsewhere(runs: WholeRuns) -> Claim | None:
    """Return the points where whole runs are not slower beside some where they are."""
    spared = [*runs.of(PointStanding.NOT_SLOWER), *runs.of(PointStanding.FASTER)]
    if not runs.slower or not spared:
        return None
    slower, opened = runs.of(PointStanding.SLOWER), runs.of(PointStanding.OPEN)
    return claim("points-differ", slower=_labels(slower), spared=_labels(spared), open=_labels(opened))


def _labels(ends: Iterable[EndToEnd]) -> tuple[str, ...]:
    return tuple(end.point.label for end in ends)


def _saved(savers: Sequence[ExtraWork], faster: Sequence[EndToEnd]) -> Claim | None:
    """Return what counts say of a faster program, None where no changed function certainly saves a material part of the faster runs."""
    run_ns = sum(end.base_ns for end in faster)
    likely = [work for work in savers if work.repeats and -work.total_ns >= POLICY.material * run_ns]
    return _by_counts(likely[:SUSPECTS])


def _by_counts(works: Sequence[ExtraWork]) -> Claim | None:
    return claim("by-counts", works=tuple(claim("works", name=work.name, work=work.says) for work in works)) if works else None


def _undecided(why: Claim, program: ProgramFindings) -> Claim:
    """Return that a slow-down of interest may be there, and how large it cannot be."""
    return claim("undecided", why=why, excluded=program.excluded)


def _beside(excluded: float | None) -> Claim | None:
    return None if excluded is None else claim("excluded-by-runs", ratio=excluded)


def _excluded(runs: WholeRuns, config: CompareConfig) -> Claim:
    return claim("excluded", ratio=runs.excluded, points=len(runs.ends), confidence=config.confidence)


def _needed(runs: WholeRuns, ended_by: str | None) -> Claim:
    """Return which point is open, one that seems to be slower or else the last that would be decided, and how many runs would do so."""
    if not runs.ends:
        return claim("not-of-the-program" if runs.left_out else "no-runs")
    clocked, opened = runs.of(PointStanding.CLOCKED), runs.of(PointStanding.OPEN)
    if clocked and not any(end.low > 1 for end in opened):
        return claim("clocked", points=_labels(clocked))
    return _decides(max(opened, key=lambda end: (end.low > 1, end.is_of_two_kinds, end.needed or math.inf, end.high)), ended_by)


def _decides(worst: EndToEnd, ended_by: str | None) -> Claim:
    """Return what would decide an open point."""
    more = claim("more-runs", ended_by=ended_by)
    if worst.slow:
        return claim("slow-runs", workload=worst.point.workload, more=more, **worst.slow.facts)
    if worst.at_times:
        return claim("longer-at-times", point=worst.point.label, multiple=worst.at_times, more=more)
    if worst.disagree and not worst.needed:
        machines = tuple(claim("machine-takes", name=name, ratio=ratio.value) for name, ratio in worst.machines.items())
        return claim("machines-apart", point=worst.point.label, machines=machines, cost=worst.cost)
    if worst.needed > MOST_PAIRS:
        remedy = claim("layouts-vary" if worst.by_layouts else "machine-varies")
        return claim("too-many-pairs", takes=_takes(worst), most=MOST_PAIRS, remedy=remedy)
    if worst.needed and worst.ratio and worst.needed > worst.ratio.runs_base:
        return claim("pairs-needed", takes=_takes(worst), needed=worst.needed, more=more)
    return claim("runs-needed", takes=_takes(worst), more=more)


def _takes(end: EndToEnd) -> Claim:
    ratio = end.ratio
    if ratio is None:
        return claim("runs-too-few", point=end.point.label)
    return claim("runs-take", point=end.point.label, ratio=ratio.figures, cost=end.cost, pairs=ratio.runs_base)
