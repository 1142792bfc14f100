"""Whether head does the same work as base, by all that its runs show: the same work comes before the same time."""

from __future__ import annotations

import functools
import math
import operator
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.counts.work import WorkDifference
from perfdiff.analysis.findings import Rung, Verdict
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.verdicts.parallel import average
from perfdiff.analysis.verdicts.parts import parts_difference
from perfdiff.analysis.verdicts.rules import Conclusion
from perfdiff.analysis.witnessed import Amount, BehaviourDifference, BehaviourDifferenceKind, OutputAmounts, PointBehaviour, SideBehaviour
from perfdiff.config import CompareConfig
from perfdiff.records.behaviour import Behaviour, Shape
from perfdiff.records.schema import Experiment, Phase, Run, Side

T = TypeVar("T")

_SAME_WORDS = {BehaviourDifferenceKind.OTHER_NUMBERS, BehaviourDifferenceKind.OTHER_ORDER}


def behaviours(experiment: Experiment, work: WorkDifference | None, config: CompareConfig) -> tuple[PointBehaviour, ...]:
    """Return the behaviour of whole runs at each point that both sides ran, and how it differs.

    `work` is what exact counts say, None where nothing was counted; a library that is called less shows in the time that runs take.
    """
    checked = {workload.name for workload in experiment.workloads if workload.checked}
    runs = {point.id: [_witnesses(experiment.runs, point.id, side) for side in Side] for point in experiment.points}
    sides = {point: [_SideRuns.of(of_side) for of_side in both] for point, both in runs.items() if all(both)}
    witnessed = []
    for point in (point for point in experiment.points if point.id in sides):
        base, head = sides[point.id]
        least = config.at(point.min_effect).min_effect
        differences = (*_of_inputs(experiment.runs, point.id), *_differences(base, head, least))
        counted, taken = work.parts.get(point.id, 1.0) if work else math.inf, head.cpu_ns / max(base.cpu_ns, 1.0)
        part = min(counted, taken)
        others = [other for other in experiment.points if other.workload == point.workload and other.id in sides and other is not point]
        if part <= POLICY.small_part and not _shows_work(base, [sides[other.id][0] for other in others], least):
            differences += (
                BehaviourDifference(
                    BehaviourDifferenceKind.LESS_WORK, claim("executes-less" if part == counted else "takes-less", part=part)
                ),
            )
        witnessed.append(PointBehaviour(point, base.all, head.all, differences, point.workload in checked))
    return tuple(witnessed)


def weighed(conclusion: Conclusion, witnessed: Sequence[PointBehaviour], config: CompareConfig) -> Conclusion:
    """Return a conclusion with what head does otherwise; good news beside that is none, unless the user says that it is meant.

    An improvement needs the same work. Where slow-downs are excluded, head may do something else, but not less. What a run's processes do
    once it has ended is in no figure, so that nobody can mean that.
    """
    if not any(behaviour.differences for behaviour in witnessed) or conclusion.rung is Rung.CODE:
        return conclusion
    says = _gravest_difference(witnessed)
    if not conclusion.is_good_news:
        return replace(conclusion, sentence=claim("beside-other-work", concluded=conclusion.sentence, head=says))
    doubts = [replace(behaviour, differences=tuple(_doubts(behaviour, conclusion.verdict, config))) for behaviour in witnessed]
    if not any(behaviour.differences for behaviour in doubts):
        return replace(conclusion, sentence=claim("beside-other-work", concluded=conclusion.sentence, head=says))
    return conclusion.opened(claim("less-work", head=_gravest_difference(doubts)))


def behaviour_notes(witnessed: Sequence[PointBehaviour]) -> Iterator[Claim]:
    """Yield notes on what head does otherwise at all points, and on processes that runs left."""
    points_by_differences: dict[tuple[BehaviourDifference, ...], list[str]] = {}
    for behaviour in witnessed:
        if behaviour.differences:
            points_by_differences.setdefault(behaviour.differences, []).append(behaviour.point.label)
    if points_by_differences:
        differing = tuple(
            claim("head-differs", points=tuple(points), differences=tuple(difference.says for difference in differences))
            for differences, points in points_by_differences.items()
        )
        are_left = {difference.kind for behaviour in witnessed for difference in behaviour.differences} == {
            BehaviourDifferenceKind.PROCESSES_LEFT
        }
        yield claim("outputs-differ", differing=differing, remedy=claim("wait-for-processes" if are_left else "say-that-it-is-meant"))
    leaving = {side: [behaviour for behaviour in witnessed if getattr(behaviour, side).leaving] for side in Side}
    for side, points in leaving.items():
        if points:
            names = dict.fromkeys(name for behaviour in points for name in getattr(behaviour, side).left)
            labels = tuple(behaviour.point.label for behaviour in points)
            cpu_ns = max(getattr(behaviour, side).left_cpu_ns for behaviour in points)
            yield claim("processes-left", points=labels, side=side, names=tuple(names), cpu_ns=cpu_ns)


def _witnesses(runs: Sequence[Run], point: int, side: Side) -> list[Run]:
    return [run for run in runs if run.phase is Phase.PLAIN and run.point == point and run.side is side and run.behaviour is not None]


def _gravest_difference(witnessed: Sequence[PointBehaviour]) -> Claim:
    """Return the gravest difference, at which points there are any, and whether there are more kinds."""
    differing = [behaviour for behaviour in witnessed if behaviour.differences]
    kinds = sorted(
        {difference.kind for behaviour in differing for difference in behaviour.differences}, key=[*BehaviourDifferenceKind].index
    )
    says, where = next(
        (difference.says, behaviour.point.label)
        for behaviour in differing
        for difference in behaviour.differences
        if difference.kind is kinds[0]
    )
    point = None if len(witnessed) == 1 else where
    return claim("gravest-difference", says=says, point=point, more_points=len(differing) - 1, more_kinds=len(kinds) - 1)


def _doubts(witnessed: PointBehaviour, verdict: Verdict, config: CompareConfig) -> Iterator[BehaviourDifference]:
    """Yield the differences that speak against good news."""
    for difference in witnessed.differences:
        is_meant = (
            witnessed.checked
            or config.outputs == "differ"
            or (config.outputs, difference.kind) == ("unordered", BehaviourDifferenceKind.OTHER_ORDER)
        )
        is_grave = difference.kind.suggests_less_work or verdict is Verdict.IMPROVEMENT
        if is_grave and (not is_meant or difference.kind is BehaviourDifferenceKind.PROCESSES_LEFT):
            yield difference


@dataclass(frozen=True, slots=True)
class _SideRuns:
    """What each run of a side did, and all of them together."""

    behaviours: Sequence[Behaviour]
    all: SideBehaviour
    cpu_ns: float

    @staticmethod
    def of(runs: Sequence[Run]) -> _SideRuns:
        """Return what runs did, which all were looked at."""
        seen = [run.behaviour for run in runs if run.behaviour is not None]
        names = sorted({name for behaviour in seen for name in behaviour.files or {}})
        together = SideBehaviour(
            runs=len(seen),
            exit_codes=dict(sorted(Counter(behaviour.exit_code for behaviour in seen).items())),
            output=_written([behaviour.output for behaviour in seen]),
            errors=_written([behaviour.errors for behaviour in seen]),
            files={name: _written(_of_file(name, seen)) for name in names},
            elsewhere_bytes=_elsewhere(seen),
            leaving=sum(bool(behaviour.left) for behaviour in seen),
            left=tuple(sorted({name for behaviour in seen for name in behaviour.left})),
            left_cpu_ns=max(behaviour.left_cpu_ns for behaviour in seen),
            concurrency=average(runs),
        )
        return _SideRuns(seen, together, float(np.median([run.cpu_ns for run in runs])))

    def without_echoes(self) -> _SideRuns:
        """Return the side as if it had written nothing that repeats its parameters."""
        return replace(self, behaviours=[_without_echoes(behaviour) for behaviour in self.behaviours])


def _without_echoes(behaviour: Behaviour) -> Behaviour:
    files = behaviour.files
    return replace(
        behaviour,
        output=behaviour.output.unechoed or behaviour.output,
        errors=behaviour.errors.unechoed or behaviour.errors,
        files=files and {name: shape.unechoed or shape for name, shape in files.items()},
    )


def _of_file(name: str, seen: Sequence[Behaviour]) -> list[Shape]:
    return [behaviour.files[name] for behaviour in seen if behaviour.files and name in behaviour.files]


def _written(shapes: Sequence[Shape]) -> OutputAmounts:
    lines, sizes = ([getattr(shape, of) for shape in shapes] for of in ("lines", "bytes"))
    return OutputAmounts(sum(count > 0 for count in lines), Amount(min(lines), max(lines)), Amount(min(sizes), max(sizes)))


def _elsewhere(seen: Sequence[Behaviour]) -> Amount | None:
    """Return what runs wrote neither to their streams nor into their tree."""
    amounts = []
    for behaviour in seen:
        if behaviour.written_bytes is None or behaviour.files is None:
            return None
        accounted = behaviour.output.bytes + behaviour.errors.bytes + sum(shape.bytes for shape in behaviour.files.values())
        amounts.append(max(0, behaviour.written_bytes - accounted))
    return Amount(min(amounts), max(amounts))


def _shows_work(side: _SideRuns, others: Sequence[_SideRuns], least: float) -> bool:
    """Return whether what runs print and write hangs on what they work on: it differs from that of other points of their workload.

    More of it than a message holds is a result as well, which no head that skips its work would have. Of a workload with one point anything
    that there is may be one. What repeats the parameters of a point counts for nothing.
    """
    if any(written.lines.least > POLICY.message_lines for written in (side.all.output, side.all.errors, *side.all.files.values())):
        return True
    if others:
        here, elsewhere = side.without_echoes(), [other.without_echoes() for other in others]
        return any(True for other in elsewhere for pair in ((here, other), (other, here)) for _ in _differences(*pair, least))
    written = [shape for run in side.behaviours for shape in (run.output, run.errors, *(run.files or {}).values())]
    bytes_elsewhere = side.all.elsewhere_bytes.most if side.all.elsewhere_bytes else math.inf
    return any(map(_may_be_result, written)) or bytes_elsewhere >= POLICY.few_bytes_elsewhere


def _may_be_result(shape: Shape) -> bool:
    """Return whether there is a text, and where it repeats parameters, another number in it."""
    return bool(shape.unechoed.numbers) if shape.unechoed else shape.lines > 0


def _differences(base: _SideRuns, head: _SideRuns, least: float) -> Iterator[BehaviourDifference]:
    """Yield in what head's runs do something else, the gravest first; lines that are fewer by less than `least` are as many."""
    before, after = base.all, head.all
    if _differ(before.exit_codes, after.exit_codes):
        yield BehaviourDifference(
            BehaviourDifferenceKind.EXIT_CODE, claim("exits", head=tuple(after.exit_codes), base=tuple(before.exit_codes))
        )
    if _is_more_often(after.leaving, after.runs, before.leaving, before.runs):
        yield BehaviourDifference(BehaviourDifferenceKind.PROCESSES_LEFT, claim("leaves-processes", names=after.left))
    errors = _text_difference([of.errors for of in base.behaviours], [of.errors for of in head.behaviours], least)
    if errors is not None:
        is_less = not after.errors.runs or errors is BehaviourDifferenceKind.LESS_OUTPUT
        says = _prints(claim("on-standard-error"), before.errors, after.errors, errors)
        otherwise = errors if errors in _SAME_WORDS else BehaviourDifferenceKind.ERRORS
        yield BehaviourDifference(BehaviourDifferenceKind.FEWER_ERRORS if is_less else otherwise, says)
    output = _text_difference([of.output for of in base.behaviours], [of.output for of in head.behaviours], least)
    if output is not None:
        yield BehaviourDifference(output, _prints(None, before.output, after.output, output))
    yield from _of_files(base, head, least)
    yield from _of_elsewhere(before.elsewhere_bytes, after.elsewhere_bytes)


def _of_elsewhere(base: Amount | None, head: Amount | None) -> Iterator[BehaviourDifference]:
    """Yield that head writes less than base outside of what is looked at more closely."""
    if base and head and base.least - head.most >= POLICY.few_bytes_elsewhere and _is_clearly_less(base, head, 1.0):
        yield BehaviourDifference(BehaviourDifferenceKind.LESS_ELSEWHERE, claim("writes-less-elsewhere", head=head.most, base=base.most))


def _of_files(base: _SideRuns, head: _SideRuns, least: float) -> Iterator[BehaviourDifference]:
    """Yield one difference for files that head does not write or writes less to, and one for those that it writes something else to."""
    if any(of.files is None for of in (*base.behaviours, *head.behaviours)):
        return
    kinds: dict[str, BehaviourDifferenceKind | None] = {}
    for name in base.all.files:
        before, after = _of_file(name, base.behaviours), _of_file(name, head.behaviours)
        is_missing = _is_more_often(len(before), base.all.runs, len(after), head.all.runs)
        kinds[name] = BehaviourDifferenceKind.LESS_OUTPUT if is_missing else _text_difference(before, after, least) if after else None
    less = tuple(name for name, kind in kinds.items() if kind is BehaviourDifferenceKind.LESS_OUTPUT)
    unordered = tuple(name for name, kind in kinds.items() if kind is BehaviourDifferenceKind.OTHER_ORDER)
    others = tuple(name for name, kind in kinds.items() if kind is not None and name not in (*less, *unordered))
    if less:
        yield BehaviourDifference(BehaviourDifferenceKind.LESS_FILES, claim("writes-less-to-files", names=less))
    if others:
        yield BehaviourDifference(BehaviourDifferenceKind.OTHER_FILES, claim("writes-other-files", names=others))
    if unordered:
        yield BehaviourDifference(BehaviourDifferenceKind.OTHER_ORDER, claim("writes-in-another-order", names=unordered))


def _of_inputs(runs: Sequence[Run], point: int) -> Iterator[BehaviourDifference]:
    """Yield that setups left other files for head's runs than for base's; those that vary between the builds of a side say nothing."""
    base, head = (
        [
            run.behaviour.inputs
            for run in runs
            if (run.point, run.side) == (point, side) and run.behaviour and run.behaviour.inputs is not None
        ]
        for side in Side
    )
    if not base or not head:
        return
    names = sorted({name for inputs in (*base, *head) for name in inputs})
    others = tuple(name for name in names if _are_other_inputs([[inputs.get(name) for inputs in side] for side in (base, head)]))
    if others:
        yield BehaviourDifference(BehaviourDifferenceKind.OTHER_INPUTS, claim("has-other-inputs", names=others))


def _are_other_inputs(sides: Sequence[Sequence[Shape | None]]) -> bool:
    """Return whether each side always has the same file, or none, and the other another; without times, where all were looked at."""
    are_close = all(shape.timeless for side in sides for shape in side if shape)
    contents = [{(shape.timeless if are_close else shape.exact or str(shape.bytes)) if shape else None for shape in side} for side in sides]
    return all(len(side) == 1 for side in contents) and contents[0] != contents[1]


def _text_difference(base: Sequence[Shape], head: Sequence[Shape], least: float) -> BehaviourDifferenceKind | None:
    """Return how what head's runs write differs from what base's do, in the most specific form in which each side agrees with itself.

    What varies between runs of one side says nothing of the other: neither times do, nor, where it varies, the order of lines. Where only
    parts of a text vary, the others are compared.
    """
    forms = {form: [Counter(getattr(shape, form) for shape in side) for side in (base, head)] for form in ("exact", "timeless", "masked")}
    comparable = {form: sides for form, sides in forms.items() if not any("" in side for side in sides)}
    if _are_same(comparable.get("exact", [])):
        return None
    if _are_same(comparable.get("timeless", [])):
        return parts_difference(base, head, ("numbers",))
    if "masked" in comparable and _differ(*comparable["masked"]):
        return _less_or(BehaviourDifferenceKind.OTHER_OUTPUT, base, head, least)
    if _are_same(comparable.get("masked", [])):
        return _difference_of_numbers(base, head, is_always_alike=_agree_alone(comparable["timeless"]))
    if "masked" not in comparable and min(len(base), len(head)) > 1 and _agree_alone(comparable.get("exact", [])):
        return _less_or(BehaviourDifferenceKind.OTHER_OUTPUT, base, head, least)
    return _less_or(parts_difference(base, head, ("texts", "numbers")), base, head, least)


def _difference_of_numbers(base: Sequence[Shape], head: Sequence[Shape], *, is_always_alike: bool) -> BehaviourDifferenceKind | None:
    """Return how texts differ that are the same without numbers and the order of their lines."""
    if min(len(base), len(head)) == 1:  # nobody knows what varies
        return None
    if is_always_alike:
        is_same_unordered = bool(base[0].unordered) and base[0].unordered == head[0].unordered
        return BehaviourDifferenceKind.OTHER_ORDER if is_same_unordered else BehaviourDifferenceKind.OTHER_NUMBERS
    return BehaviourDifferenceKind.OTHER_NUMBERS if _have_other_numbers(base, head) else parts_difference(base, head, ("numbers",))


def _are_same(sides: Sequence[Counter[str]]) -> bool:
    """Return whether both sides always write the same."""
    return _agree_alone(sides) and sides[0].keys() == sides[1].keys()


def _have_other_numbers(base: Sequence[Shape], head: Sequence[Shape]) -> bool:
    """Return whether each side always prints a number, beside some that vary, that the other never does."""
    before, after = ([Counter(shape.numbers) for shape in side] for side in (base, head))
    return all(
        functools.reduce(operator.and_, own) - functools.reduce(operator.or_, other) for own, other in ((before, after), (after, before))
    )


def _agree_alone(sides: Sequence[Counter[str]]) -> bool:
    """Return whether each side always writes the same."""
    return bool(sides) and all(len(side) == 1 for side in sides)


def _less_or(
    otherwise: BehaviourDifferenceKind | None, base: Sequence[Shape], head: Sequence[Shape], least: float
) -> BehaviourDifferenceKind | None:
    """Return that head writes less where it clearly does, something else for more lines or fewer bytes, or what else is known."""
    before, after = _written(base), _written(head)
    if _is_clearly_less(before.lines, after.lines, 1 - least) or _is_clearly_less(before.bytes, after.bytes, POLICY.most):
        return BehaviourDifferenceKind.LESS_OUTPUT
    is_other = _is_clearly_less(after.lines, before.lines, 1 - least) or _is_clearly_less(before.bytes, after.bytes, 1 - least)
    return BehaviourDifferenceKind.OTHER_OUTPUT if is_other else otherwise


def _is_clearly_less(base: Amount, head: Amount, part: float) -> bool:
    """Return whether head has less than this part of what base has, by more than what either varies from run to run."""
    spread = max(base.most - base.least, head.most - head.least)
    return head.most < part * base.least and base.least - head.most > spread


def _differ(base: Mapping[T, int], head: Mapping[T, int]) -> bool:
    """Return whether runs of head end otherwise: each side always alike, or head beyond chance more often in one of several ways."""
    if len(base) == len(head) == 1:
        return base.keys() != head.keys()
    values = {*base, *head}
    of_base, of_head = sum(base.values()), sum(head.values())
    return any(_chance(head.get(value, 0), of_head, base.get(value, 0), of_base) * len(values) <= POLICY.chance for value in values)


def _is_more_often(head: int, of_head: int, base: int, of_base: int) -> bool:
    """Return whether something is always so on one side and never on the other, or more often beyond chance."""
    return (head == of_head and not base) or _chance(head, of_head, base, of_base) <= POLICY.chance


def _chance(head: int, of_head: int, base: int, of_base: int) -> float:
    """Return the probability that at least `head` of all that are so fall to head by chance (Fisher's exact test, one-sided)."""
    so, runs = head + base, of_head + of_base
    ways = sum(math.comb(of_head, count) * math.comb(of_base, so - count) for count in range(head, min(so, of_head) + 1) if so >= count)
    return ways / math.comb(runs, so)


def _prints(where: Claim | None, base: OutputAmounts, head: OutputAmounts, kind: BehaviourDifferenceKind) -> Claim:
    """Return what head prints otherwise."""
    if kind in _SAME_WORDS:
        return claim("prints-other-numbers" if kind is BehaviourDifferenceKind.OTHER_NUMBERS else "prints-in-another-order", where=where)
    before = _size(base) if base.runs else claim("nothing")
    if not head.runs:
        return claim("prints-nothing", where=where, base=before)
    return claim(
        "prints-less" if kind is BehaviourDifferenceKind.LESS_OUTPUT else "prints-otherwise", where=where, head=_size(head), base=before
    )


def _size(written: OutputAmounts) -> Claim:
    return claim("output", lines=written.lines.most, bytes=written.bytes.most)
