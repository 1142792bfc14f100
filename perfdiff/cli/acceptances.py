"""Known costs on the command line: where they are kept, and findings and comparisons with them taken into account."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from perfdiff.cli import options, requests
from perfdiff.configuration import Overrides

if TYPE_CHECKING:
    from perfdiff.analysis.findings import Findings
    from perfdiff.outcome import Outcome
    from perfdiff.progress import Progress
    from perfdiff.request import Request


def file(directory: Path, configured: Path | None) -> Path:
    """Return the file of known costs that holds in `directory`, by the configuration there or the one that the user named."""
    from perfdiff import accepted

    return accepted.path(directory, options.configured(directory, Overrides(file=configured)))


def honoured(findings: Findings, directory: Path, configured: Path | None) -> Findings:
    """Return findings in which known costs are marked and do not make the verdict."""
    from perfdiff import accepted

    config = options.configured(directory, Overrides(file=configured))
    costs = accepted.read(accepted.path(directory, config))
    if not costs:
        return findings
    from perfdiff.analysis.verdicts import acceptance  # which loads most of the analysis

    return acceptance.apply(findings, costs, date.today(), config.compare)


def compared(asked: Request, directory: Path, overrides: Overrides, progress: Progress) -> Outcome:
    """Compare as asked; the costs that are known in `directory` are no regression."""
    from perfdiff import pipeline

    requests.warn_of_few_runs(asked, progress)
    outcome = pipeline.compare(asked, progress)
    return replace(outcome, findings=honoured(outcome.findings, directory.absolute(), overrides.file))
