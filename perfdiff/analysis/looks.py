"""Looks while runs continue: the verdicts alone, and whether more runs could change them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff.analysis.compare.shares import PRIMARY
from perfdiff.analysis.compare.study import Decisive
from perfdiff.analysis.findings import Findings, FunctionFinding, MetricFinding, Verdict
from perfdiff.analysis.gathering import (
    GatheredEvidence,
    at_usual_pace,
    by_machine,
    compared,
    comparison_context,
    concluded,
    gathered,
    most_favourable,
)
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.analysis.sums.levelling import LevelledExperiment, levelled
from perfdiff.analysis.verdicts import settling
from perfdiff.analysis.verdicts.case import Case
from perfdiff.analysis.verdicts.ruling import Ruling, rule
from perfdiff.analysis.verdicts.settling import keeps_open, stands_alone
from perfdiff.config import CompareConfig
from perfdiff.models.threads import one_thread
from perfdiff.records.recorded import Samples
from perfdiff.records.schema import Experiment, FunctionInfo


@dataclass(frozen=True, slots=True)
class Glance:
    """The result of a quick look at the runs: the id of the first function that needs more of them, or all `findings` if none does.

    `studied` functions were compared. Where findings are `settled`, more runs could not change them.
    """

    findings: Findings | None
    keeps_open: int | None
    studied: int
    are_settled: bool = False


@one_thread()
def look(experiment: Experiment, samples: Samples, config: CompareConfig) -> Findings:
    """Return the verdicts alone, by the same judge as `analyse`, for a look at the findings while runs go on.

    Left out is what decides nothing: cost functions of head, growth, causes, sentences, calls, metrics that only explain, and functions
    that all together are not a material share of a run. Tests that are left out still count for the false discovery rate, as failed
    ones, so that a look never finds what the end would not.
    """
    return _Look(levelled(experiment, samples), config).findings()


@one_thread()
def glance(experiment: Experiment, samples: Samples, config: CompareConfig, first: int | None = None) -> Glance:
    """Return the first function that alone keeps the runs going, whatever all others show, or the findings of `look` where none does.

    The one that did so at the last look comes `first`, then those that vary most from run to run.
    """
    at_one_pace = levelled(experiment, samples)
    looking = _Look(at_one_pace, config)
    if not at_one_pace.parts:  # where machines disagree, each is judged by itself afterwards
        for info in looking.likeliest(first):
            if looking.keeps_open(info):
                return Glance(None, info.id, looking.studied)
    findings = looking.findings()
    return Glance(findings, None, looking.studied, settling.settled(findings, config))


@dataclass(slots=True)
class Looking:
    """Looks at the findings; what the last look showed holds until further runs are made."""

    config: CompareConfig
    _findings: Findings | None = None
    _runs: int = 0  # that the findings are of
    _open: int | None = None  # the function that kept runs going at the last look

    def is_settled(self, experiment: Experiment, samples: Samples) -> bool:
        """Return whether more probed runs cannot change the answer; the look ends at the first function whose verdict they could change."""
        seen = glance(experiment, samples, self.config, self._open)
        self._open = seen.keeps_open
        if seen.findings is not None:
            self._findings, self._runs = seen.findings, len(experiment.runs)
        return seen.are_settled

    def findings(self, experiment: Experiment, samples: Callable[[], Samples]) -> Findings:
        """Return the findings so far, from the last look if no run was made since: a look at a large program takes seconds."""
        if self._findings is None or self._runs != len(experiment.runs):
            self._findings, self._runs = look(experiment, samples(), self.config), len(experiment.runs)
        return self._findings


class _Look:
    """A look at an experiment at one pace; what was studied of single functions serves all of them together."""

    def __init__(self, of: LevelledExperiment, config: CompareConfig) -> None:
        self._of, self._config = of, config
        self._ledger, self._samples = at_usual_pace(of.experiment, of.samples, config)
        self._known = comparison_context(of, self._ledger, config)
        self._studies = Decisive(of.experiment, self._samples, self._ledger, config)

    @property
    def studied(self) -> int:
        """Return how many functions were compared so far."""
        return sum(bool(study.comparisons) for study in self._studies.made.values())

    def likeliest(self, first: int | None) -> Sequence[FunctionInfo]:
        """Return the changed functions that matter, those first that most likely are open."""
        suspects = [
            suspect for suspect in self._of.experiment.functions if suspect.change.is_suspect and suspect.id not in self._studies.trifles
        ]
        varies = _varies(self._ledger)
        return sorted(suspects, key=lambda suspect: (suspect.id != first, -varies[self._ledger.place[suspect.id]]))

    def keeps_open(self, info: FunctionInfo) -> bool:
        """Return whether a function alone keeps the runs going; it is studied only where it can."""
        can = stands_alone(info, self._known.tallies.get(info.id, {}), self._known.web)
        return can and keeps_open(most_favourable(self._known, self._studies.study(info)))

    def findings(self) -> Findings:
        """Return the verdicts on all functions, and on all together."""
        gathering, functions = self._functions()
        functions = by_machine(functions, self._of, lambda part: _Look(part, self._config)._functions()[1], self._config)
        return concluded(self._of.experiment, functions, gathering.evidence, self._config)

    def _functions(self) -> tuple[GatheredEvidence, list[FunctionFinding]]:
        gathering = gathered(self._known, self._studies.studies(self._of.experiment.functions))
        ruling = rule(gathering.cases, gathering.evidence)
        functions = []
        for case in gathering.cases:
            verdict = ruling.decisions[case.info.id].verdict
            is_told = verdict in (Verdict.REGRESSION, Verdict.IMPROVEMENT) or case.info.id in gathering.machines.differing(self._config.fdr)
            metrics = compared(case, ruling.decisions[case.info.id], gathering, self._samples)[0] if is_told else {}
            functions.append(_verdict_alone(case, ruling, metrics))
        return gathering, functions


def _varies(ledger: Ledger) -> np.ndarray:
    """Return by how much of a run each function's own time varies from run to run, (f,), at the point where that is most."""
    largest = np.zeros(len(ledger.ids))
    for book in ledger.books.values():
        sums = book.sums(PRIMARY)
        if sums is not None and len(sums):
            largest = np.maximum(largest, sums.std(axis=0) / max(book.cost_ns, 1.0))
    return largest


def _verdict_alone(case: Case, ruling: Ruling, metrics: Mapping[str, MetricFinding]) -> FunctionFinding:
    decision, (extra_ns, interval) = ruling.decisions[case.info.id], ruling.extra(case)
    return FunctionFinding(
        info=case.info,
        verdict=decision.verdict,
        reason=decision.reason,
        rules=decision.rules,
        rank=None,
        calls_base=None,
        calls_head=None,
        extra_ns=extra_ns,
        extra_ci_ns=interval,
        share=None,
        metrics=metrics,
        causes=(),
        chain=(),
        happened=None,
    )
