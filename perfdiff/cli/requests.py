"""What a command line asks of the pipeline: its words and options as a request; and what was compared last."""

from __future__ import annotations

import os
import shlex
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from perfdiff import configuration
from perfdiff.cli import groups, options
from perfdiff.config import PLACE, RUNS_FOR_TIME, Config
from perfdiff.configuration import Overrides
from perfdiff.languages.installed import installed
from perfdiff.progress import Progress

if TYPE_CHECKING:
    from perfdiff.outcome import Outcome
    from perfdiff.request import Request


def warn_of_few_runs(asked: Request, progress: Progress) -> None:
    """Say it before anything is measured where no workload has the runs that a verdict on the time of calls needs."""
    runs = max(workload.runs for workload in asked.config.workloads)
    if runs < RUNS_FOR_TIME:
        others = "whole runs and counts are" if asked.config.counters.software else "whole runs are"
        needed = f"are too few for a verdict on the time of single calls, which needs at least {RUNS_FOR_TIME}"
        progress.note(f"{runs} runs with probes a side {needed}; {others} compared all the same")


def request(revisions: tuple[str, ...], project: groups.ProjectOptions, overrides: Overrides, progress: Progress) -> Request:
    """Return the pipeline's request, with the configuration of the project's folder."""
    from perfdiff.revisions.repository import find_repository

    directory = project.repository
    repository = find_repository(directory)  # outside of one, no configuration is worth mending
    changed = partial(repository.changed, revisions)
    config = configuration.load(directory.absolute(), overrides=overrides, environment=os.environ, changed=changed)
    if config.build_guessed_from:
        progress.note(_guess(config))
    from perfdiff.request import Request

    place = configuration.project(directory.absolute(), overrides.file)
    return Request(place, revisions, config, project.cache_folder, users_environment())


def users_environment() -> dict[str, str]:
    """Return the environment that builds and workloads get: without the variable that threadpoolctl sets where it is imported."""
    environment = dict(os.environ)
    import_module("threadpoolctl")
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    return environment


def _guess(config: Config) -> str:
    """Say what no file says, and where it may be said; `perfdiff init` writes no file where one is there."""
    origin, has_file = config.build_guessed_from, config.source is not None
    change = "[build] and [{}] say otherwise" if has_file else "`perfdiff init` writes down what can be changed"
    unbuilt = (traits for traits in installed() if traits.name in config.languages and traits.unbuilt)
    if not config.build.command and (language := next(unbuilt, None)):
        return f"a {language.title} project, as {origin} tells: {language.unbuilt}; {change.format(language.name)}"
    how = "[build] command says otherwise" if has_file else "`perfdiff init` writes it down to be changed"
    return f"building with '{config.build.command}', guessed from {origin}; {how}"


def overridden(
    context: typer.Context, project: groups.ProjectOptions, workloads: groups.WorkloadOptions, repeats: groups.Repeats | None = None
) -> Overrides:
    """Return the settings that a measuring command's options override in the configuration."""
    return Overrides(
        file=project.config,
        build=project.build,
        command=command_text(context.obj or []),
        workloads=tuple(workloads.workload or ()),
        parameters=options.parameters(workloads.param),
        setup=workloads.setup,
        prepare=workloads.prepare,
        warmup=repeats.warmup if repeats else None,
        runs=repeats.runs if repeats else None,
        seed=workloads.seed,
    )


def command_text(words: list[str]) -> str | None:
    """Return the words behind `--` as one shell command whose `{parameter}` places stay bare; a single word is a command already."""
    if len(words) < 2:
        return words[0] if words else None
    return " ".join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    parts = PLACE.split(word)
    # Every second part is the name of a place.
    return "".join(f"{{{part}}}" if index % 2 else part and shlex.quote(part) for index, part in enumerate(parts)) or "''"


def last(directory: Path, cache: Path, file: Path | None, progress: Progress) -> Outcome:
    """Return the last comparison of the repository at `directory`, with known costs as they were found."""
    from perfdiff import outcome

    config = options.configured(directory, Overrides(file=file))
    return outcome.last(directory.absolute(), cache, config, progress)
