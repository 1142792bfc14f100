"""Builds with options of the project switched on, where what it builds by itself gives nothing to run, or nothing that reaches the change.

Many projects build their benchmarks, tests and examples only where they are asked to. A person who knows the project would switch them on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from perfdiff.build import options
from perfdiff.build.built import Built
from perfdiff.config import BuildConfig
from perfdiff.errors import BuildError, MeasurementError, NothingCompiledError, NothingToRunError, TooLittleTimeError
from perfdiff.languages.frameworks import frameworks
from perfdiff.measuring.bench import Bench
from perfdiff.records.schema import Side

# That builds with options switched on may take, all together: downloads hang. One may take as much as leaves that for another one.
MOST_S, _SHARE = 900.0, 0.5


@dataclass(slots=True)
class Switching:
    """Makes builds of a bench with more than it builds by itself; `failures` say why some of them fail.

    That is what its suites would compile as they run, and behind that what is made with those options switched on that are `off`.
    """

    bench: Bench
    off: tuple[str, ...]
    unbuilt: tuple[str, ...] = ()
    why: str = "nothing to run was built"
    failures: list[str] = field(default_factory=list)

    @classmethod
    def of_plain(cls, bench: Bench, plain: Mapping[Side, Built], why: str = "nothing to run was built") -> Switching:
        """Return what the plain builds of all sides of a bench left out."""
        folders = [built.folder for built in plain.values()]
        suites = [workload.suite for workload in bench.request.config.workloads if workload.suite is not None]
        unbuilt = (command for suite in suites for command in frameworks()[suite.kind].framework.unbuilt(folders, suite.what))
        return cls(bench, options.off_in(folders), tuple(dict.fromkeys(unbuilt)), why)

    def builds(self) -> Iterator[tuple[str, Bench]]:
        """Yield the options of each build that ends well, and the bench that it was made on; none where the user wrote the command."""
        config = self.bench.request.config
        if config.build_guessed_from is None or not all(workload.suite and workload.suite.guessed for workload in config.workloads):
            return
        ends_s, apart = time.monotonic() + min(MOST_S, self.bench.request.deadline.left_s), self.bench.cache.apart
        for text, command in options.commands(config.build.command, self.off, self.unbuilt):
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
