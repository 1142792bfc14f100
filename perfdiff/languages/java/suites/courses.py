"""What runs of tests have told so far, line by line."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import unquote_plus


@dataclass(slots=True)
class ReportedTest:
    """A test: what its driver calls it, its name, the seconds of a call, and whether it passed again in the same process."""

    id: str
    name: str
    seconds: float | None = None
    repeatable: bool = False
    failure: str = ""


@dataclass(slots=True)
class Course:
    """The tests that ran, by their ids; a further process skips the `tried` ones, tests and containers of tests."""

    tests: dict[str, ReportedTest] = field(default_factory=dict)
    tried: dict[str, None] = field(default_factory=dict)
    is_over: bool = False
    problem: str | None = None
    _open: dict[str, str] = field(default_factory=dict)  # what has begun and not ended: names by ids

    @property
    def shortest(self) -> ReportedTest | None:
        """Return the test that takes the least time."""
        passed = [test for test in self.tests.values() if test.seconds is not None and not test.failure]
        return min(passed, key=lambda test: test.seconds or 0.0, default=None)

    def hear(self, line: str) -> None:
        """Take a line of a driver's report."""
        kind, *fields = map(unquote_plus, line.split(" "))
        if kind == "begin":
            self._begin(*fields)
        elif kind == "end":
            self._end(*fields)
        elif kind == "again":
            self._again(*fields)
        elif kind == "all":
            self.is_over = True

    def _begin(self, key: str, name: str, is_test: str) -> None:
        self._open[key] = name
        if is_test == "true":
            self.tests[key] = ReportedTest(key, name)

    def _end(self, key: str, nanoseconds: str, failure: str) -> None:
        name, test = self._open.pop(key, key), self.tests.get(key)
        if test is not None:
            test.seconds, test.failure = int(nanoseconds) / 1e9, failure
            self.tried[key] = None
        elif failure:  # what stands before several tests
            self.tests[key] = ReportedTest(key, name, failure=failure)

    def _again(self, key: str, nanoseconds: str) -> None:
        test, seconds = self.tests[key], int(nanoseconds) / 1e9
        test.seconds = min(seconds, test.seconds or seconds) if test.repeatable else seconds  # the first call loads classes
        test.repeatable = True

    def stop(self, reason: str, errors: str = "") -> None:
        """Leave out what was running when its process ended for a reason, if not all was tried; without such a thing, it is over."""
        if self.is_over:
            return
        if not self._open:
            self.is_over, self.problem = True, f"{reason}: {errors}" if errors else reason
            return
        key, name = self._open.popitem()
        self.tests[key] = ReportedTest(key, name, failure=reason)
        self.is_over = key in self.tried  # it runs although it was left out: no other process gets further
        self.tried[key] = None
        self._open.clear()
