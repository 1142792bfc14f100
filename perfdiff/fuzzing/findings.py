"""What a search for inputs found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfdiff.analysis.findings import EndToEnd, PointStanding, Verdict
from perfdiff.analysis.trends.findings import TrendFindings
from perfdiff.config import WorkloadConfig
from perfdiff.fuzzing.trials import CorpusEntry, Mishap
from perfdiff.models.trend import Law
from perfdiff.records.places import Place
from perfdiff.records.schema import Note, Revision, Side


@dataclass(frozen=True, slots=True)
class SlowInput:
    """An input on which head does more than base, in sizes of which `entry` has the one that the search met.

    `workload` runs it, as the configuration may have it from now on; `files` are its contents by number of repetitions, none of a
    parameter. `trends` are counts of lines over its sizes; where these do not show why it is slower, `by_time` is the law of the CPU time
    that head takes more, and `changed` is the changed line that ran most. By `factor` each repetition multiplies what head does more, where
    that is so. `run` is of whole runs of the plain builds in the largest size, None where
    there are none, as of a lone revision.
    """

    entry: CorpusEntry
    workload: WorkloadConfig
    files: Mapping[int, Path]
    trends: TrendFindings | None
    by_time: Law | None = None
    factor: float | None = None
    changed: Place | None = None
    run: EndToEnd | None = None

    @property
    def verdict(self) -> Verdict:
        """Return the verdict of whole runs: head is slower, that is excluded, or neither."""
        match self.run and self.run.standing:
            case PointStanding.SLOWER:
                return Verdict.REGRESSION
            case PointStanding.NOT_SLOWER | PointStanding.FASTER:
                return Verdict.UNCHANGED
        return Verdict.INCONCLUSIVE


@dataclass(frozen=True, slots=True)
class SearchFindings:
    """The inputs that a search found, the worst first: it `tried` a number of inputs in some `seconds`.

    `reached` is the share of the lines of functions that changed or did more which some input ran, `matters` how many such lines there are.
    Inputs had at most `size` bytes; `most` is head's work over base's with the worst of all.
    """

    revisions: Mapping[Side, Revision]
    inputs: tuple[SlowInput, ...]
    verdict: Verdict
    tried: int
    seconds: float
    seeds: int
    reached: float
    matters: int
    size: int
    most: float
    mishaps: tuple[Mishap, ...] = ()
    notes: tuple[Note, ...] = ()
