"""Builds with options of the project switched on, where what it builds by itself gives nothing to run.

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


@dataclass(slots=True)
class Switching:
    """Makes builds of a bench with those of some options switched on that are `off`; `failures` say why others do not build."""

    bench: Bench
    off: tuple[str, ...]
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
            self.bench.progress.note(f"building with {text}, as nothing to run was built")
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
