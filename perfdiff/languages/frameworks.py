"""Frameworks of benchmarks, tests and fuzz targets: what a project has of them becomes workloads, with nothing to write.

The traits of a language name its frameworks. Each finds its suites in a checkout, and says which command lists what is in one; that command
runs in the built trees, and writes a `listing`.
"""

from __future__ import annotations

import functools
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from types import MappingProxyType

from perfdiff.config import BuildConfig, Suite, WorkloadConfig
from perfdiff.languages.installed import installed, loaded


class Material(IntEnum):
    """What a framework gives to run, what tells most of speed first: benchmarks are written to be measured, tests are short.

    What programs do that nobody lists is anyone's guess.
    """

    BENCHMARKS = 0
    FUZZ_TARGETS = 1
    SAMPLES = 2
    TESTS = 3
    PROGRAMS = 4


@dataclass(frozen=True, slots=True)
class Needs:
    """What a suite asks of the configuration: files of the checkout for both revisions, keys of the language's section and of `[build]`.

    A key that the configuration has stays as it is there.
    """

    overlay: tuple[str, ...] = ()
    settings: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    build: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


class Framework:
    """A framework: its `name` is a key of `[[workload]]`, whose value says what is run of a suite, as `wanted` says with an example.

    `title` is what people call it. A value that `is_words` is split as the shell does it. A framework that `takes_parameters` calls what it
    runs with those of the workload.
    """

    name: str
    title: str
    wanted: str
    material: Material
    is_words = False
    takes_parameters = False

    def read(self, value: object) -> str | None:
        """Return the value of the key, None where it is none, or a quotation in its words is not closed."""
        try:
            return value if isinstance(value, str) and (not self.is_words or shlex.split(value) is not None) else None
        except ValueError:
            return None

    def find(self, project: Path) -> Iterable[str]:
        """Yield values of the workload's key that select everything that a checkout (not built) can run, one value if that is enough."""
        raise NotImplementedError

    def command(self, project: Path, suite: Suite, workload: WorkloadConfig) -> str:
        """Return the shell command that lists the suite of a workload in a built tree; raise ConfigError where there is no such suite."""
        raise NotImplementedError

    def needs(self, project: Path, values: Sequence[str]) -> Needs:
        """Return what running these values of the key asks of the configuration; raise ConfigError where one of them cannot be run."""
        return Needs()

    def provision(self, suite: Suite) -> str | None:
        """Return the command that has ready, beside a built tree, what runs of a suite need that was listed elsewhere; None: nothing."""
        return None

    def unlisted(self, project: Path) -> str | None:
        """Return what is told of a framework like this one that a checkout names and nobody lists; None where it names none."""
        return None

    def unbuilt(self, trees: Sequence[Path], value: str) -> Sequence[str]:
        """Return shell commands that make, in each of these built trees, what the value of the key would compile before it runs."""
        return ()

    def needed(self, build: BuildConfig, commands: Collection[str]) -> BuildConfig:
        """Return how builds are made once cases are chosen: what is only run by others than these `commands` may be left out."""
        return build


@dataclass(frozen=True, slots=True)
class Offered:
    """A framework, and the name of the language that brings it."""

    framework: Framework
    language: str


def unlisted(project: Path) -> str:
    """Return what is told of frameworks that a checkout names and that are not listed, as what a sentence ends with; "" where none is."""
    return "".join(f"; {advice}" for offered in frameworks().values() if (advice := offered.framework.unlisted(project)))


@functools.cache
def frameworks() -> Mapping[str, Offered]:
    """Return all frameworks by their names."""
    of_languages = ((traits.name, loaded(traits.frameworks)) for traits in installed() if traits.frameworks is not None)
    return MappingProxyType({framework.name: Offered(framework, language) for language, own in of_languages for framework in own})
