"""What runs of tests have told so far, line by line."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import unquote_plus


@dataclass(slots=True)
class Case:
    """A test: what its driver calls it, its name, the seconds of a call, and whether it passed again in the same process."""

    id: str
    name: str
    seconds: float | None = None
    repeatable: bool = False
    failure: str = ""


@dataclass(slots=True)
class Course:
    """The tests that ran, by their ids; `tried` are those, and what holds others, that another process leaves out."""

    cases: dict[str, Case] = field(default_factory=dict)
    tried: dict[str, None] = field(default_factory=dict)
    is_over: bool = False
    problem: str | None = None
    _open: dict[str, str] = field(default_factory=dict)  # what has begun and not ended: names by ids

    @property
    def shortest(self) -> Case | None:
        """Return the test that takes least."""
        passed = [case for case in self.cases.values() if case.seconds is not None and not case.failure]
        return min(passed, key=lambda case: case.seconds or 0.0, default=None)

    def hear(self, line: str) -> None:
        """Take a line of a driver's report."""
        kind, *fields = map(unquote_plus, line.split(" "))
        if kind == "begin" and len(fields) == 3:
            self._open[fields[0]] = fields[1]
            if fields[2] == "true":
                self.cases[fields[0]] = Case(fields[0], fields[1])
        elif kind == "end" and len(fields) == 3:
            self._end(*fields)
        elif kind == "again" and len(fields) == 2 and fields[0] in self.cases:
            case = self.cases[fields[0]]
            seconds = int(fields[1]) / 1e9
            case.seconds, case.repeatable = min(seconds, case.seconds or seconds) if case.repeatable else seconds, True
        elif kind == "all":
            self.is_over = True

    def _end(self, test: str, nanoseconds: str, failure: str) -> None:
        name = self._open.pop(test, test)
        case = self.cases.get(test)
        if case is None and failure:
            self.cases[test] = Case(test, name, failure=failure)
        elif case is not None:
            case.seconds, case.failure = int(nanoseconds) / 1e9, failure
            self.tried[test] = None

    def stop(self, reason: str, errors: str = "") -> None:
        """Leave out what was running when its process ended for a reason, if not all was tried; without such a thing, it is over."""
        if self.is_over:
            return
        if not self._open:
            self.is_over, self.problem = True, f"{reason}: {errors}" if errors else reason
            return
        test, name = self._open.popitem()
        self.cases[test] = Case(test, name, failure=reason)
        if test in self.tried:  # it runs although it was left out, so that no other process gets further
            self.is_over = True
        self.tried[test] = None
        self._open.clear()
