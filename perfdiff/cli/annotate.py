"""`perfdiff annotate [REV] [-- COMMAND…]`: how the cost of each function follows from its inputs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perfdiff import configuration
from perfdiff.cli import exits, groups, options, output, recordings, requests, samples, suggestions
from perfdiff.errors import UsageError
from perfdiff.records.function_names import is_named

if TYPE_CHECKING:
    from perfdiff.analysis.annotations.selections import Selections
    from perfdiff.models.annotation import Annotation
    from perfdiff.records.recorded import RecordedExperiment, Samples
    from perfdiff.records.schema import FunctionInfo, SampleTable, Side

    Learnt = tuple[FunctionInfo, SampleTable, tuple[Annotation, ...]]

app = options.application()

_HELP = """
Learn how the cost of each function follows from its inputs, and print it in the language of performance annotations.

Annotate a revision (by default the working tree), which is built with probes and run; or samples: an experiment's folder or URL, as
--save writes it, or Freud's binary logs (idcm_*.bin) or a folder of them.

\b
  perfdiff annotate v1.2 --param n=1000,3000,10000 -- ./bench/sort {n}
  perfdiff annotate lab/v1 --function insert --plots plots/
  perfdiff annotate idcm_f_1.bin idcm_f_2.bin --format json
"""


_LONGEST_NAME = 150  # of a plot's file; file systems take 255 bytes


class AnnotationForm(StrEnum):
    """The forms in which annotations are written."""

    TEXT = "text"
    JSON = "json"
    HOTCLOUD = "hotcloud"


class _Chosen(StrEnum):
    """The side of an experiment that is annotated."""

    BASE = "base"
    HEAD = "head"


@app.command(help=_HELP)
@groups.expanded
def annotate(  # noqa: PLR0913, PLR0917 (each is an option of the command line)
    context: typer.Context,
    subjects: Annotated[
        list[str] | None,
        typer.Argument(metavar="REV | SAMPLES", autocompletion=suggestions.revisions, help="A revision, or recorded calls."),
    ] = None,
    output_file: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the annotations here.")] = None,
    form: Annotated[AnnotationForm, typer.Option("--format", help="Form of the annotations.")] = AnnotationForm.TEXT,
    plots: Annotated[Path | None, typer.Option("--plots", metavar="FOLDER", help="Draw each annotation as an SVG in this folder.")] = None,
    metric: Annotated[
        list[str] | None, typer.Option("--metric", metavar="NAME", help="Annotate this metric (may be repeated), or `all`.")
    ] = None,
    function: Annotated[
        list[str] | None,
        typer.Option(
            "--function", metavar="NAME", autocompletion=suggestions.functions, help="Annotate only this function (may be repeated)."
        ),
    ] = None,
    side: Annotated[_Chosen | None, typer.Option("--side", help="Which side to use of an experiment with two sides.")] = None,
    save: options.Save = None,
    logs: Annotated[
        Path | None, typer.Option("--logs", metavar="FOLDER", help="Write the calls to this folder as Freud's binary logs.")
    ] = None,
    freud: Annotated[
        Path | None, typer.Option("--freud", metavar="FOLDER", help="Write the annotations to this folder as Freud's, a file a function.")
    ] = None,
    *,
    workloads: groups.WorkloadOptions,
    repeats: groups.Repeats,
    project: groups.ProjectOptions,
) -> None:
    """Annotate a revision or samples."""
    with exits.exceptions_become_codes():
        metrics = options.chosen_metrics(metric or [])
        if save:
            samples.check(save)
        for folder in filter(None, (plots, logs, freud)):
            output.make_folder(folder)
        if output_file:
            output.check(output_file)
        overrides = requests.overridden(context, project, workloads, repeats)
        with project.progress() as progress:
            counts = options.asks_counts(metric or [])
            recorded = recordings.of_words(subjects or [], project, overrides, progress, counts=counts)
            chosen = _side(recorded, side)
            own_seed = options.configured(project.repository, overrides).compare.seed
            from perfdiff.report.printable import printable

            progress.stage("annotating", len(recorded.experiment.functions))
            learnt: list[Annotation] = []
            selections: list[Selections] = []
            for info, table, annotations in _learnt(recorded, chosen, function or [], metrics, own_seed):
                learnt += annotations
                if form is not AnnotationForm.TEXT:
                    selections += _selections(annotations, table)
                if plots:
                    _draw(annotations, table, plots)
                progress.advance(printable(info.name))
        output.write(_written(learnt, selections, form), output_file)
        if save:
            samples.save(save, recorded)
        if logs:
            samples.export(logs, recorded, chosen)
        if freud:
            _write_freuds(learnt, freud)
        output.tell(_answer(learnt), output_file, quiet=project.quiet)


def _side(recorded: RecordedExperiment, chosen: _Chosen | None) -> Side:
    """Return the side to annotate: the one asked for, else base's, else the only one."""
    from perfdiff.records.schema import Side

    wanted = Side(chosen.value) if chosen else recorded.sides[0]
    if wanted not in recorded.sides:
        raise UsageError(f"nothing was recorded of {wanted}; these samples are of {recorded.sides[0]} alone", slug="samples-missing")
    return wanted


def _learnt(recorded: RecordedExperiment, side: Side, named: Sequence[str], metrics: Sequence[str], seed: int) -> Iterator[Learnt]:
    """Yield the annotations of each function with the calls that they were learnt from; many are learnt side by side."""
    from perfdiff.engines.tables import chosen, with_tables
    from perfdiff.records.metrics import COUNTED
    from perfdiff.records.recorded import nothing

    timed = tuple(name for name in metrics if name not in COUNTED)
    counted = tuple(name for name in metrics if name in COUNTED)
    functions = _functions(recorded, named)
    engine = chosen(None, len(functions))
    batches = [[info.id] for info in functions]
    samples = with_tables(engine, batches, recorded.samples if timed or not metrics else nothing)
    counts = with_tables(engine, batches, recorded.counts if counted else nothing)
    for learnt in engine.map(_learnt_of, zip(functions, samples, counts, strict=True), side, timed, counted, seed):
        yield from learnt


def _learnt_of(
    item: tuple[FunctionInfo, Samples, Samples], side: Side, timed: Sequence[str], counted: Sequence[str], seed: int
) -> list[Learnt]:
    """Return the annotations of one function's metrics, those that are timed and those that counted runs alone have."""
    from perfdiff.analysis.annotations.annotating import MOST_ROWS, annotate
    from perfdiff.analysis.stats.rows import thinned

    info, samples, counts = item
    learnt: list[Learnt] = []
    for load, wanted in ((samples, timed), (counts, counted)):
        table = load(info.id, side)
        if table is not None and len(table):
            some = thinned(table, MOST_ROWS)
            learnt.append((info, some, tuple(annotate(info.name, some, wanted, seed=seed))))
    return learnt


def _selections(annotations: Sequence[Annotation], table: SampleTable) -> Iterator[Selections]:
    """Yield what the HotCloud paper's method selects for the same calls, beside each annotation."""
    from perfdiff.analysis.annotations.selections import side_by_side

    return (side_by_side(annotation, table) for annotation in annotations)


def _functions(recorded: RecordedExperiment, named: Sequence[str]) -> list[FunctionInfo]:
    """Return the functions asked for, or all; raise UsageError where a name means none."""
    functions = recorded.experiment.functions
    for name in named:
        if not any(is_named(name, info.name, info.file) for info in functions):
            names = {info.name for info in functions}
            skipped = [f"; {skip.name} was not measured: {skip.reason}" for skip in recorded.experiment.skipped if skip.name == name]
            raise UsageError(
                f"'{name}' is no function with recorded calls{''.join(skipped[:1])}{configuration.nearest(name, names)}",
                slug="unknown-function",
            )
    return [info for info in functions if not named or any(is_named(name, info.name, info.file) for name in named)]


def _draw(annotations: Sequence[Annotation], table: SampleTable, folder: Path) -> None:
    """Draw each annotation of a function to a file of its own, told apart by the function's number."""
    from perfdiff.report.annotation_plots import draw

    for annotation in annotations:
        name = re.sub(r"[^A-Za-z0-9_.-]+", "_", f"{annotation.function}-{annotation.metric}")[-_LONGEST_NAME:]
        output.write(draw(annotation, table), folder / f"{table.function}-{name}.svg")


def _write_freuds(learnt: Sequence[Annotation], folder: Path) -> None:
    """Write each function's annotations as Freud's program reads them, to a file of its name; those that it cannot hold are left out."""
    from perfdiff.models.freud_text import print_freuds

    functions: dict[str, list[Annotation]] = {}
    for annotation in learnt:
        functions.setdefault(annotation.function, []).append(annotation)
    for function, of_function in functions.items():
        text = print_freuds(of_function)
        if text:
            output.write(text, folder / f"{function.replace('/', '_')[-_LONGEST_NAME:]}.txt")


def _answer(learnt: Sequence[Annotation]) -> str:
    from perfdiff.report import annotations as language

    return language.answer(learnt)


def _written(learnt: Sequence[Annotation], selections: Sequence[Selections], form: AnnotationForm) -> str:
    from perfdiff.report import annotations as language
    from perfdiff.report import hotcloud
    from perfdiff.report.json_text import json_text

    match form:
        case AnnotationForm.JSON:
            return json_text(language.json_document(learnt, selections))
        case AnnotationForm.HOTCLOUD:
            return hotcloud.text(selections)
        case _:
            return language.text(learnt)
