"""The growth that a bisect follows: of which function, by what differs between the ends, and whether a commit between them shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from perfdiff.analysis.findings import Verdict
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.search.bisection import CommitStanding
from perfdiff.analysis.search.ends import SearchSubject
from perfdiff.analysis.search.symptom import FunctionName, GrowthSymptom
from perfdiff.analysis.trends.differences import differences
from perfdiff.analysis.trends.findings import GrowthDifference, TrendFindings
from perfdiff.analysis.trends.functions import FunctionCounts, functions
from perfdiff.errors import MeasurementError, PerfdiffError, UsageError
from perfdiff.models.threads import one_thread
from perfdiff.models.trend import Law
from perfdiff.records.places import Place, PlaceExperiment
from perfdiff.records.schema import Side


def name_of(place: Place) -> FunctionName:
    """Return the function that a place is in."""
    return place.file, place.function


def follow(findings: TrendFindings, wanted: SearchSubject) -> GrowthSymptom:
    """Return what grows faster in the bad end and will be looked for in the commits between; raise where nothing does."""
    sides = findings.experiment.sides
    if not any(wanted.means(*name_of(place)) for counted in sides.values() for place in counted.places):
        raise UsageError(
            f"'{wanted.function}' is no function that ran in {wanted.good} or {wanted.bad}; "
            f"`perfdiff trends {wanted.good} {wanted.bad}` lists those whose growth differs",
            slug="unknown-function",
        )
    for difference in findings.differences:
        if difference.verdict is Verdict.REGRESSION:
            for symptom in _symptoms(findings.experiment, difference):
                if wanted.means(*symptom.head) or (symptom.base is not None and wanted.means(*symptom.base)):
                    return symptom
    raise _nothing_to_follow(findings, wanted)


@one_thread()
def reading(
    experiment: PlaceExperiment, symptom: GrowthSymptom, *, min_effect: float, seed: int
) -> tuple[CommitStanding, GrowthDifference | None]:
    """Return where a commit, the head of the experiment, stands to the culprit, with the difference that says so.

    It is bad where the followed function differs from the good end as a regression of the same kind, by at least `MOST` of what the bad end
    adds. Where the function is new in the bad end and the commit lacks it, any regression of that size is taken for it, as its work may
    have been done elsewhere. Raises MeasurementError where growth cannot be told.
    """
    try:
        differing = differences(experiment, min_effect=min_effect, seed=seed)
    except ValueError as error:
        raise MeasurementError(
            "no feature that it shares with the good end varies, so that no growth is known", slug="no-feature"
        ) from error
    places = _followed_places(experiment, symptom)
    shown = [
        difference
        for difference in differing
        if places is None or (difference.kind is symptom.difference.kind and places & {*_head_places(experiment, difference)})
    ]
    least = POLICY.most * _extra(symptom.difference)
    bad = next((difference for difference in shown if difference.verdict is Verdict.REGRESSION and _extra(difference) >= least), None)
    if bad is not None:
        return CommitStanding.BAD, bad
    return CommitStanding.GOOD, next(iter(shown), None)


def _followed_places(experiment: PlaceExperiment, symptom: GrowthSymptom) -> set[Place] | None:
    """Return head's places of the followed function, None where it is one that the good end and this head lack."""
    base, head = experiment.sides[Side.BASE].places, experiment.sides[Side.HEAD].places
    if symptom.base is None:
        return {place for place in head if name_of(place) == symptom.head} or None
    own = _home(base, functions(experiment), symptom.base)
    return {head[number] for number in own.places.tolist()}


def _symptoms(experiment: PlaceExperiment, difference: GrowthDifference) -> Iterator[GrowthSymptom]:
    """Yield what can be followed of a difference: each function that it stands for, the leading one first.

    It is a function of base where most of that became it: single lines of others are taken for its own as they run as often.
    """
    base, head = experiment.sides[Side.BASE].places, experiment.sides[Side.HEAD].places
    all_functions = functions(experiment)
    owners = {number: function for function in all_functions for number in function.places.tolist()}
    numbers = {place: number for number, place in enumerate(head)}
    in_each = {name_of(place): place for place in _head_places(experiment, difference)}
    for name, place in in_each.items():
        own = owners[numbers[place]]
        before = next((former for former, _ in _names(base, own).most_common() if _home(base, all_functions, former) is own), None)
        yield GrowthSymptom(difference, before, name)


def _home(base: Sequence[Place], all_functions: Sequence[FunctionCounts], name: FunctionName) -> FunctionCounts:
    """Return the function that most places of a function of base count for."""
    return max(all_functions, key=lambda function: _names(base, function)[name])


def _names(places: Sequence[Place], function: FunctionCounts) -> Counter[FunctionName]:
    """Return the names in base of what became a function of head, with how many places each has there."""
    return Counter(name_of(places[number]) for number in function.base_places.tolist())


def _head_places(experiment: PlaceExperiment, difference: GrowthDifference) -> Iterator[Place]:
    """Yield the places of head that a difference stands for, the leading one first; none where they are gone."""
    places = experiment.sides[Side.HEAD].places
    in_head = {*places}
    if difference.place in in_head:
        yield difference.place
        yield from (places[number] for number in difference.members)


def _extra(difference: GrowthDifference) -> float:
    """Return what a difference adds far beyond what was counted."""
    return difference.head_cost - difference.base_cost


def _nothing_to_follow(findings: TrendFindings, wanted: SearchSubject) -> PerfdiffError:
    good, bad = wanted.good, wanted.bad
    own = [difference for difference in findings.differences if wanted.means(*name_of(difference.place))]
    about = f" in `{wanted.function}`" if wanted.function else ""
    better = next((difference for difference in own if difference.verdict is Verdict.IMPROVEMENT), None)
    if better is not None:
        return UsageError(
            f"{bad} does not grow faster than {good}{about} but less: {_grows(better)}; "
            "a bisect finds what got worse, so give an end that is",
            slug="ends-swapped",
        )
    open_ = next((difference for difference in own if difference.verdict is Verdict.INCONCLUSIVE and _extra(difference) > 0), None)
    if open_ or (findings.verdict is Verdict.INCONCLUSIVE and not findings.differences):
        shown = _grows(open_) if open_ else "no feature that both share tells how their counts grow"
        return MeasurementError(
            f"whether {bad} grows faster than {good}{about} stays open: {shown}; add inputs of more sizes, then bisect again",
            slug="ends-inconclusive",
        )
    return UsageError(
        f"{bad} does not grow faster than {good}{about}: both ends are good, or both are bad, so there is nothing to find",
        slug="ends-alike",
    )


def _grows(difference: GrowthDifference) -> str:
    before, after = _says(difference.base), _says(difference.head)
    return f"`{difference.place.function}` ({difference.place.file}:{difference.place.line}), {before} → {after}"


def _says(fit: Law | None) -> str:
    return "none" if fit is None else fit.says
