"""What a project is written in, as its configuration, its files and the commands of its workloads tell, and how it is built."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from perfdiff.config import ServiceConfig, WorkloadConfig
from perfdiff.configuration import buildsystem
from perfdiff.configuration.buildsystem import BuildSystem
from perfdiff.languages.frameworks import frameworks
from perfdiff.languages.installed import installed, loaded
from perfdiff.languages.traits import Traits


@dataclass(frozen=True, slots=True)
class Draft:
    """What `perfdiff init` writes for a project of a language: its `section`, and the command of a `workload`.

    `unbuilt` are a comment and the command of `[build]` where the project needs none. `is_guessed`: the workload runs what the project has.
    """

    section: str
    workload: str
    unbuilt: tuple[str, str] | None = None
    is_guessed: bool = False


class ProjectKind(Protocol):
    """How projects of a language are recognised. `leads`: its files alone say whose a project is, whatever else is in it.

    `needs_build` says whether nothing of it runs before something built it.
    """

    leads: bool
    needs_build: bool

    def recognise(self, folder: Path, commands: Sequence[str], *, is_led: bool) -> str | None:
        """Return what tells a project in `folder`: a file's name, or one of the `commands` of its workloads; None where nothing does.

        A project that `is_led` has files of a language that leads.
        """
        ...

    def is_ready(self, folder: Path, sign: str | None, commands: Sequence[str], others: Sequence[ProjectKind]) -> bool:
        """Return whether a project runs without a build command; `sign` is what `recognise` returned, `others` are its other languages."""
        ...

    def build_system(self, folder: Path, *, named: bool = False) -> BuildSystem | None:
        """Return how a project is built; with `named`, only where a build system of the language's own has a file there."""
        ...

    def draft(self, folder: Path, sign: str) -> Draft:
        """Return the configuration that `perfdiff init` writes for a project, which was recognised by the file `sign`."""
        ...


@dataclass(frozen=True, slots=True)
class Recognised:
    """A language that a project is written in: what makes the value of its section, and how projects of it are recognised."""

    settings: Callable[..., object]
    kind: ProjectKind


@dataclass(frozen=True, slots=True)
class Programs:
    """The languages of a project's programs by name, what tells them, and whether they run without a build command."""

    languages: Mapping[str, Recognised]
    sign: str | None
    is_ready: bool

    def build_system(self, tree: Path) -> BuildSystem | None:
        """Return the build system of a tree; one of a language's own goes first, a compiler of loose sources last."""
        kinds = [language.kind for language in self.languages.values()]
        own = (kind.build_system(tree, named=True) for kind in kinds)
        loose = (kind.build_system(tree) for kind in kinds)
        return next(filter(None, own), None) or buildsystem.detect(tree) or next(filter(None, loose), None)


@functools.cache
def kinds() -> tuple[tuple[Traits, ProjectKind], ...]:
    """Return the languages whose projects are recognised, and how, in their order."""
    return tuple((traits, loaded(traits.project)()) for traits in installed() if traits.project is not None)


def is_led(folder: Path, kind: ProjectKind) -> bool:
    """Return whether files in a folder tell a project of another language, one that leads."""
    others = (other for _, other in kinds() if other.leads and other is not kind)
    return any(other.recognise(folder, (), is_led=False) is not None for other in others)


def leading(tree: Path) -> frozenset[str]:
    """Return the names of the languages whose files alone say that a project is theirs, whatever else is in it."""
    recognised_kinds = (traits.name for traits, kind in kinds() if kind.leads and kind.recognise(tree, (), is_led=False) is not None)
    return frozenset(recognised_kinds)


def languages_of_files(tree: Path) -> frozenset[str]:
    """Return the names of the languages that a project is written in, as its files alone tell."""
    by_files = {traits.name for traits, kind in kinds() if kind.recognise(tree, (), is_led=is_led(tree, kind)) is not None}
    compiled = {traits.name for traits in installed() if traits.project is None} if buildsystem.compiles(tree) else set()
    return frozenset(by_files | compiled)


def recognised(tree: Path, workloads: Sequence[WorkloadConfig], offered: Sequence[ServiceConfig], named: Collection[str]) -> Programs:
    """Return what a project is written in: the languages `named` in its configuration, and those that its files and commands tell."""
    served = [service.command.removeprefix("exec ") for service in offered if not service.outside]
    languages: dict[str, Recognised] = {}
    signs: dict[str, str | None] = {}
    commands: dict[str, list[str]] = {}
    for traits, kind in kinds():
        own = commands[traits.name] = [*(_command(workload, traits.name) for workload in workloads if not workload.requests), *served]
        sign = kind.recognise(tree, own, is_led=is_led(tree, kind))
        if traits.settings is not None and (traits.name in named or sign is not None):
            languages[traits.name] = Recognised(traits.settings, kind)
            signs[traits.name] = sign
    is_ready = any(
        language.kind.is_ready(tree, signs[name], commands[name], [other.kind for other in languages.values() if other is not language])
        for name, language in languages.items()
    )
    sign = next((signs[name] for name, language in languages.items() if signs[name] and not language.kind.needs_build), None)
    return Programs(languages, sign, is_ready)


def _command(workload: WorkloadConfig, language: str) -> str:
    """Return a workload's command as it tells a language: what lists the suites of another one may run in perfdiff's own interpreter."""
    is_foreign = workload.suite is not None and frameworks()[workload.suite.kind].language != language
    return "perfdiff" if is_foreign else workload.command
