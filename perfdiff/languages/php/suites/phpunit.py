"""Tests that PHPUnit runs, those with a data provider at its sets."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence

from perfdiff.languages.listing import CALLS, CASES, Batch, Benchmark, SuiteListing
from perfdiff.languages.php.suites.trials import PassedCase, command, grouped, places, quoted, tried

_DRIVER = "phpunit.php"
_FILTER = "--filter"
# What PHPUnit prints holds times, and what it finds fault with in its configuration: no work of the tests. The driver tells what fails.
_ASIDE = "> /dev/null"


def listed(what: str) -> SuiteListing:
    """Return the tests that PHPUnit selects by some arguments."""
    words = shlex.split(what)
    selected = list(_unfiltered(words))
    trials = tried(_DRIVER, words, can_leave_out=selected == words)
    tests = grouped(trials)
    files = {name: f"{name}@{cases[0].file}" for name, cases in tests.items()}
    return SuiteListing(
        {name: _benchmark(cases, selected, files) for name, cases in tests.items()},
        trials.failures,
        trials.start_s,
        trials.whole,
    )


def _unfiltered(words: Sequence[str]) -> Iterator[str]:
    """Yield arguments without the filter of names, in whose place runs have one of their own."""
    remaining = iter(words)
    for word in remaining:
        if word == _FILTER:
            next(remaining, None)
        elif not word.startswith(f"{_FILTER}="):
            yield word


def _benchmark(cases: Sequence[PassedCase], selected: Sequence[str], files: Mapping[str, str]) -> Benchmark:
    """Return a test with those that it depends on, which run before it."""
    name, names = cases[0].name, places(cases)
    tests = quoted([files[name], *(files.get(needed, needed) for needed in cases[0].words)])
    with_arguments = shlex.quote(json.dumps(selected))
    return Benchmark(
        name,
        command(_DRIVER, with_arguments, CALLS, *(f"set={{{place}}}" for place in names), *tests, _ASIDE),
        parameters=names,
        points={tuple(case.parameters.values()): (case.seconds, case.again) for case in cases},
        batch=Batch(command(_DRIVER, with_arguments, "1", CASES, _ASIDE), " ".join(tests), " "),
    )
