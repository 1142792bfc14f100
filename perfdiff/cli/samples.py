"""Samples on the command line: which ones a path or URL means, an experiment's folder or Freud's logs, and saving them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perfdiff.errors import StoreError, UsageError
from perfdiff.records.remote import Folder, Remote, place

if TYPE_CHECKING:
    from perfdiff.engines.engine import Engine
    from perfdiff.records.recorded import RecordedExperiment, Samples
    from perfdiff.records.schema import Experiment, SampleTable, Side

_LOGS = "idcm_*.bin"
_EXPERIMENT = "experiment.json"


def is_samples(path: Folder) -> bool:
    """Return whether a path names samples and no revision: a file, a URL, or a folder that holds an experiment or logs."""
    return isinstance(path, Remote) or path.is_file() or (path.is_dir() and (_is_experiment(path) or any(path.rglob(_LOGS))))


def load(paths: Sequence[Folder], engine: Engine | None = None) -> RecordedExperiment:
    """Return the samples of one version, or an experiment as a whole; raise UsageError where there are none."""
    from perfdiff.condensing import condensed
    from perfdiff.records import log_experiment, recorded
    from perfdiff.records.schema import Side

    _require_reachable(paths)
    if len(paths) == 1 and (isinstance(paths[0], Remote) or _is_experiment(paths[0])):
        return condensed(paths[0], engine)
    if len(paths) == 1 and _is_experiment(paths[0].parent.parent):
        return _only(recorded.load(paths[0].parent.parent), paths[0])
    return log_experiment.from_logs({Side.BASE: _logs(paths)})


def load_pair(base: Folder, head: Folder) -> RecordedExperiment:
    """Return base's samples against head's; one experiment given twice is taken as it is."""
    from perfdiff.condensing import condensed
    from perfdiff.records import log_experiment, pairing
    from perfdiff.records.schema import Side

    _require_reachable((base, head))
    kinds = {isinstance(folder, Remote) or _is_experiment(folder) for folder in (base, head)}
    if len(kinds) > 1:
        raise UsageError("samples of perfdiff cannot be compared with logs: give two folders of one kind", slug="samples-apart")
    if kinds == {False}:
        return log_experiment.from_logs({Side.BASE: _logs([base]), Side.HEAD: _logs([head])})
    if _is_same(base, head):
        recorded = condensed(base)
        if len(recorded.sides) > 1:
            return recorded
        raise UsageError(f"'{base}' was recorded of one version alone; give the samples of another one, too", slug="samples-missing")
    return pairing.paired(condensed(base), condensed(head))


def profiles(base: Folder, head: Folder) -> RecordedExperiment | None:
    """Return base's profile by sampling against head's, None where the paths are none; raise UsageError where one alone is."""
    from perfdiff.records.sampled import reading, sides
    from perfdiff.records.schema import Side

    paths = {side: path for side, path in zip(Side, (base, head), strict=True) if isinstance(path, Path) and not _is_experiment(path)}
    sampled = {side: path for side, path in paths.items() if reading.holds_profiles(path)}
    if not sampled:
        return None
    if len(sampled) < len(Side):
        raise UsageError("a profile can only be compared with a profile: give two of one form", slug="samples-apart")
    names = {Side.BASE: str(base), Side.HEAD: str(head)}
    return sides.from_profiles({side: reading.read_side(path) for side, path in sampled.items()}, names)


def are_results(base: Folder, head: Folder) -> bool:
    """Return whether two paths hold what other tools measured; raise UsageError where one of them does not."""
    from perfdiff.records.results import reading

    kinds = [isinstance(path, Path) and not _is_experiment(path) and reading.holds_results(path) for path in (base, head)]
    if any(kinds) and not all(kinds):
        raise UsageError("results of another tool cannot be compared with samples: give two of one kind", slug="samples-apart")
    return all(kinds)


def results(base: Folder, head: Folder) -> RecordedExperiment:
    """Return base's results of another tool against head's."""
    from perfdiff.records.results import experiment, reading
    from perfdiff.records.schema import Side

    paths = dict(zip(Side, (base, head), strict=True))
    sides = {side: reading.read_side(path) for side, path in paths.items() if isinstance(path, Path)}
    return experiment.from_results(sides, {side: str(path) for side, path in paths.items()})


def _require_reachable(paths: Sequence[Folder]) -> None:
    """Raise UsageError where there is no experiment behind a URL, or the store does not say."""
    for path in paths:
        try:
            if isinstance(path, Remote) and not _is_experiment(path):
                raise UsageError(f"'{path}' holds no samples: name the URL that --save was given", slug="samples-missing")
        except OSError as error:
            raise UsageError(f"'{path}' cannot be read: {error.strerror or error}", slug="url-failed") from error


def _is_same(base: Folder, head: Folder) -> bool:
    if isinstance(base, Remote) or isinstance(head, Remote):
        return base == head
    return base.samefile(head)


def check(folder: str) -> None:
    """Raise UsageError where samples must not be saved, before time is spent on measuring: what is in the way is not removed."""
    where = place(folder)
    try:
        in_the_way = where.exists() and not _is_experiment(where)
        if isinstance(where, Remote) and not in_the_way:
            where.require_writable()
    except OSError as error:
        raise _unsaved(folder, error) from error
    if in_the_way:
        raise UsageError(f"samples cannot be saved to '{folder}', which is there already; name a new folder", slug="samples-in-the-way")


def _unsaved(folder: str | Path, error: OSError) -> UsageError:
    slug = "url-failed" if isinstance(place(folder), Remote) else "output-unwritable"
    return UsageError(f"samples cannot be saved to '{folder}': {error.strerror or error}", slug=slug)


def save(folder: str | Path, recorded: RecordedExperiment) -> None:
    """Save what was recorded to a folder or URL that can be read on any machine; raise UsageError where it cannot be written.

    Behind a URL tables are in parts, which many may read at a time.
    """
    from perfdiff.records import store

    check(str(folder))
    where = place(folder)
    try:
        samples, counts = (_tables(recorded.experiment, load) for load in (recorded.samples, recorded.counts))
        parts = store.PART_ROWS if isinstance(where, Remote) else None
        target = where if isinstance(where, Remote) else where.absolute()
        store.save(target, recorded.experiment, samples, counts, recorded.lines(), part_rows=parts)
    except StoreError as error:
        if not isinstance(error.__cause__, OSError):
            raise
        raise _unsaved(folder, error.__cause__) from error


def _tables(experiment: Experiment, load: Samples) -> Iterator[SampleTable]:
    from perfdiff.records.schema import Side

    for info in experiment.functions:
        for side in Side:
            table = load(info.id, side)
            if table is not None:
                yield table


def export(folder: Path, recorded: RecordedExperiment, side: Side) -> None:
    """Write one side's calls as Freud's logs."""
    from perfdiff.records import log_experiment

    log_experiment.to_logs(recorded, side, folder)


def _only(recorded: RecordedExperiment, table: Folder) -> RecordedExperiment:
    """Return the function and the side of an experiment that the name of a table stands for, such as `samples/7-base.parquet`."""
    number, _, side = table.name.removesuffix(".parquet").partition("-")
    functions = tuple(info for info in recorded.experiment.functions if str(info.id) == number)
    runs = tuple(run for run in recorded.experiment.runs if run.side == side)
    if not functions or not runs:
        raise UsageError(
            f"'{table}' is no table of its experiment; name one of {table.parent}, or the whole folder", slug="samples-missing"
        )
    return replace(recorded, experiment=replace(recorded.experiment, functions=functions, runs=runs))


def _is_experiment(path: Folder) -> bool:
    return (path / _EXPERIMENT).is_file()


def _logs(paths: Iterable[Folder]) -> list[Path]:
    """Return the logs that paths name, in the order of the numbers in their names."""
    logs = []
    for path in paths:
        if isinstance(path, Remote):
            raise UsageError(f"'{path}' is no experiment; logs are read from folders of this machine", slug="samples-missing")
        files = sorted(path.rglob(_LOGS), key=_natural) if path.is_dir() else [path]
        if not files or not path.exists():
            raise UsageError(
                f"'{path}' holds no samples: name an experiment's folder, or logs such as idcm_f_1.bin", slug="samples-missing"
            )
        logs += files
    return logs


def _natural(path: Path) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", str(path))]
