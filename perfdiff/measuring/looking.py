"""What is asked of the findings while runs go on, and when they are over: the same judge answers as in the report."""

from __future__ import annotations

from dataclasses import dataclass

from perfdiff.analysis import looks
from perfdiff.analysis.findings import Findings
from perfdiff.collect.recordings.assembly import Assembly
from perfdiff.config import CompareConfig
from perfdiff.records.recorded import TablesInMemory
from perfdiff.records.schema import Experiment


@dataclass(slots=True)
class Looking:
    """Looks at the findings; what the last look showed holds until further runs are made."""

    config: CompareConfig
    _findings: Findings | None = None
    _runs: int = 0  # that the findings are of
    _open: int | None = None  # the function that kept runs going at the last look

    def is_settled(self, experiment: Experiment, calls: Assembly) -> bool:
        """Return whether more probed runs cannot change the answer; the look ends at the first function whose verdict they could change."""
        glance = looks.glance(experiment, TablesInMemory(calls.tables()), self.config, self._open)
        self._open = glance.keeps_open
        if glance.findings is not None:
            self._findings, self._runs = glance.findings, len(experiment.runs)
        return glance.are_settled

    def findings(self, experiment: Experiment, calls: Assembly) -> Findings:
        """Return the findings so far, from the last look if no run was made since: a look at a large program takes seconds."""
        if self._findings is None or self._runs != len(experiment.runs):
            self._findings, self._runs = looks.look(experiment, TablesInMemory(calls.tables()), self.config), len(experiment.runs)
        return self._findings
