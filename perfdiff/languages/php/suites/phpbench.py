"""Subjects of phpbench's benchmarks, at the sets of parameters that their providers give."""

from __future__ import annotations

import shlex

from perfdiff.languages.listing import CALLS, Benchmark, SuiteListing
from perfdiff.languages.php.suites.trials import PassedCase, command, grouped, places, quoted, tried

_DRIVER = "phpbench.php"


def listed(what: str) -> SuiteListing:
    """Return the subjects of the benchmarks that words select, each a path or a regular expression of names."""
    trials = tried(_DRIVER, shlex.split(what))
    return SuiteListing(
        {name: _benchmark(name, cases) for name, cases in grouped(trials).items()},
        trials.failures,
        trials.start_s,
        trials.whole,
    )


def _benchmark(name: str, cases: list[PassedCase]) -> Benchmark:
    names = places(cases)
    what = command(_DRIVER, *quoted([cases[0].file, *cases[0].words]), CALLS, *(f"{{{place}}}" for place in names))
    return Benchmark(name, what, parameters=names, points={tuple(case.parameters.values()): (case.seconds, case.again) for case in cases})
