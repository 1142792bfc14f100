"""`perfdiff predict FUNCTION[.METRIC] INPUT=VALUE…`: what a cost is at inputs that were not measured."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perfdiff import configuration
from perfdiff.cli import consequences, exits, options, output, requests, samples, saved, suggestions, waiting
from perfdiff.cli.options import TextOrJson
from perfdiff.errors import UsageError
from perfdiff.records.function_names import is_named, readings
from perfdiff.records.remote import place

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perfdiff.analysis.annotations.consequences import InUse
    from perfdiff.analysis.annotations.predicting import PredictedCosts
    from perfdiff.analysis.annotations.whatif import CostChange
    from perfdiff.models.annotation import Annotation
    from perfdiff.progress import Progress
    from perfdiff.records.recorded import RecordedExperiment
    from perfdiff.records.schema import FunctionInfo

app = options.application()

_HELP = """
Tell what a call, all calls of a function in a run, or a run as a whole costs at inputs that were not measured, in base and head.

By the last comparison, or --from an experiment that --save wrote, Freud's logs, or a file of annotations. Inputs are named as annotations
name them, or as the parameters of workloads. The metric is time unless one is named behind a dot.

\b
  perfdiff predict insert n=1e6
  perfdiff predict insert.alloc_bytes n=1e6 mode=FAST
  perfdiff predict insert --run n=1e6
  perfdiff predict insert 'n=LogNormal(1e4, 0.5)'
  perfdiff predict --run n=1e6
  perfdiff predict sort.time size=2e6 --from perf/annotations
  perfdiff predict --production collected/
"""

_TIME = "wall_ns"
_UNITS_NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
_NUMBER, _UNIT = r"\d+(?:\.\d+)?(?:e[+-]?\d+)?", "|".join(_UNITS_NS)
_CHANGE = re.compile(
    r"\s*(?P<cost>(?P<name>\S.*?)\.(?P<metric>time|own))\s*=\s*"
    rf"(?:(?P<number>{_NUMBER})(?:\s*\*\s*(?P<again>\S.*?)|\s*(?P<unit>{_UNIT}))|(?P<varying>[A-Z]\w*\(.*\)))\s*"
)
_TIME_OF_CALL = re.compile(rf"({_NUMBER})\s*({_UNIT})\b")
_RECORDED = (".bin", ".parquet")  # suffixes of files of recorded calls


_SUFFIXES = {".txt": TextOrJson.TEXT, ".json": TextOrJson.JSON}


@app.command(help=_HELP)
def predict(  # noqa: PLR0913, PLR0917 (each is an option of the command line)
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FUNCTION[.METRIC]] INPUT=VALUE…", autocompletion=suggestions.functions, help="What is asked for, and at which inputs."
        ),
    ] = None,
    of_run: Annotated[bool, typer.Option("--run", help="All calls in a run; without a function, the run as a whole.")] = False,
    source: Annotated[
        str | None, typer.Option("--from", metavar="SAMPLES | FILE", help="What to predict by, if not the last comparison.")
    ] = None,
    production: Annotated[
        Path | None,
        typer.Option(
            "--production", metavar="FOLDER", help="What head costs at the inputs that programs in use met, as `record` left them."
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="CHANGE",
            help="What if 'parse.time = 0.5 * parse.time', 'parse.own = 2ms' or 'parse.time = Norm(8ms, 1ms)' a call (may be repeated).",
        ),
    ] = None,
    workload: Annotated[
        str | None, typer.Option("--workload", metavar="NAME", autocompletion=suggestions.workloads, help="Only runs of this workload.")
    ] = None,
    form: Annotated[TextOrJson | None, typer.Option("--format", help="Format of the prediction.")] = None,
    output_file: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write it here; .json chooses the format.")
    ] = None,
    seed: options.Seed = None,
    config: options.ConfigFile = None,
    repository: options.Repository = Path(),
    cache: options.Cache = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Predict a cost on both sides."""
    with exits.exceptions_become_codes():
        chosen = options.report_format(form, output_file, _SUFFIXES)
        if output_file:
            output.check(output_file)
        if production is not None:
            if words or changes or of_run or workload:
                raise UsageError("--production weighs all that was compared: it takes no function, inputs or changes", slug="unknown-input")
            with waiting.progress(quiet=quiet, verbose=verbose) as progress:
                compared = _recorded(source, repository, options.cache_folder(cache), config, progress)
                costs = _in_use(production, compared, seed or 0, progress)
            from perfdiff.report import production as report_in_use

            output.deliver(report_in_use, None, costs, chosen, output_file, quiet=quiet)
            return
        wanted = _wanted(words or [], workload, changes or [], of_run=of_run)
        with waiting.progress(quiet=quiet, verbose=verbose) as progress:
            if source is not None and _holds_annotations(Path(source)):
                prediction = _by_file(Path(source), wanted, seed or 0)
            else:
                prediction = _by_recording(_recorded(source, repository, options.cache_folder(cache), config, progress), wanted, seed or 0)
        from perfdiff.report import prediction as report

        output.deliver(report, None, prediction, chosen, output_file, quiet=quiet)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the words of a command line ask for: the function with its metric, None for the run, and the inputs by name."""

    subject: str | None
    inputs: Mapping[str, str]
    workload: str | None
    of_run: bool
    changes: Sequence[str]


def _wanted(words: Sequence[str], workload: str | None, changes: Sequence[str], *, of_run: bool) -> _Wanted:
    subject = words[0] if words and "=" not in words[0] else None
    if subject is None and not of_run:
        raise UsageError(
            f"say of which function: `perfdiff predict FUNCTION {' '.join(words)}`, or --run for the run", slug="nothing-to-predict"
        )
    inputs: dict[str, str] = {}
    for word in words[1:] if subject else words:
        name, equals, value = word.rpartition("=")
        if not (name and equals and value):
            raise UsageError(f"'{word}' gives no input a value; write one such as n=1e6", slug="unknown-input")
        inputs[name] = value
    return _Wanted(subject, inputs, workload, of_run, changes)


def _holds_annotations(source: Path) -> bool:
    """Return whether a path is a file of annotations, not one of recorded calls."""
    return source.is_file() and source.suffix not in _RECORDED


def _recorded(source: str | None, repository: Path, cache: Path, config: Path | None, progress: Progress) -> RecordedExperiment:
    if source is not None:
        progress.stage("reading samples", None)
        return samples.load([place(source)])
    recorded = requests.last(repository, cache, config, progress).recorded
    if recorded is None:
        raise UsageError("the last comparison measured nothing, so nothing can be learnt from it", slug="nothing-to-predict")
    return recorded


def _in_use(production: Path, compared: RecordedExperiment, seed: int, progress: Progress) -> InUse:
    """Weigh a comparison by recordings in a folder; raise UsageError where these have nothing in common with it."""
    from perfdiff.analysis.annotations.production import in_use

    with consequences.recorded_in_use(production, seed, progress) as recorded:
        progress.stage("predicting", None)
        return in_use(compared, recorded, seed=seed)


def _by_recording(recorded: RecordedExperiment, wanted: _Wanted, seed: int) -> PredictedCosts:
    from perfdiff.analysis.annotations.predicting import PredictionRequest, predicted

    changes = tuple(_change(text, recorded) for text in wanted.changes)
    if wanted.subject is None:
        return predicted(recorded, PredictionRequest(None, _TIME, True, wanted.inputs, wanted.workload, changes), seed=seed)
    info, metric = _function(wanted.subject, recorded)
    if changes and (wanted.of_run or metric != _TIME):
        raise UsageError("--set tells what calls, or runs as a whole, would take: leave out --run or the metric", slug="nothing-to-predict")
    if wanted.of_run and metric not in (_TIME, "self_ns"):
        raise UsageError(f"of all calls in a run time is known, not {metric}", slug="unknown-metric")
    return predicted(recorded, PredictionRequest(info, metric, wanted.of_run, wanted.inputs, wanted.workload, changes), seed=seed)


def _by_file(file: Path, wanted: _Wanted, seed: int) -> PredictedCosts:
    from perfdiff.analysis.annotations.predicting import PredictionRequest, by_annotations

    rules = saved.load(file)
    if wanted.subject is None or wanted.of_run or wanted.changes or not isinstance(rules, list):
        raise UsageError("a file of annotations predicts calls of a function that it names", slug="nothing-to-predict")
    name, metric = _of_annotations(wanted.subject, rules)
    return by_annotations(rules, PredictionRequest(None, metric, False, wanted.inputs), name, seed=seed)


def _change(text: str, recorded: RecordedExperiment) -> CostChange:
    """Return the change that a text describes; raise UsageError where it describes none."""
    import numpy as np

    from perfdiff.analysis.annotations.whatif import CostChange
    from perfdiff.models import spread

    match = _CHANGE.fullmatch(text)
    if match is None or (match["again"] and match["again"] != match["cost"]):
        raise UsageError(
            f"'{text}' changes no cost; write one such as 'parse.time = 0.5 * parse.time' or 'parse.own = 2ms'", slug="unknown-change"
        )
    info, _ = _function(match["name"], recorded)
    if match["varying"]:
        in_ns = _TIME_OF_CALL.sub(lambda time: repr(float(time[1]) * _UNITS_NS[time[2]]), match["varying"])
        values = spread.values(in_ns, np.random.default_rng(0))
        if values is None:
            raise UsageError(f"'{match['varying']}' is not {spread.FORMS}; write one such as Norm(8ms, 1ms)", slug="unknown-change")
        return CostChange(info.id, ns=float(values.mean()), own=match["metric"] == "own", varies_ns=float(values.std()))
    value, own = float(match["number"]), match["metric"] == "own"
    if match["unit"]:
        return CostChange(info.id, ns=value * _UNITS_NS[match["unit"]], own=own)
    return CostChange(info.id, factor=value, own=own)


def _function(subject: str, recorded: RecordedExperiment) -> tuple[FunctionInfo, str]:
    """Return the measured function that a subject names, and the metric; raise UsageError where it names none, or several."""
    from perfdiff.analysis.annotations.subjects import named

    functions = recorded.experiment.functions
    meant, metric = named(subject, functions)
    if len(meant) == 1:
        return meant[0], metric
    if meant:
        places = ", ".join(f"{info.file}:{info.name}" for info in meant[:5])
        raise UsageError(f"'{subject}' names {len(meant)} functions: give one of {places}", slug="unknown-function")
    name = list(readings(subject))[-1][0]
    near = configuration.nearest(name, {info.name for info in functions})
    raise UsageError(f"'{name}' is no function with recorded calls{near}", slug="unknown-function")


def _of_annotations(subject: str, rules: Sequence[Annotation]) -> tuple[str, str]:
    """Return the function of a file of annotations that a subject names, and the metric; the first one of a name where none is said."""
    for name, metric in readings(subject):
        named = [rule for rule in rules if is_named(name, rule.function, "")]
        if named:
            return named[0].function, metric or (_TIME if any(rule.metric == _TIME for rule in named) else named[0].metric)
    near = configuration.nearest(subject, {rule.function for rule in rules})
    raise UsageError(f"'{subject}' is no function of the file{near}", slug="unknown-function")
