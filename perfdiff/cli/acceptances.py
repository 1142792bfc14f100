"""Known costs on the command line: where they are kept, and findings with them taken into account."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from perfdiff import configuration
from perfdiff.configuration import Overrides

if TYPE_CHECKING:
    from perfdiff.analysis.findings import Findings
    from perfdiff.config import Config


def file(directory: Path, configured: Path | None) -> Path:
    """Return the file of known costs that holds in `directory`, by the configuration there or the one that the user named."""
    from perfdiff import accepted

    return accepted.path(directory, configured_in(directory, configured))


def honoured(findings: Findings, directory: Path, configured: Path | None) -> Findings:
    """Return findings in which known costs are marked and do not make the verdict."""
    from perfdiff import accepted

    config = configured_in(directory, configured)
    known = accepted.read(accepted.path(directory, config))
    if not known:
        return findings
    from perfdiff.analysis.verdicts import acceptance  # which loads most of the analysis

    return acceptance.apply(findings, known, date.today(), config.compare)


def configured_in(directory: Path, configured: Path | None) -> Config:
    """Return the configuration that holds in `directory`, or the one that the user named, which says nothing of what to measure."""
    return configuration.load(directory, overrides=Overrides(file=configured), environment=os.environ, measuring=False)
