"""What is known of a program besides its functions, as far as it decides."""

from __future__ import annotations

from dataclasses import dataclass, field

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.counts.suspects import ExtraWork
from perfdiff.analysis.counts.work import WorkDifference
from perfdiff.analysis.trends.lines import MatchedLines
from perfdiff.analysis.verdicts.wholeruns import WholeRuns
from perfdiff.analysis.witnessed import PointBehaviour
from perfdiff.records.endless import EndlessCase
from perfdiff.records.reach import Reach
from perfdiff.records.schema import ComparedUnit, Run
from perfdiff.records.uncompared import ComparisonGap


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known besides the functions: whole runs, the work that was counted, and whether all that runs can observe is the same.

    `suspects` are changed functions that execute more, those that take most of it first; `lines` is how often lines ran, None where that
    was not counted; `savers` are changed functions that execute less, those that save most first. `is_timed` tells whether calls were.
    `reach` is how much of what changed ran, None where that is not known; `met` are files that differ and that slower runs meet.
    `outside` are files outside of the trees that runs read and that builds or earlier runs wrote. `witnessed` is what whole runs did, point
    by point, and `counted_runs` are those that were counted. At the points `unrun` there was no time for runs of both sides.
    `endless` are cases that do not end on head, `uncompared` is what differs where users run the program, and not here. `ended_by` is what
    ended measuring before it was complete, None where nothing did. At the points `repeating` a clock ends runs, and what they repeat takes
    longer with larger inputs, or nothing that changed is known to be repeated. `compared` is what the sides are.
    """

    runs: WholeRuns = field(default_factory=WholeRuns)
    work: WorkDifference | None = None
    same_code: bool = False
    suspects: tuple[ExtraWork, ...] = ()
    lines: MatchedLines | None = None
    savers: tuple[ExtraWork, ...] = ()
    is_timed: bool = True
    reach: Reach | None = None
    met: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    witnessed: tuple[PointBehaviour, ...] = ()
    counted_runs: tuple[Run, ...] = ()
    unrun: tuple[str, ...] = ()
    endless: tuple[EndlessCase, ...] = ()
    ended_by: str | None = None
    uncompared: tuple[ComparisonGap, ...] = ()
    repeating: tuple[str, ...] = ()
    compared: ComparedUnit = ComparedUnit.REVISIONS

    @property
    def where(self) -> Claim | None:
        """Return of how many changed functions an answer speaks, None where none changed."""
        reach = self.reach
        if reach is None or not reach.changed or reach.is_none:
            return None
        return claim("what-ran", ran=reach.ran, changed=reach.changed, unknown=reach.unknown)
