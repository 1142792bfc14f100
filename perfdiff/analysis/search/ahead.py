"""What a search will ask for after its next measurement, whatever that shows: what several machines can measure at the same time."""

from __future__ import annotations

import collections
from dataclasses import replace

from perfdiff.analysis.search.posterior import Knowledge, Measure, Reading, Search, Terms, decide


def asked_ahead(search: Search, knowledge: Knowledge, terms: Terms, most: int) -> tuple[int, ...]:
    """Return at most `most` commits without a reading, the one that is asked for now first, then those after either answer to it."""
    commits: list[int] = []
    possible = collections.deque([knowledge])
    while possible and len(commits) < most:
        present = possible.popleft()
        step = decide(search, present, terms)
        if not isinstance(step, Measure) or step.commit in present.readings:
            continue
        commits += [step.commit] * (step.commit not in commits)
        for effect in (0.0, search.expected.effect):
            readings = {**present.readings, step.commit: Reading(effect, terms.error)}
            possible.append(replace(present, readings=readings, measurements=present.measurements + 1))
    return tuple(commits)
