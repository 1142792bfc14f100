"""Revisions of one history that several machines recorded, each a stretch of it: who recorded what, and what two of them have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfdiff.records.recorded import RecordedExperiment
from perfdiff.records.schema import Machine, Note


@dataclass(frozen=True, slots=True)
class Handover:
    """A revision that two machines recorded, the one that ends there and the one that continues; None for one without a recording."""

    before: RecordedExperiment | None
    after: RecordedExperiment | None


@dataclass(frozen=True, slots=True)
class Relay:
    """Revisions by their places, oldest first.

    `on` names the machine whose recording of a revision counts; `made` holds what machines recorded, or why they could not, by machine and
    place. A machine that begins a stretch records the revision before it as well, so that costs are only ever compared on one machine.
    """

    on: tuple[str, ...]
    made: Mapping[tuple[str, int], RecordedExperiment | str]
    machines: tuple[Machine, ...] = ()
    notes: tuple[Note, ...] = ()

    def recorded(self, place: int) -> RecordedExperiment | str:
        """Return the recording of a revision, or why there is none."""
        return self.made[self.on[place], place]

    @property
    def handovers(self) -> Mapping[int, Handover]:
        """Return, by its place, each revision that has been recorded by another machine than the last one before that was recorded."""
        by_place: dict[int, Handover] = {}
        machine = ""
        for place, name in enumerate(self.on):
            if isinstance(self.recorded(place), str):
                continue
            if machine and name != machine:
                by_place[place] = self._handover(machine, name, place)
            machine = name
        return by_place

    def _handover(self, former: str, latter: str, end: int) -> Handover:
        for place in reversed(range(end)):
            before, after = self.made.get((former, place)), self.made.get((latter, place))
            if isinstance(before, RecordedExperiment) and isinstance(after, RecordedExperiment):
                return Handover(before, after)
        return Handover(None, None)


def repeated(relay: Relay, places: Sequence[int]) -> Relay:
    """Return a relay over more revisions, each of which is the same as the one of the old relay at the place given for it."""
    of = {old: [new for new, place in enumerate(places) if place == old] for old in places}
    by_machine = {(machine, new): recorded for (machine, place), recorded in relay.made.items() for new in of.get(place, ())}
    return Relay(tuple(relay.on[place] for place in places), by_machine, relay.machines, relay.notes)
