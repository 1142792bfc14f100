"""The growth that a bisect follows: of which function, by what differs between the ends, and whether a commit between them shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.findings import Verdict
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.search.bisection import Alike, CommitStanding, Passed
from perfdiff.analysis.trends.differences import differences
from perfdiff.analysis.trends.findings import Difference, TrendFindings
from perfdiff.analysis.trends.functions import Function, functions
from perfdiff.errors import MeasurementError, PerfdiffError, UsageError
from perfdiff.models.threads import one_thread
from perfdiff.models.trend import Fit
from perfdiff.records.places import Place, PlaceExperiment
from perfdiff.records.schema import Revision, Side

_Name = tuple[str, str]  # file and function


@dataclass(frozen=True, slots=True)
class WantedGrowth:
    """What a bisect of growth is about: its ends by name, and the function, which `named(name, file)` knows, where one was given."""

    good: str
    bad: str
    function: str | None
    named: Callable[[str, str], bool] | None

    def means(self, function: _Name) -> bool:
        """Return whether a function is the one asked for; where none was, any is."""
        file, name = function
        return self.named is None or self.named(name, file)


@dataclass(frozen=True, slots=True)
class GrowthSymptom:
    """A regression between the ends, which is looked for in the commits between.

    It is followed in the function that the good end has as `base`, the bad end as `head`; `base` is None where it has none.
    """

    difference: Difference
    base: _Name | None
    head: _Name

    @property
    def says(self) -> str:
        """Return the symptom in words."""
        return f"growth of `{self.head[1]}`"


@dataclass(frozen=True, slots=True)
class GrowthReading:
    """What a commit shows of the symptom: the difference to the good end that makes it bad, or what little there is of it, if any."""

    revision: Revision
    standing: CommitStanding
    difference: Difference | None


@dataclass(frozen=True, slots=True)
class GrowthBisection:
    """The conclusion of a bisect by growth.

    `suspects` hold the culprit, the newest last; there are several where no commit that can be counted tells them apart. `commits` is how
    many the range has. `findings` compare the last suspect with what stands before the first.
    """

    good: Revision
    bad: Revision
    symptom: GrowthSymptom
    commits: int
    suspects: tuple[Revision, ...]
    measured: tuple[GrowthReading, ...]
    passed: tuple[Passed, ...]
    alike: tuple[Alike, ...]
    findings: TrendFindings

    @property
    def sentence(self) -> Claim:
        """Return which commit it is."""
        newest = self.suspects[-1]
        commit = (newest.commit or "")[:10]
        if len(self.suspects) == 1:
            return claim("growth-culprit", commit=commit, summary=newest.summary)
        return claim("growth-culprit-among", count=len(self.suspects), commit=commit)


def name_of(place: Place) -> _Name:
    """Return the function that a place is in."""
    return place.file, place.function


def follow(found: TrendFindings, wanted: WantedGrowth) -> GrowthSymptom:
    """Return what grows faster in the bad end and will be looked for in the commits between; raise where nothing does."""
    sides = found.experiment.sides
    if not any(wanted.means(name_of(place)) for counted in sides.values() for place in counted.places):
        raise UsageError(
            f"'{wanted.function}' is no function that ran in {wanted.good} or {wanted.bad}; "
            f"`perfdiff trends {wanted.good} {wanted.bad}` lists those whose growth differs",
            slug="unknown-function",
        )
    for difference in found.differences:
        if difference.verdict is Verdict.REGRESSION:
            for symptom in _symptoms(found.experiment, difference):
                if wanted.means(symptom.head) or (symptom.base is not None and wanted.means(symptom.base)):
                    return symptom
    raise _nothing_to_follow(found, wanted)


@one_thread()
def reading(
    experiment: PlaceExperiment, symptom: GrowthSymptom, *, min_effect: float, seed: int
) -> tuple[CommitStanding, Difference | None]:
    """Return where a commit, the head of the experiment, stands to the culprit, with the difference that says so.

    It is bad where the followed function differs from the good end as a regression of the same kind, by at least `MOST` of what the bad end
    adds. Where the function is new in the bad end and the commit lacks it, any regression of that size is taken for it, as its work may
    have been done elsewhere. Raises MeasurementError where growth cannot be told.
    """
    try:
        found = differences(experiment, min_effect=min_effect, seed=seed)
    except ValueError as error:
        raise MeasurementError(
            "no feature that it shares with the good end varies, so that no growth is known", slug="no-feature"
        ) from error
    places = _followed_places(experiment, symptom)
    shown = [
        each for each in found if places is None or (each.kind is symptom.difference.kind and places & {*_head_places(experiment, each)})
    ]
    least = POLICY.most * _extra(symptom.difference)
    bad = next((each for each in shown if each.verdict is Verdict.REGRESSION and _extra(each) >= least), None)
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


def _symptoms(experiment: PlaceExperiment, difference: Difference) -> Iterator[GrowthSymptom]:
    """Yield what can be followed of a difference: each function that it stands for, the leading one first.

    It is a function of base where most of that became it: single lines of others are taken for its own as they run as often.
    """
    base, head = experiment.sides[Side.BASE].places, experiment.sides[Side.HEAD].places
    known = functions(experiment)
    owners = {number: function for function in known for number in function.places.tolist()}
    numbers = {place: number for number, place in enumerate(head)}
    in_each = {name_of(place): place for place in _head_places(experiment, difference)}
    for name, place in in_each.items():
        own = owners[numbers[place]]
        before = next((each for each, _ in _names(base, own).most_common() if _home(base, known, each) is own), None)
        yield GrowthSymptom(difference, before, name)


def _home(base: Sequence[Place], known: Sequence[Function], name: _Name) -> Function:
    """Return the function that most places of a function of base count for."""
    return max(known, key=lambda each: _names(base, each)[name])


def _names(places: Sequence[Place], function: Function) -> Counter[_Name]:
    """Return the names in base of what became a function of head, with how many places each has there."""
    return Counter(name_of(places[number]) for number in function.base_places.tolist())


def _head_places(experiment: PlaceExperiment, difference: Difference) -> Iterator[Place]:
    """Yield the places of head that a difference stands for, the leading one first; none where they are gone."""
    places = experiment.sides[Side.HEAD].places
    known = {*places}
    if difference.place in known:
        yield difference.place
        yield from (places[number] for number in difference.members)


def _extra(difference: Difference) -> float:
    """Return what a difference adds far beyond what was counted."""
    return difference.head_cost - difference.base_cost


def _nothing_to_follow(found: TrendFindings, wanted: WantedGrowth) -> PerfdiffError:
    good, bad = wanted.good, wanted.bad
    own = [each for each in found.differences if wanted.means(name_of(each.place))]
    about = f" in `{wanted.function}`" if wanted.function else ""
    better = next((each for each in own if each.verdict is Verdict.IMPROVEMENT), None)
    if better is not None:
        return UsageError(
            f"{bad} does not grow faster than {good}{about} but less: {_grows(better)}; "
            "a bisect finds what got worse, so give an end that is",
            slug="ends-swapped",
        )
    open_ = next((each for each in own if each.verdict is Verdict.INCONCLUSIVE and _extra(each) > 0), None)
    if open_ or (found.verdict is Verdict.INCONCLUSIVE and not found.differences):
        shown = _grows(open_) if open_ else "no feature that both share tells how their counts grow"
        return MeasurementError(
            f"whether {bad} grows faster than {good}{about} stays open: {shown}; add inputs of more sizes, then bisect again",
            slug="ends-inconclusive",
        )
    return UsageError(
        f"{bad} does not grow faster than {good}{about}: both ends are good, or both are bad, so there is nothing to find",
        slug="ends-alike",
    )


def _grows(difference: Difference) -> str:
    before, after = _says(difference.base), _says(difference.head)
    return f"`{difference.place.function}` ({difference.place.file}:{difference.place.line}), {before} → {after}"


def _says(fit: Fit | None) -> str:
    return "none" if fit is None else fit.says
