"""Profiles over revisions: each function's own time in a run, and which functions grew."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfdiff.analysis.annotations.annotating import MOST_ROWS, annotate
from perfdiff.analysis.annotations.history import SAME_CALLS, Recording, history, notes_of
from perfdiff.analysis.claims import Claim
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.series import ChangePoint, FunctionHistory
from perfdiff.analysis.stats.rows import thinned
from perfdiff.analysis.sums.profile import Profile, ProfileLine, profile
from perfdiff.config import CompareConfig
from perfdiff.models.annotation import CostClass
from perfdiff.records.recorded import RecordedExperiment
from perfdiff.records.relay import Relay
from perfdiff.records.schema import Machine, Note, Revision, Side

METRIC = "self_ns"


@dataclass(frozen=True, slots=True)
class Growth:
    """A function over revisions, oldest first: own time and calls in one run of each point, None where it was not called or measured.

    Where several machines recorded them, both are as the first machine would have them. `ends` are the places of the first and the last
    revision that were measured.
    """

    name: str
    file: str
    self_ns: tuple[float | None, ...]
    calls: tuple[float | None, ...]
    ends: tuple[int, int]
    history: FunctionHistory

    @property
    def ends_ns(self) -> tuple[float | None, float | None]:
        """Return its own time in a run of the first and of the last revision."""
        return self.self_ns[self.ends[0]], self.self_ns[self.ends[1]]

    @property
    def added_ns(self) -> float:
        """Return by how many ns the function's own time in a run grew; a missing function counts as 0."""
        first, last = self.ends_ns
        return (last or 0.0) - (first or 0.0)

    @property
    def grew(self) -> bool:
        """Return whether its own time in a run grew by more than the machine may drift: it is new, or has more or slower calls."""
        more = any(step.ratio.value > 1 for _, step in self.steps) or (self.calls_ratio or 1.0) > 1
        return self.added_ns > 0 and (more or self.ends_ns[0] is None)

    @property
    def steps(self) -> tuple[tuple[Revision, ChangePoint], ...]:
        """Return the revisions where its own time a call changed."""
        return tuple(
            (entry.revision, step)
            for entry in self.history.entries
            if METRIC in entry.costs and (step := entry.costs[METRIC].step) is not None
        )

    @property
    def calls_ratio(self) -> float | None:
        """Return its calls in the last revision over those in the first, None where these are the same or cannot be compared."""
        first, last = (self.calls[end] for end in self.ends)
        return last / first if first and last and not math.isclose(first, last, rel_tol=SAME_CALLS) else None


@dataclass(frozen=True, slots=True)
class Profiles:
    """Profiles of revisions, oldest first, None with a reason for those without one; `growths` are there for two revisions and more."""

    revisions: tuple[Revision, ...]
    profiles: tuple[Profile | None, ...]
    reasons: tuple[str, ...]
    growths: tuple[Growth, ...]
    notes: tuple[Note | Claim, ...] = ()
    machines: tuple[Machine, ...] = ()
    on: tuple[str, ...] = ()  # the machine of each revision, where there are several


def profiles(
    recordings: Sequence[Recording], config: CompareConfig, announce: Callable[[str], None], *, relay: Relay | None = None
) -> Profiles:
    """Return the profiles of what was recorded, and the growth of every function that is material in one of them, the largest first.

    A function is material from `POLICY.material` of a revision's own time on. `announce` hears the name of each function that was studied.
    """
    by_revision = tuple(None if isinstance(recording, str) else profile(recording) for _, recording in recordings)
    measured = [place for place, revision_profile in enumerate(by_revision) if revision_profile is not None]
    paces = {place: (_profile(handover.before), _profile(handover.after)) for place, handover in (relay.handovers if relay else {}).items()}
    growths = []
    for name, file in _material(by_revision) if len(by_revision) > 1 else ():
        lines = list(_lines(by_revision, paces, name, file))
        growths.append(
            Growth(
                name,
                file,
                tuple(line[0] if line else None for line in lines),
                tuple(line[1] if line else None for line in lines),
                (measured[0], measured[-1]),
                history(name, file, recordings, (METRIC,), config, relay=relay),
            )
        )
        announce(name)
    return Profiles(
        revisions=tuple(revision for revision, _ in recordings),
        profiles=by_revision,
        reasons=tuple(recording if isinstance(recording, str) else "" for _, recording in recordings),
        growths=tuple(sorted(growths, key=lambda growth: (-growth.added_ns, growth.name))),
        notes=notes_of(relay, timed=bool(growths)),
        machines=relay.machines if relay else (),
        on=relay.on if relay else (),
    )


def classes(recorded: RecordedExperiment, lines: Sequence[ProfileLine], config: CompareConfig) -> dict[int, CostClass]:
    """Return how a call's time, callees included, grows with the inputs of each of these functions, by number."""
    class_by_function = {}
    for line in lines:
        table = recorded.samples(line.info.id, Side.BASE)
        if table is not None and len(table):
            for annotation in annotate(line.info.name, thinned(table, MOST_ROWS), ("wall_ns",), seed=config.seed):
                class_by_function[line.info.id] = annotation.growth
    return class_by_function


def material(profile: Profile) -> tuple[ProfileLine, ...]:
    """Return the functions whose own time is a share of all that is worth looking at."""
    return tuple(line for line in profile.lines if profile.share(line) >= POLICY.material)


def _material(by_revision: Sequence[Profile | None]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((line.info.name, line.info.file) for profile in by_revision if profile for line in material(profile)))


def _profile(recorded: RecordedExperiment | None) -> Profile | None:
    return profile(recorded) if recorded else None


_Pace = tuple[Profile | None, Profile | None]  # of one revision, on the machine before and on the one that goes on


def _lines(by_revision: Sequence[Profile | None], paces: Mapping[int, _Pace], name: str, file: str) -> Iterator[tuple[float, float] | None]:
    """Yield a function's own time and calls in each revision, as the first machine would have them; None where it has none."""
    faster, more = 1.0, 1.0
    for place, revision_profile in enumerate(by_revision):
        before, after = paces.get(place, (None, None))
        if before and after:
            former, latter = _line(before, name, file), _line(after, name, file)
            if former and latter and min(before.share(former), after.share(latter)) >= POLICY.material:
                faster *= former.self_ns / latter.self_ns
            elif before.self_ns > 0 and after.self_ns > 0:  # too little of it for a pace of its own
                faster *= before.self_ns / after.self_ns
            more *= former.calls / latter.calls if former and latter else 1.0
        line = _line(revision_profile, name, file)
        yield (line.self_ns * faster, line.calls * more) if line else None


def _line(profile: Profile | None, name: str, file: str) -> ProfileLine | None:
    return next((line for line in profile.lines if (line.info.name, line.info.file) == (name, file)), None) if profile else None
