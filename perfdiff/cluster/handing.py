"""Which worker makes a build that several need, and who is handed it: what one has built, another of the same kind need not build.

Nothing is asked of a worker that runs or records something: whoever needs a build of it then makes the build itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from perfdiff import units
from perfdiff.build import kinds
from perfdiff.build.kinds import Kind
from perfdiff.cluster.protocol import Shelf

_SHOWN = 3  # of what differs between two kinds


@dataclass(frozen=True, slots=True)
class Given:
    """A decision on a build: a worker `who` gets it from the worker `source`, or makes it itself if that is None."""

    who: str
    key: str
    source: str | None


@dataclass(slots=True)
class _Worker:
    """A worker: its kind, what it has and makes, whose builds it has `taken`, and how many it made: all, and those it was to be handed."""

    kind: Kind | None
    keys: set[str]
    makes: str | None = None
    taken: list[str] = field(default_factory=list)
    made: int = 0
    refused: int = 0


@dataclass(slots=True)
class Handing:
    """The builds of the workers, by the workers' addresses; `names` are what these are called."""

    names: Mapping[str, str] = field(default_factory=dict)
    _there: dict[str, _Worker] = field(default_factory=dict)
    _waiting: list[tuple[str, str, str]] = field(default_factory=list)  # who, for which build, of whom

    def begin(self, shelves: Mapping[str, Shelf]) -> None:
        """Note the builds that workers have at the start."""
        self._there = {who: _Worker(shelf.kind, set(shelf.keys)) for who, shelf in shelves.items()}

    def seek(self, who: str, key: str, busy: Collection[str], *, is_patient: bool) -> list[Given]:
        """Return which builds go to whom now that a worker needs one; nothing if it has to wait for another worker.

        It waits for one that makes this build; with `is_patient`, also for one that has it and is `busy` with something else.
        """
        worker = self._there.get(who)
        if worker is None:
            return []
        alike = [] if worker.kind is None else [name for name, other in self._there.items() if name != who and other.kind == worker.kind]
        maker = next((name for name in alike if self._there[name].makes == key), None)
        holders = [name for name in alike if key in self._there[name].keys]
        free = next((name for name in holders if name not in busy), None)
        if maker is None and free is not None:
            return [Given(who, key, free)]
        if awaited := maker or (holders[0] if holders and is_patient else None):
            self._waiting.append((who, key, awaited))
            return []
        worker.makes = key
        return [Given(who, key, None)]

    def built(self, who: str, key: str) -> None:
        """Take that a worker has made a build."""
        if worker := self._there.get(who):
            worker.keys.add(key)
            worker.made += 1

    def took(self, who: str, key: str, source: str) -> None:
        """Note that a worker now has a build that another one made."""
        if worker := self._there.get(who):
            worker.keys.add(key)
            worker.taken.append(source)

    def refused(self, who: str, key: str, source: str) -> None:
        """Note that a worker's build could not be handed on to another worker."""
        if source in self._there:
            self._there[source].keys.discard(key)
        if who in self._there:
            self._there[who].refused += 1

    def heard(self, who: str, busy: Collection[str], *, is_patient: bool) -> list[Given]:
        """Return which builds go to whom now that a worker has answered or asked, and makes nothing."""
        if who in self._there:
            self._there[who].makes = None
        waited = [seeker for seeker in self._waiting if seeker[2] == who]
        self._waiting = [seeker for seeker in self._waiting if seeker[2] != who]
        return [given for other, key, _ in waited for given in self.seek(other, key, busy, is_patient=is_patient)]

    def gone(self, who: str, busy: Collection[str], *, is_patient: bool) -> list[Given]:
        """Return which builds go to whom now that a worker is gone."""
        self._there.pop(who, None)
        self._waiting = [seeker for seeker in self._waiting if seeker[0] != who]
        return self.heard(who, busy, is_patient=is_patient)

    def told(self, who: str) -> str:
        """Return where a worker's builds are from, to stand behind its name; nothing where it needed none, or is the only one."""
        worker = self._there.get(who)
        if worker is None or len(self._there) == 1:
            return ""
        said = []
        if worker.taken:
            names = [self.names.get(giver, giver) for giver in dict.fromkeys(worker.taken)]
            said.append(f"{_builds(len(worker.taken))} handed on by {units.listed(names, len(names))}")
        if worker.refused:
            said.append(f"{_builds(worker.refused)} made again that others could not hand on")
        if worker.made and (other := self._nearest(who)):
            name, differing = other
            said.append(f"builds for itself, as {units.listed(differing, _SHOWN)} there and on {name} differ")
        return "".join(f"; {clause}" for clause in said)

    def _nearest(self, who: str) -> tuple[str, tuple[str, ...]] | None:
        """Return which other worker is most like one that is of a kind of its own, and what differs; None where others are of its kind."""
        mine = self._there[who].kind
        if mine is None:
            return None
        others = [(kinds.differences(mine, other.kind), name) for name, other in self._there.items() if name != who and other.kind]
        differing, name = min(others, key=lambda other: len(other[0]), default=((), ""))
        return (self.names.get(name, name), differing) if differing else None


def _builds(count: int) -> str:
    return f"{count} build{'s' * (count > 1)}"
