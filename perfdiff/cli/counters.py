"""`perfdiff counters`: say which events this machine really counts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perfdiff import configuration
from perfdiff.cli import exits, options, output
from perfdiff.cli.options import TextOrJson

if TYPE_CHECKING:
    from perfdiff.collect.hosts.counters import EventTrial, Library

app = options.application()

_SCHEMA = "perfdiff.counters/1"


@app.command()
def counters(
    events: Annotated[list[str] | None, typer.Argument(metavar="EVENT…", help="Events to try, by their PAPI names.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Try every event that PAPI knows on this machine.")] = False,
    chosen: Annotated[TextOrJson, typer.Option("--format", help="Format of the answer.")] = TextOrJson.TEXT,
    repository: options.Repository = Path(),
    config: options.ConfigFile = None,
) -> None:
    """Count events in a test loop, and say which of them this machine can count, what each counts, and why the others are not available.

        Without EVENT, the configured events are tried; if none are configured, those that comparisons count by default and other common
    ones. Exits with 0 if all events that were asked for or configured can be counted, with 3 if one cannot, with 2 if a name is unknown.
    """
    from perfdiff.collect.hosts import counters as trying

    with exits.exceptions_become_codes():
        asked = tuple(events or _configured(repository, config))
        trials = trying.every() if every else trying.attempt(asked or trying.COMMON)
        library, usual = trying.library(), trying.usual()
        output.write(_json(library, trials, usual) if chosen is TextOrJson.JSON else "\n".join(_lines(library, trials, usual)))
        if asked and not every:
            trying.check_names(trials)
            missing = any(trial.state is trying.State.ABSENT for trial in trials)
            raise typer.Exit(exits.ExitCode.NOT_MEASURED if missing else exits.ExitCode.FINE)


def _configured(repository: Path, file: Path | None) -> tuple[str, ...]:
    overrides = configuration.Overrides(file=file)
    config = options.configured(repository, overrides)
    return config.counters.events or ()


def _json(library: Library, trials: Sequence[EventTrial], usual: Sequence[str]) -> str:
    answer = {"schema": _SCHEMA, "papi": asdict(library), "default": list(usual), "events": [asdict(trial) for trial in trials]}
    return json.dumps(answer, indent=2)


def _lines(library: Library, trials: Sequence[EventTrial], usual: Sequence[str]) -> Iterator[str]:
    yield f"PAPI {library.version}" if library.version else library.trouble
    yield ""
    yield from _table(trials)
    yield ""
    yield f"Comparisons count {', '.join(usual)} by default." if usual else "Comparisons count no hardware events here by default."


def _table(trials: Sequence[EventTrial]) -> Iterator[str]:
    width = max((len(trial.event) for trial in trials), default=0)
    remedy = ""
    for trial in trials:
        value = "" if trial.value is None else f"{trial.value:,}"
        yield f"{trial.event:<{width}}  {trial.state.value:<7}  {value:>15}  {trial.says}".rstrip()
        if trial.remedy and trial.remedy != remedy:
            yield f"{'':<{width}}  → {trial.remedy}"
        remedy = trial.remedy
