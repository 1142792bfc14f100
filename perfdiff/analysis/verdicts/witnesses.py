"""Second witnesses of a function that is slower by its own time, in a program that is not: what agrees with it, what takes as much less.

A function is slower where its calls are. Its own time alone also grows by what its callees no longer do, as where it touches a page first
now, or makes a copy. So the time of its calls with their callees, or counts of work, must have grown too; of a function without callees,
the time of those that call it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from perfdiff.analysis.blame.guilt import Blame, ExtraKind, Guilt
from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.compare.judgement import Direction
from perfdiff.analysis.counts.suspects import work_extra_ns
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.stats.inference import contrasts_at_point
from perfdiff.analysis.stats.runs import Group
from perfdiff.analysis.sums.calls import reached
from perfdiff.analysis.sums.ledger import Book
from perfdiff.analysis.verdicts.case import Case
from perfdiff.analysis.verdicts.doubt import explained_by_counts, is_time
from perfdiff.models.prices import DEAREST_NS
from perfdiff.models.workcounter import work_counters
from perfdiff.records.arrays import Floats
from perfdiff.records.metrics import MISSES

# Who touches a page first takes its fault, and who comes first its misses: they move between functions as the time does.
MOVING = frozenset((*MISSES, "page_faults"))


class Testimony(Enum):
    """What a second witness says of own time that grew."""

    AGREES = "agrees"
    MOVED = "moved"  # from callees, which take as much less
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class ExtraEstimate:
    """How much more calls take in one run of each of some points, with all that they call: its estimate and half its interval, in ns."""

    extra_ns: float
    half_ns: float

    def shows(self, claimed_ns: float, *, is_clear: bool = True) -> bool:
        """Return whether half of a claim is seen at least, and beyond chance where that `is_clear`ly needed."""
        return self.extra_ns >= POLICY.most * claimed_ns and (self.extra_ns > self.half_ns or not is_clear)

    def excludes(self, claimed_ns: float) -> bool:
        """Return whether half of a claim is excluded."""
        return self.extra_ns + self.half_ns < POLICY.most * claimed_ns


def moved_from_callees(case: Case, guilt: Guilt) -> Claim | None:
    """Say that what a change adds is what callees take less, None where enough of it remains."""
    claims = _claims(case, guilt)
    moved = [at for at, ns in claims.items() if _testimony(at, ns, case) is Testimony.MOVED]
    if not moved or _is_left(case, guilt, (claims[at] for at in moved)):
        return None
    ratio = case.study.totals.get("wall_ns") if moved[0] == case.info.id else None
    return claim("moved-from-callees", of=_other(moved[0], case), ratio=ratio.figures if ratio is not None else None)


def moved_to_caller(case: Case, guilt: Guilt) -> Claim | None:
    """Say that what a change saves is what a caller takes more of its own, None where calls of its callers take less."""
    web, saved_ns = case.attribution.web, -guilt.total_ns
    for caller in sorted(web.callers.get(case.info.id, frozenset()) - {0, case.info.id}):
        grown = [blame.ns for other in case.attribution.guilt.values() for blame in other.blames if _is_own_growth(blame, caller)]
        claimed = np.sum(grown, axis=0) if grown else np.zeros(0)
        if claimed.sum() >= POLICY.most * saved_ns and not _is_seen_with_callees(caller, claimed, case):
            return claim("moved-to-caller", caller=web.functions[caller].name)
    return None


def _is_seen_with_callees(at: int, claimed: Floats, case: Case) -> bool:
    calls = _sums_of_calls(at, claimed, case)
    return calls is None or calls.shows(float(claimed.sum()))


def _is_own_growth(blame: Blame, function: int) -> bool:
    return blame.at == function and blame.extra is ExtraKind.COST and blame.total_ns > 0


def unconfirmed(case: Case, guilt: Guilt) -> Claim | None:
    """Say that a change's extra cost rests on own time alone, None where a second witness agrees with enough of it."""
    claims = _claims(case, guilt)
    alone = [at for at, ns in claims.items() if _testimony(at, ns, case) is not Testimony.AGREES]
    if not alone or _is_left(case, guilt, (claims[at] for at in alone)):
        return None
    at, claimed = alone[0], claims[alone[0]]
    return claim(
        "unconfirmed",
        of=_other(at, case),
        has_callees=_sums_of_calls(at, claimed, case) is not None,
        is_counted=bool(work_counters(case.counts)),
        is_less_than_probes=_probes_cost_more(claimed, case),
    )


def _other(at: int, case: Case) -> str | None:
    """Return the name of a function, None of the one whose case it is."""
    return None if at == case.info.id else case.attribution.web.functions[at].name


def _claims(case: Case, guilt: Guilt) -> dict[int, Floats]:
    """Return what functions are said to cost more at equal inputs, (points,) ns by function, largest first.

    More calls and larger inputs need no other witness: both are counted.
    """
    claims: dict[int, Floats] = {}
    for blame in guilt.blames:
        if blame.extra is ExtraKind.COST and blame.total_ns > 0:
            claims[blame.at] = claims.get(blame.at, np.zeros_like(blame.ns)) + blame.ns
    return dict(sorted(claims.items(), key=lambda item: -float(item[1].sum())))


def _is_left(case: Case, guilt: Guilt, taken_off: Iterable[Floats]) -> bool:
    """Return whether a change still adds a cost that counts when some claims are taken off."""
    rest = guilt.least_ns - guilt.blur - np.sum(list(taken_off), axis=0)
    return case.attribution.is_material(rest, case.effects, guilt.gross)


def _testimony(at: int, claimed: Floats, case: Case) -> Testimony:
    """Return what the strongest second witness says of a function's own time; the clock of its calls speaks first."""
    claimed_ns = float(claimed[case.attribution.material_at(claimed)].sum())
    calls = _sums_of_calls(at, claimed, case)
    if calls is not None and calls.excludes(claimed_ns):
        return Testimony.MOVED
    if _is_confirmed_by_counts(at, claimed, case):
        is_moved = calls is not None and _is_moved_by_counts(at, case) and not calls.shows(claimed_ns)
        return Testimony.MOVED if is_moved else Testimony.AGREES
    is_seen = (
        _is_seen_in_callers(at, claimed, case) if calls is None else calls.shows(claimed_ns, is_clear=_probes_cost_more(claimed, case))
    )
    return Testimony.AGREES if is_seen or _is_felt(claimed, case) else Testimony.SILENT


def _is_seen_in_callers(at: int, claimed: Floats, case: Case) -> bool:
    """Return whether those that call a function without callees confirm its time, or do not speak against it where probes cost little.

    Its own time and that with callees are then one, and agree; beside what its callers do it may be too little to be seen.
    """
    sums, claimed_ns = _sums_of_callers(at, claimed, case), float(claimed[case.attribution.material_at(claimed)].sum())
    if _probes_cost_more(claimed, case):
        return sums is not None and sums.shows(claimed_ns)
    return sums is None or not sums.excludes(claimed_ns)


def _concerned(claimed: Floats, case: Case) -> list[tuple[int, float]]:
    """Return the points at which a claim is a material share of the run, each with the claim in ns."""
    points = zip(case.attribution.points, claimed.tolist(), case.attribution.material_at(claimed), strict=True)
    return [(point, ns) for point, ns, is_material in points if is_material]


def _is_felt(claimed: Floats, case: Case) -> bool:
    """Return whether whole runs without probes are slower at some point, beyond chance, by half of a claim at least."""
    ends = [(case.ends.get(point), ns) for point, ns in _concerned(claimed, case)]
    return any(end and end.ratio and end.ratio.low > 1 and end.head_ns - end.base_ns >= POLICY.most * ns for end, ns in ends)


def _probes_cost_more(claimed: Floats, case: Case) -> bool:
    """Return whether probes cost runs more than a claim is: then one more estimate with the same probes proves nothing."""
    ends = [(case.ends.get(point), ns) for point, ns in _concerned(claimed, case)]
    measured = [(end.overhead * end.base_ns, ns) for end, ns in ends if end is not None and end.overhead is not None]
    return sum(probes_ns for probes_ns, _ in measured) > sum(ns for _, ns in measured)


def _sums_of_calls(at: int, claimed: Floats, case: Case) -> ExtraEstimate | None:
    """Return what a function's calls take more with their callees, None where callees take too little for the claim to be theirs."""
    column = case.ledger.place[at]
    concerned = [(case.ledger.pair(point), ns) for point, ns in _concerned(claimed, case)]
    below = sum(max(float((book.medians["wall_ns"] - book.medians["self_ns"])[column]) for book in books) for books, _ in concerned)
    if below < POLICY.most * sum(ns for _, ns in concerned):
        return None
    return _added([tuple(book.wall_ns[:, column] for book in books) for books, _ in concerned], [books for books, _ in concerned], case)


def _sums_of_callers(at: int, claimed: Floats, case: Case) -> ExtraEstimate | None:
    """Return what a function's callers take more with all that they call; all of the run where it starts a thread.

    What other changes save below these callers is added: an improvement beside it hides no slow-down.
    """
    callers = _outermost_callers(at, case)
    columns = [case.ledger.place[caller] for caller in callers]
    pairs = [case.ledger.pair(point) for point, _ in _concerned(claimed, case)]
    values = [tuple(book.wall_ns[:, columns].sum(axis=1) if columns else book.self_ns.sum(axis=1) for book in books) for books in pairs]
    seen = _added(values, pairs, case)
    saved_ns = float(_saved_ns(callers, case)[case.attribution.material_at(claimed)].sum())
    return None if seen is None else ExtraEstimate(seen.extra_ns + saved_ns, seen.half_ns)


def _outermost_callers(at: int, case: Case) -> list[int]:
    """Return a function's callers that no other caller of it leads to, none where it starts a thread."""
    web = case.attribution.web
    callers = web.callers.get(at, frozenset()) - {at}
    if not callers or 0 in callers:
        return []
    inside = set().union(*(reached(web.callees, caller) for caller in callers))
    return sorted(callers - inside or callers)


def _saved_ns(callers: Sequence[int], case: Case) -> Floats:
    """Return what other changes save in functions that some callers lead to, (points,); in all where there are no callers."""
    callees = case.attribution.web.callees
    below = set(callers).union(*(reached(callees, caller) for caller in callers)) if callers else set(case.ledger.ids)
    others = [guilt.ns for suspect, guilt in case.attribution.guilt.items() if suspect in below and suspect != case.info.id]
    return np.asarray(sum((np.maximum(-ns, 0.0) for ns in others), np.zeros(len(case.attribution.points))))


def _added(values: Sequence[tuple[Floats, ...]], pairs: Sequence[tuple[Book, Book]], case: Case) -> ExtraEstimate | None:
    """Return by how much sums (r,) of head's runs differ from base's, added up over points; None where runs of one are too few."""
    seen = [
        contrasts_at_point(*(Group(side_sums[None], book.blocks, book.machines) for side_sums, book in zip(sides, books, strict=True)))[0]
        for sides, books in zip(values, pairs, strict=True)
    ]
    contrasts = [contrast for contrast in seen if contrast is not None]
    if not contrasts or len(contrasts) < len(seen):
        return None
    half_ns = math.sqrt(sum(contrast.half_width(case.config.confidence) ** 2 for contrast in contrasts))
    return ExtraEstimate(sum(contrast.effect for contrast in contrasts), half_ns)


def _is_confirmed_by_counts(at: int, claimed: Floats, case: Case) -> bool:
    """Return whether counts of work grew that can explain a telling part of a claim."""
    if at != case.info.id:
        return at in case.attribution.web.works_more
    if any(judgement.direction is Direction.UP and not is_time(name) and name not in MOVING for name, judgement in case.judgements.items()):
        return True
    extra_ns = dict(zip(case.attribution.points, claimed.tolist(), strict=True))
    if explained_by_counts(case, extra_ns, [counter for counter in case.counts if counter not in MOVING]):
        return True
    outside_ns = sum(float((departure.dearest_ns + departure.longer_ns).sum()) for departure in case.place.departures)
    return outside_ns + _work_ns(case) > POLICY.telling * float(claimed.sum())


def _work_ns(case: Case) -> float:
    """Return what a function that ran on one side alone executes there, at the dearest."""
    if case.work is None or case.study.calls is not None:
        return 0.0
    extra = {counter: head - base for counter, (base, head) in case.work.by_counter.items() if counter not in MOVING}
    return sum(DEAREST_NS.get(counter, 0.0) * max(count, 0.0) for counter, count in extra.items())


def _is_moved_by_counts(at: int, case: Case) -> bool:
    """Return whether what a function leads to executes less by most of what it executes more itself."""
    if case.counted is None or at not in case.counted.place:
        return False
    below = reached(case.attribution.web.callees, at)
    own_ns, below_ns = (float(work_extra_ns(case.counted, functions).sum()) for functions in ({at}, below))
    return own_ns > 0 and -below_ns > (1 - POLICY.most) * own_ns
