"""Builds with options of the project switched on, where what it builds by itself gives nothing to run, or nothing that reaches the change.

Many projects build their benchmarks, tests and examples only where they are asked to. A person who knows the project would switch them on.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from perfdiff.build import options
from perfdiff.config import BuildConfig
from perfdiff.errors import BuildError, MeasurementError, NothingCompiledError, NothingToRunError, TooLittleTimeError, WorkloadError
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.benchmarks import with_benchmarks
from perfdiff.measuring.changes import site_of
from perfdiff.measuring.site import Site
from perfdiff.records.schema import Note

# That builds with options switched on may take, all together: downloads hang. One may take as much as leaves that for another one.
MOST_S, _SHARE = 900.0, 0.5


@dataclass(frozen=True, slots=True)
class Fruitless:
    """A guess at what is run that gave nothing, and why; without a site where it could not be built."""

    bench: Bench
    site: Site | None
    error: BuildError | WorkloadError


def with_options(guesses: Sequence[Fruitless]) -> tuple[Bench, Site]:
    """Return the bench of the first guess, with the cases of suites that are run, that has something to run when it is built with options.

    If none has, what takes long is run. Raises MeasurementError where there is nothing of this either: what is told of the first guess.
    """
    errors: list[MeasurementError] = []
    for guess in guesses:
        if not isinstance(guess.error, NothingCompiledError | NothingToRunError):
            errors.append(guess.error)
            continue
        switching = Switching(guess.bench, guess.error.switches)
        for built_with, switched in switching.builds():
            try:
                return with_benchmarks(switched, site_of(switched, switched.workshop.plain()), built_with)
            except NothingToRunError:
                switching.failures.append(f"built with {built_with}, it has nothing to run either")
        errors.append(switching.told(guess.error))
    for guess in guesses:
        if guess.site is not None and isinstance(guess.error, NothingToRunError):
            with contextlib.suppress(NothingToRunError):
                return with_benchmarks(guess.bench, guess.site, patient=True)
    raise errors[0] from guesses[0].error


def reaching_with_options(guess: Bench, chosen: Bench, site: Site) -> tuple[Bench, Site]:
    """Return the bench of a guess with cases that reach the change where it is built with options, else what was `chosen` without them.

    The first build that ends well is the only one: it has all of benchmarks and tests that can be built.
    """
    off = options.off_in([built.folder for built in site.plain.values()])
    switching = Switching(guess, off, "nothing that was built reaches the change")
    for built_with, switched in switching.builds():
        with contextlib.suppress(NothingToRunError):
            bench, of_options = with_benchmarks(switched, site_of(switched, switched.workshop.plain()), built_with)
            if not of_options.is_idle:
                return bench, of_options
        text = f"built with {built_with}, no case reaches the change either"
        return chosen, replace(site, notes=(*site.notes, Note("cases-chosen", text)))
    return chosen, site


@dataclass(slots=True)
class Switching:
    """Makes builds of a bench with those of some options switched on that are `off`; `failures` say why others do not build."""

    bench: Bench
    off: tuple[str, ...]
    why: str = "nothing to run was built"
    failures: list[str] = field(default_factory=list)

    def builds(self) -> Iterator[tuple[str, Bench]]:
        """Yield the options of each build that ends well, and the bench that it was made on; none where the user wrote the command."""
        config = self.bench.request.config
        if config.build_guessed_from is None or not all(workload.suite and workload.suite.guessed for workload in config.workloads):
            return
        ends_s, apart = time.monotonic() + min(MOST_S, self.bench.request.deadline.left_s), self.bench.cache.apart
        for text, command in options.commands(config.build.command, self.off):
            left_s = ends_s - time.monotonic()
            if left_s <= 0.0:
                return
            build = replace(config.build, command=command)
            brief = self._with(replace(build, timeout_s=min(build.timeout_s, _SHARE * left_s)))
            self.bench.progress.note(f"building with {text}, as {self.why}")
            try:
                brief.workshop.plain()
            except TooLittleTimeError:
                return
            except BuildError as error:
                self.bench.cache.apart = apart  # what fails by its options fails apart as well
                self.failures.append(str(error).replace(f"'{command}'", f"the build with {text}", 1))
                continue
            yield text, self._with(build)

    def told(self, nothing: NothingCompiledError | NothingToRunError) -> MeasurementError:
        """Return the error that there is nothing to run, with why options did not help."""
        return MeasurementError("; ".join((str(nothing), *self.failures)), slug=nothing.slug, detail=nothing.detail)

    def _with(self, build: BuildConfig) -> Bench:
        request = self.bench.request
        return replace(self.bench, request=replace(request, config=replace(request.config, build=build)))
