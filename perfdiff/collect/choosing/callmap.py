"""What the cases of a suite call, kept from comparison to comparison: what is known of code that is still the same need not run again.

A case calls the same functions as before if all that it called then are the same now: this is how tests are selected for a change
(Rothermel & Harrold 1997; Gligoric et al. 2015). Files that it reads are not looked at; runs that are measured are not spared by this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

Calls = Mapping[str, float]  # of a run, by the function's key

_MOST_BYTES = 50_000_000  # of a file; what is more is not worth reading
_NOTHING = -1  # the place of no entry


@dataclass(frozen=True, slots=True)
class KnownCase:
    """What a case called. If it ran together with others, `calls` are those of all of them, and `is_bound` says that it called no more."""

    calls: Calls
    is_bound: bool


class _KeptRun(msgspec.Struct):
    functions: list[int]
    calls: list[float]
    is_bound: bool
    before: int = _NOTHING  # the entry of what was called in its process before it, where others have that in common


class _KeptMap(msgspec.Struct):
    functions: list[tuple[str, str]]  # key and digest of the text
    entries: list[_KeptRun]
    cases: dict[str, int]


@dataclass(slots=True)
class CallMap:
    """What the cases of one suite called when they ran last. `texts` are the digests of head's functions, by key."""

    texts: Mapping[str, str]
    _kept: _KeptMap = field(default_factory=lambda: _KeptMap([], [], {}))
    _gained: list[tuple[tuple[str, ...], _KeptRun]] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path, texts: Mapping[str, str]) -> CallMap:
        """Return the call map that a file holds, an empty one if the file is missing or damaged."""
        try:
            if file.stat().st_size <= _MOST_BYTES:
                return cls(texts, msgspec.json.decode(file.read_bytes(), type=_KeptMap))
        except (OSError, msgspec.MsgspecError):
            pass
        return cls(texts)

    def known(self, case: str) -> KnownCase | None:
        """Return the calls of a case, None if they are not known, or if one of the functions has changed since."""
        number = self._kept.cases.get(case, -1)
        if not 0 <= number < len(self._kept.entries):
            return None
        entry = self._kept.entries[number]
        own = self._holding(entry)
        if not _NOTHING <= entry.before < len(self._kept.entries):
            return None
        before = {} if entry.before == _NOTHING else self._holding(self._kept.entries[entry.before])
        if own is None or before is None or not {**before, **own}:
            return None
        return KnownCase({**before, **own}, entry.is_bound)

    def _holding(self, entry: _KeptRun) -> dict[str, float] | None:
        """Return what a run called; None where something of it is not as it was."""
        if not all(0 <= index < len(self._kept.functions) for index in entry.functions):
            return None
        called = [self._kept.functions[index] for index in entry.functions]
        if any(self.texts.get(key) != text for key, text in called):
            return None
        return {key: calls for (key, _), calls in zip(called, entry.calls, strict=False)}

    def keep(self, cases: Iterable[str], calls: Calls) -> None:
        """Keep the calls of a run of these cases."""
        names = tuple(cases)
        self._gained.append((names, self._entry(calls, is_bound=len(names) > 1)))

    def keep_apart(self, cases: Mapping[str, Calls], before: Calls) -> None:
        """Keep the calls of each case of one run, and the calls that its process made before the first case."""
        place = self._keep_before(before)
        self._gained += [((case,), self._entry(calls, before=place)) for case, calls in cases.items()]

    def _keep_before(self, calls: Calls) -> int:
        self._gained.append(((), self._entry(calls)))
        return len(self._gained) - 1

    def _entry(self, calls: Calls, *, is_bound: bool = False, before: int = _NOTHING) -> _KeptRun:
        for key in calls:
            self._numbers.setdefault(key, len(self._numbers))
        return _KeptRun([self._numbers[key] for key in calls], list(calls.values()), is_bound, before)

    def write(self, file: Path) -> None:
        """Write what is known now: what runs gained, later ones over earlier ones, and of other cases what still holds; raise OSError."""
        gained = {case for names, _ in self._gained for case in names}
        places = {_NOTHING: _NOTHING}  # of what was called before, by the place where it was
        for case in sorted(self._kept.cases.keys() - gained):
            holds = self.known(case)
            if holds is None or holds.is_bound:
                continue
            entry = self._kept.entries[self._kept.cases[case]]
            if entry.before not in places:
                places[entry.before] = self._keep_before(self._holding(self._kept.entries[entry.before]) or {})
            self._gained.append(((case,), self._entry(self._holding(entry) or {}, before=places[entry.before])))
        cases = {case: number for number, (names, _) in enumerate(self._gained) for case in names}
        functions = [(key, self.texts.get(key, "")) for key in self._numbers]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(msgspec.json.encode(_KeptMap(functions, [entry for _, entry in self._gained], cases)))
