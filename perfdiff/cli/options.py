"""Options that several commands take, and what they stand for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from perfdiff import configuration
from perfdiff.cli import output, suggestions
from perfdiff.config import Config
from perfdiff.configuration import Overrides, settings
from perfdiff.configuration.checking import COMMAND_LINE, checked
from perfdiff.errors import UsageError

if TYPE_CHECKING:
    from perfdiff.revisions.lineage import RevisionRange


FormT = TypeVar("FormT")


class TextOrJson(StrEnum):
    """What an answer is written in, for people or for programs."""

    TEXT = "text"
    JSON = "json"


class Drawable(StrEnum):
    """What a result is written in that can be drawn."""

    TEXT = "text"
    JSON = "json"
    HTML = "html"
    SVG = "svg"
    PNG = "png"


class Format(StrEnum):
    """What a report is written in."""

    TEXT = "text"
    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"
    GITHUB = "github"
    OPENMETRICS = "openmetrics"
    FOLDED = "folded"
    FOLDED_BASE = "folded-base"
    FOLDED_HEAD = "folded-head"
    SPEEDSCOPE = "speedscope"
    PPROF = "pprof"
    FIREFOX = "firefox"


SUFFIXES = {
    ".txt": Format.TEXT,
    ".md": Format.MARKDOWN,
    ".markdown": Format.MARKDOWN,
    ".html": Format.HTML,
    ".htm": Format.HTML,
    ".json": Format.JSON,
    ".sarif": Format.SARIF,
    ".xml": Format.JUNIT,
    ".prom": Format.OPENMETRICS,
    ".folded": Format.FOLDED,
    ".base.folded": Format.FOLDED_BASE,
    ".head.folded": Format.FOLDED_HEAD,
    ".speedscope.json": Format.SPEEDSCOPE,
    ".pb.gz": Format.PPROF,
    ".firefox.json": Format.FIREFOX,
}

Repository = Annotated[
    Path, typer.Option("--repo", metavar="DIR", help="The checkout to compare in, if not the current folder.", show_default=False)
]
Cache = Annotated[Path | None, typer.Option("--cache", metavar="DIR", help="Keep builds and recordings here, not in ~/.cache/perfdiff.")]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Read this configuration, not the nearest perfdiff.toml.")
]
Build = Annotated[str | None, typer.Option("--build", metavar="COMMAND", help="Build each revision with this shell command.")]
Workloads = Annotated[
    list[str] | None,
    typer.Option("--workload", metavar="NAME", autocompletion=suggestions.workloads, help="Run only this workload (may be repeated)."),
]
Parameters = Annotated[
    list[str] | None, typer.Option("-p", "--param", metavar="NAME=V,V,…", help="Values for {NAME} in a command (may be repeated).")
]
Setup = Annotated[
    str | None,
    typer.Option(
        "--setup", metavar="COMMAND", help="Run this in the tree once before the runs of a point; they find what it leaves there."
    ),
]
Prepare = Annotated[
    str | None, typer.Option("--prepare", metavar="COMMAND", help="Run this in the tree before each run; its time does not count.")
]
Warmup = Annotated[int | None, typer.Option("--warmup", metavar="N", help="Number of first runs of each side at each point to throw away.")]
Runs = Annotated[
    int | None, typer.Option("--runs", metavar="N", help="Most runs with probes of each side at each point; at least 4 to judge by them.")
]
Seed = Annotated[int | None, typer.Option("--seed", metavar="N", help="Seed of all random choices.")]
Outputs = Annotated[
    list[Path] | None,
    typer.Option("-o", "--output", metavar="FILE", help="Write the report here; its suffix chooses the format (may be repeated)."),
]
Drawn = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE", help="Write the result here; .json, .html, .svg, .png choose the form."),
]
ReportFormat = Annotated[Format | None, typer.Option("--format", help="Format of the report.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 4 if the answer is inconclusive.")]
Save = Annotated[
    str | None,
    typer.Option(
        "--save",
        metavar="FOLDER",
        help="Keep the recorded calls in this folder, or at a URL, for `perfdiff compare` and `annotate` on any machine.",
    ),
]
Tags = Annotated[bool, typer.Option("--tags", help="Only revisions with a tag, of the history of HEAD.")]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="REV", autocompletion=suggestions.revisions, help="Only revisions since this one, itself included."),
]
Most = Annotated[int, typer.Option("--most", metavar="N", min=2, help="Use at most this many revisions of a range, spread evenly over it.")]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        envvar="PERFDIFF_CLUSTER",
        help="Measure and analyse on the workers of this Dask scheduler, such as tcp://lab1:8786.",
    ),
]
Production = Annotated[
    Path | None,
    typer.Option(
        "--production",
        metavar="FOLDER",
        help="Tell what head costs at the inputs that programs in use met, as `perfdiff record` left them in this folder.",
    ),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")]
Full = Annotated[bool, typer.Option("--full", help="Show all of the report on the terminal, not only what fits a page of 60 lines.")]
Fast = Annotated[
    bool, typer.Option("--fast", help="End with whole runs, once they show that head is slower or is not: which function is not asked.")
]
Thorough = Annotated[
    bool, typer.Option("--thorough", help="Run with probes even if whole runs and exact counts already show that nothing is slower.")
]
Time = Annotated[
    str | None,
    typer.Option("--time", metavar="TIME", help="Answer within this time, builds included: 90s, 2m, 1h; the most telling evidence first."),
]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Report every step.")]


MOST_REVISIONS = 20
KEEP = Path("perfdiff-inputs")  # inputs that a search finds
LARGEST_INPUT = "64k"
GROWTH = "growth"  # what `log` and `bisect` follow, beside metrics, by counts of lines


def application(**settings: Any) -> typer.Typer:
    """Return a Typer application with what all commands have in common: plain help, also by `-h`."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]}, **settings)


def cache_folder(given: Path | None) -> Path:
    """Return the cache: as given, else `$PERFDIFF_CACHE`, else `perfdiff` in the user's cache folder."""
    from perfdiff.build import holdings

    return given.absolute() if given else holdings.folder(os.environ)


def report_format(given: FormT | None, output: Path | None, suffixes: Mapping[str, FormT]) -> FormT:
    """Return the format asked for, or the one that the output's longest suffix names, text without either; `UsageError` where none does."""
    if given or output is None:
        return given or suffixes[".txt"]
    endings = [suffix for suffix in suffixes if output.name.lower().endswith(suffix)]
    if not endings:
        raise UsageError(
            f"'{output}' does not say which format it wants: give --format or one of {', '.join(suffixes)}", slug="format-unknown"
        )
    return suffixes[max(endings, key=len)]


def parameters(given: list[str] | None) -> dict[str, tuple[float | str, ...]]:
    """Return the values of each `NAME=V,V,…`."""
    named: dict[str, tuple[float | str, ...]] = {}
    for text in given or ():
        name, equals, values = text.partition("=")
        named[name.strip()] = settings.parameter_values(values)
        if not name.strip() or not equals or not named[name.strip()]:
            raise UsageError(f"--param '{text}' must be written NAME=VALUE,VALUE,…, such as n=1000,3000", slug="param-syntax")
    return named


def wanted(words: list[str] | None, *, since: str | None, tags: bool, most: int) -> RevisionRange:
    """Return which revisions a history goes through."""
    from perfdiff.revisions.lineage import RevisionRange

    return RevisionRange(tuple(words or ()), since, tags, most)


def configured(directory: Path, overrides: Overrides) -> Config:
    """Return the configuration that holds in `directory`, as the command line overrides it; what to measure it need not say."""
    return configuration.load(directory.absolute(), overrides=overrides, environment=os.environ, measuring=False)


def check_metric(metric: str | None, metrics: Iterable[str] | None = None) -> None:
    """Raise UsageError where a metric or counter is none of `metrics`, of all where these are not given."""
    from perfdiff.records.metrics import METRICS

    names = tuple(metrics or METRICS)
    if metric is not None and metric not in names:
        raise UsageError(
            f"there is no metric '{metric}'; there are {', '.join(names)}{configuration.nearest(metric, names)}", slug="unknown-metric"
        )


def chosen_metrics(names: Sequence[str]) -> tuple[str, ...]:
    """Return the metrics to annotate, `all` of them or those named, none for the usual ones; raise UsageError where one is unknown."""
    from perfdiff.records.metrics import METRICS

    of_calls = tuple(name for name, metric in METRICS.items() if metric.per_call)
    for name in names:
        if name != "all":
            check_metric(name, of_calls)
    return of_calls if "all" in names else tuple(dict.fromkeys(names))


def asks_counts(metrics: Sequence[str]) -> bool:
    """Return whether metrics are named that counted runs alone have."""
    from perfdiff.records.metrics import COUNTED

    return not set(metrics).isdisjoint(COUNTED)


def drawable(given: Drawable | None, output_file: Path | None) -> Drawable:
    """Return the form asked for, or that of the output's suffix; raise UsageError where it cannot be written there."""
    if output_file:
        output.check(output_file)
    suffix = output_file.suffix.lower().removeprefix(".") if output_file else ""
    chosen = given or (Drawable(suffix) if suffix in list(Drawable) else Drawable.TEXT)
    if chosen is Drawable.PNG and output_file is None:
        raise UsageError("a PNG cannot be shown here; name a file with -o", slug="format-unknown")
    return chosen


def seconds(text: str, option: str) -> float:
    """Return the seconds that a text of an option says; raise ConfigError where it is no time."""
    time_s: float = checked(settings.parse(settings.TIME, text), settings.TIME, COMMAND_LINE, option)
    return time_s


def size(text: str, option: str) -> int:
    """Return the bytes that a text of an option says; raise ConfigError where it is no size."""
    largest: int = checked(settings.parse(settings.SIZE, text), settings.SIZE, COMMAND_LINE, option)
    return largest
