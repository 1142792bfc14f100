"""Groups of options that measuring commands share: a command takes a group as one parameter, and its fields are options of its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from perfdiff.cli import options, waiting

if TYPE_CHECKING:
    from perfdiff.deadline import Deadline
    from perfdiff.progress import Progress


@dataclass(frozen=True, slots=True)
class WorkloadOptions:
    """What is run, with which parameters and seed."""

    workload: options.Workloads = None
    param: options.Parameters = None
    setup: options.Setup = None
    prepare: options.Prepare = None
    seed: options.Seed = None


@dataclass(frozen=True, slots=True)
class Repeats:
    """How often it is run."""

    warmup: options.Warmup = None
    runs: options.Runs = None


@dataclass(frozen=True, slots=True)
class ProjectOptions:
    """Which project is built, how, where builds are kept, and what is told meanwhile."""

    build: options.Build = None
    config: options.ConfigFile = None
    repository: options.Repository = Path()
    cache: options.Cache = None
    quiet: options.Quiet = False
    verbose: options.Verbose = False

    @property
    def cache_folder(self) -> Path:
        """Return the folder of builds and recordings."""
        return options.cache_folder(self.cache)

    def progress(self, deadline: Deadline | None = None) -> AbstractContextManager[Progress]:
        """Show progress for the length of a `with` block, with the time that is left where one is limited."""
        return waiting.progress(quiet=self.quiet, verbose=self.verbose, deadline=deadline)


_GROUPS = (WorkloadOptions, Repeats, ProjectOptions)


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose parameters of a group's type are replaced by the group's fields, as Typer reads options off a signature."""
    taken, groups = [], {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        if parameter.annotation not in _GROUPS:
            taken.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = group = parameter.annotation
        hints = get_type_hints(group, include_extras=True)
        taken += [
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name])
            for field in fields(group)
        ]

    @wraps(command)
    def called(**given: Any) -> None:
        values = {name: group(**{field.name: given.pop(field.name) for field in fields(group)}) for name, group in groups.items()}
        command(**given, **values)

    called.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
    return called
