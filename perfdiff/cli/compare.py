"""`perfdiff compare BASE_SAMPLES HEAD_SAMPLES`: compare two sets of recorded calls, without any source."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perfdiff import configuration
from perfdiff.cli import acceptances, exits, options, output, samples, waiting
from perfdiff.cli.comparison import check_destination, deliver, headline
from perfdiff.configuration import Overrides
from perfdiff.records.remote import Folder, place

if TYPE_CHECKING:
    from perfdiff.outcome import Outcome
    from perfdiff.progress import Progress

app = options.application()

_HELP = """
Compare two sets of recorded calls, function by function, without any source.

Samples are an experiment's folder, as `perfdiff … --save FOLDER` leaves it, or binary logs of Freud: a folder with `idcm_*.bin`, or one
file. Functions are the same where their names are. Of an experiment with two sides, BASE_SAMPLES stands for its base and HEAD_SAMPLES for
its head; the same folder twice is analysed as it was measured. Each run, and each log, is one of the runs that the statistics count.

\b
  perfdiff compare lab/v1 lab/v2 -o report.html
  perfdiff compare logs-of-v1/ logs-of-v2/
"""


@app.command(help=_HELP)
def compare(  # noqa: PLR0913, PLR0917 (each is an option of the command line)
    base: Annotated[str, typer.Argument(metavar="BASE_SAMPLES", help="What was recorded of base.")],
    head: Annotated[str, typer.Argument(metavar="HEAD_SAMPLES", help="What was recorded of head.")],
    output_file: options.Output = None,
    report_format: options.ReportFormat = None,
    strict: options.Strict = False,
    config: options.ConfigFile = None,
    seed: options.Seed = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Compare two sets of samples and exit with the code of the verdict."""
    with exits.exceptions_become_codes():
        chosen = options.report_format(report_format, output_file)
        check_destination(chosen, output_file)
        with waiting.progress(quiet=quiet, verbose=verbose) as progress:
            outcome = compared(place(base), place(head), Overrides(file=config, seed=seed), progress)
        deliver(outcome, chosen, output_file)
        output.tell(headline(outcome), output_file, quiet=quiet)
        raise typer.Exit(exits.of_verdict(outcome.findings.verdict, strict=strict))


def compared(base: Folder, head: Folder, overrides: Overrides, progress: Progress) -> Outcome:
    """Read both sets of samples and compare them by the thresholds that hold where the user stands."""
    config = configuration.load(Path.cwd(), overrides=overrides, environment=os.environ, measuring=False)
    progress.stage("reading samples", None)
    recorded = samples.load_pair(base, head)
    from perfdiff.outcome import analysed

    outcome = analysed(recorded, config.compare, progress)
    return replace(outcome, findings=acceptances.honoured(outcome.findings, Path.cwd(), overrides.file))
