"""`perfdiff doctor`: say what can be measured on this machine."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perfdiff import configuration
from perfdiff.cli import exits, options, output
from perfdiff.cli.options import TextOrJson
from perfdiff.configuration import Overrides

if TYPE_CHECKING:
    from perfdiff.languages.check import Check

app = options.application()

_SCHEMA = "perfdiff.doctor/1"


@app.command()
def doctor(
    config: options.ConfigFile = None,
    repository: options.Repository = Path(),
    cache: options.Cache = None,
    cluster: options.Cluster = None,
    chosen: Annotated[TextOrJson, typer.Option("--format", help="Format of the answer.")] = TextOrJson.TEXT,
) -> None:
    """Say what can be measured on this machine, what is missing, and what to do about it.

    For Python, Java and PHP projects it also says which interpreter or JDK is used. With --cluster it says the same of each
    worker. Exits with 0 if a comparison is possible, with 3 if something that it needs is missing.
    """
    from perfdiff.collect.hosts import doctor as examination

    with exits.exceptions_become_codes():
        if cluster:
            possible = _of_workers(cluster, chosen)
            raise typer.Exit(exits.ExitCode.FINE if possible else exits.ExitCode.NOT_MEASURED)
        directory = repository.absolute()
        configured = options.configured(directory, Overrides(file=config))
        place = configuration.project(directory, config)
        checks = examination.examine(options.cache_folder(cache), os.environ, place, configured)
        possible = examination.can_compare(checks)
        ends = _ends(possible=possible, has_checkout=examination.has_checkout(checks))
        output.write(_json(checks, possible=possible) if chosen is TextOrJson.JSON else "\n".join([*_rows(checks), "", ends]))
        raise typer.Exit(exits.ExitCode.FINE if possible else exits.ExitCode.NOT_MEASURED)


def _of_workers(address: str, chosen: TextOrJson) -> bool:
    """Write what each worker of a cluster can measure, and return whether any can."""
    from perfdiff.cluster import workers

    examined = workers.examined(address)
    possible = any(outcome.can_measure for outcome in examined)
    if chosen is TextOrJson.JSON:
        rows = [
            {
                "name": outcome.worker.name,
                "host": outcome.worker.host,
                "address": outcome.worker.address,
                "obstacle": outcome.worker.obstacle,
                "can_compare": outcome.can_measure,
                "checks": [asdict(check) for check in outcome.checks],
            }
            for outcome in examined
        ]
        output.write(json.dumps({"schema": _SCHEMA, "can_compare": possible, "workers": rows}, indent=2))
        return possible
    for outcome in examined:
        says = outcome.worker.obstacle or ("can measure" if outcome.can_measure else "cannot measure before what is MISSING is there")
        output.write(f"{outcome.worker}: {says}")
        output.write("\n".join([*(f"  {line}" for line in _rows(outcome.checks)), ""]))
    able = sum(outcome.can_measure for outcome in examined)
    output.write(f"perfdiff can measure on {able} of {len(examined)} workers.")
    return possible


def _json(checks: tuple[Check, ...], *, possible: bool) -> str:
    return json.dumps({"schema": _SCHEMA, "can_compare": possible, "checks": [asdict(check) for check in checks]}, indent=2)


def _ends(*, possible: bool, has_checkout: bool) -> str:
    if not possible:
        return "perfdiff cannot compare here before what is MISSING is there."
    return (
        "perfdiff can compare here."
        if has_checkout
        else "perfdiff can compare on this machine, and there is no checkout to compare in here."
    )


def _rows(checks: tuple[Check, ...]) -> Iterator[str]:
    width = max((len(check.name) for check in checks), default=0)
    for check in checks:
        mark = "ok     " if check.found else "MISSING" if check.needed else "without"
        first, *more = check.says.splitlines() or [""]
        yield f"{mark}  {check.name:<{width}}  {first}"
        yield from (f"{'':7}  {'':<{width}}  {line}" for line in more)
        if not check.found:
            yield f"{'':7}  {'':<{width}}  → {check.remedy}"
