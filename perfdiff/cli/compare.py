"""`perfdiff compare BASE HEAD` and `perfdiff compare PARTS…`: recorded calls, other tools' results, profiles, without any source."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perfdiff import temporary
from perfdiff.cli import acceptances, consequences, destinations, exits, fleet, options, output, samples, waiting
from perfdiff.cli.fleet import Wished
from perfdiff.configuration import Overrides
from perfdiff.errors import UsageError
from perfdiff.records.remote import place

if TYPE_CHECKING:
    from perfdiff.outcome import Outcome
    from perfdiff.progress import Progress
    from perfdiff.records.recorded import RecordedExperiment

app = options.application()

_PAIR = 2

_HELP = """
Compare two sets of recorded calls, function by function, or of other tools' results or profiles, without sources.

Samples are an experiment's folder or URL, as `perfdiff … --save FOLDER` writes it, or Freud's binary logs. Functions are matched by name.
Of an experiment with two sides, BASE_SAMPLES uses base and HEAD_SAMPLES head.

Results of other tools are files of Google Benchmark, pytest-benchmark, asv, hyperfine, JMH (JSON), phpbench (XML dump) or Go (text), one
a side, or a folder of them with a file for each session. Profiles by sampling are folded stacks, `perf.data`, text of `perf script`, pprof
or speedscope, one a side, or a folder of them with a file for each run: which functions take more beside the others, in any language.

Or give folders with parts that `perfdiff record` wrote on any number of hosts; --base and --head say which revision is which.

\b
  perfdiff compare lab/v1 lab/v2 -o report.html
  perfdiff compare logs-of-v1/ logs-of-v2/
  perfdiff compare google-v1.json google-v2.json -o report.html
  perfdiff compare profiles-of-v1/ profiles-of-v2/
  perfdiff compare --base v1.2 --head v1.3 collected/*
"""


@app.command(help=_HELP)
def compare(  # noqa: PLR0913, PLR0917 (each is an option of the command line)
    folders: Annotated[
        list[str], typer.Argument(metavar="BASE_SAMPLES HEAD_SAMPLES | BASE_RESULTS HEAD_RESULTS | PARTS…", help="What was recorded.")
    ],
    base: Annotated[str | None, typer.Option("--base", metavar="REV", help="Use a fleet's parts of this revision as base.")] = None,
    head: Annotated[str | None, typer.Option("--head", metavar="REV", help="Use a fleet's parts of this revision as head.")] = None,
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="NAME=VALUE", help="Compare only parts with this label (may be repeated).")
    ] = None,
    pool: Annotated[
        list[str] | None,
        typer.Option("--pool", metavar="NAME", help="Compare parts with different values of this label, too (may be repeated)."),
    ] = None,
    save: options.Save = None,
    cluster: options.Cluster = None,
    production: options.Production = None,
    repository: options.Repository = Path(),
    output_files: options.Outputs = None,
    report_format: options.ReportFormat = None,
    full: options.Full = False,
    strict: options.Strict = False,
    config: options.ConfigFile = None,
    seed: options.Seed = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Compare two sets of samples and exit with the code of the verdict."""
    with exits.exceptions_become_codes():
        places = destinations.chosen(report_format, output_files, full=full)
        if save:
            samples.check(save)
        consequences.check(production)
        overrides = Overrides(file=config, seed=seed, cluster=cluster)
        wished = Wished(
            tuple(map(place, folders)),
            base,
            head,
            tuple(label or ()),
            tuple(pool or ()),
            repository,
            options.configured(Path.cwd(), overrides).compare.seed,
        )
        with temporary.folder("perfdiff-fleet-") as room:
            with waiting.progress(quiet=quiet, verbose=verbose) as progress:
                outcome = compared(_recorded(wished, room, progress), overrides, progress)
                outcome = consequences.drawn(outcome, Path.cwd(), overrides, production, progress)
            destinations.deliver(outcome, places)
            if save and outcome.recorded:
                samples.save(save, outcome.recorded)
        output.tell(destinations.headline(outcome), *destinations.written(places), quiet=quiet)
        raise typer.Exit(consequences.exit_code(outcome, strict=strict))


def _recorded(wished: Wished, room: Path, progress: Progress) -> RecordedExperiment:
    """Return what the folders or files hold of base and head."""
    if wished.says_so or fleet.is_fleet(wished.folders):
        return fleet.pooled(wished, room, progress)
    progress.stage("reading samples", None)
    missing = [folder for folder in wished.folders if isinstance(folder, Path) and not folder.exists()]
    if len(missing) == len(wished.folders):
        named = " ".join(map(str, missing))
        raise UsageError(
            f"there are no samples '{missing[0]}'; revisions are compared without a command's name: `perfdiff {named}`",
            slug="samples-missing",
        )
    if len(wished.folders) != _PAIR:
        given = f"'{missing[0]}' is not there" if missing else f"folders of samples are two, not {len(wished.folders)}"
        raise UsageError(f"{given}: give base's and head's, or folders with parts of a fleet", slug="samples-missing")
    first, second = wished.folders
    if (profiles := samples.profiles(first, second)) is not None:
        return profiles
    if samples.are_results(first, second):
        return samples.results(first, second)
    return samples.load_pair(first, second)


def compared(recorded: RecordedExperiment, overrides: Overrides, progress: Progress) -> Outcome:
    """Compare both sides of what was recorded, by the thresholds that hold where the user stands."""
    config = options.configured(Path.cwd(), overrides)
    from perfdiff.clustered import judges
    from perfdiff.outcome import analysed

    outcome = analysed(recorded, config.compare, progress, engines=judges(config.cluster, recorded, progress))
    return replace(outcome, findings=acceptances.honoured(outcome.findings, Path.cwd(), overrides.file))
