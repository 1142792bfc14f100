"""Known costs on the command line: where they are kept, and findings with them taken into account."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from perfdiff.cli import options
from perfdiff.configuration import Overrides

if TYPE_CHECKING:
    from perfdiff.analysis.findings import Findings


def file(directory: Path, configured: Path | None) -> Path:
    """Return the file of known costs that holds in `directory`, by the configuration there or the one that the user named."""
    from perfdiff import accepted

    return accepted.path(directory, options.configured(directory, Overrides(file=configured)))


def honoured(findings: Findings, directory: Path, configured: Path | None) -> Findings:
    """Return findings in which known costs are marked and do not make the verdict."""
    from perfdiff import accepted

    config = options.configured(directory, Overrides(file=configured))
    known = accepted.read(accepted.path(directory, config))
    if not known:
        return findings
    from perfdiff.analysis.verdicts import acceptance  # which loads most of the analysis

    return acceptance.apply(findings, known, date.today(), config.compare)
