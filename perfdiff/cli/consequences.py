"""What a comparison means by the budgets that are configured, and by recordings of programs in use, on the command line."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from perfdiff import temporary
from perfdiff.cli import exits, fleet, options, samples
from perfdiff.configuration import Overrides
from perfdiff.errors import RecordingError, UsageError
from perfdiff.records.remote import place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from perfdiff.outcome import Outcome
    from perfdiff.progress import Progress
    from perfdiff.records.recorded import RecordedExperiment


def check(production: Path | None) -> None:
    """Raise UsageError where there is no folder of recordings in use, before the time for a comparison is spent."""
    if production is not None and not production.is_dir():
        raise UsageError(f"'{production}' is no folder: name what `perfdiff record --to` wrote", slug="samples-missing")


def drawn(outcome: Outcome, directory: Path, overrides: Overrides, production: Path | None, progress: Progress) -> Outcome:
    """Return an outcome with what it means by the budgets that hold in `directory`, and by the recordings in a folder."""
    config = options.configured(directory, Overrides(file=overrides.file))
    if not config.budgets and production is None:
        return outcome
    from perfdiff.analysis.annotations.budgets import consequences

    seed = config.compare.seed if overrides.seed is None else overrides.seed
    try:
        with recorded_in_use(production, seed, progress) if production else nullcontext() as recorded:
            progress.stage("predicting", None)
            return replace(outcome, consequences=consequences(outcome.recorded, config.budgets, recorded, seed=seed))
    except (RecordingError, UsageError) as error:  # of the recordings in use: what was compared stands all the same
        without = consequences(outcome.recorded, config.budgets, None, seed=seed)
        return replace(outcome, consequences=replace(without, unweighed=str(error)))


@contextmanager
def recorded_in_use(production: Path, seed: int, progress: Progress) -> Iterator[RecordedExperiment]:
    """Yield the recordings in a folder as one experiment, which exists while the caller uses it."""
    with temporary.folder() as room:
        if fleet.is_fleet([production]):
            yield fleet.of_one_version(production, room, seed, progress)
        else:
            yield samples.load([place(str(production))])


def exit_code(outcome: Outcome, *, strict: bool) -> exits.ExitCode:
    """Return the exit code of a comparison with its budgets, memory where it is asked, and what a search found, as bad as a regression."""
    from perfdiff.analysis.annotations.consequences import BudgetStanding

    budgets, memory = outcome.consequences, outcome.findings.memory
    verdicts: list[str] = [outcome.findings.verdict, *([outcome.inputs.verdict] if outcome.inputs else [])]
    if memory is not None and memory.decides:
        verdicts.append({"more": "regression", "open": "inconclusive"}.get(memory.standing, "unchanged"))
    if (budgets and budgets.some(BudgetStanding.EXCEEDED)) or "regression" in verdicts:
        return exits.ExitCode.REGRESSION
    is_open = "inconclusive" in verdicts or (budgets and budgets.some(BudgetStanding.OPEN, BudgetStanding.UNKNOWN))
    return exits.ExitCode.INCONCLUSIVE if is_open and strict else exits.ExitCode.FINE
