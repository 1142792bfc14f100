"""Suites of benchmarks: the built revisions tell which there are, and those that all of them have become workloads.

A listing runs the project's code, so it is made when all is built, in the trees and the environment that runs have. It tries each
benchmark once, so that one that fails in a revision is left out, and its time tells how often a run has to call it.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfdiff import temporary, units
from perfdiff.collect.execution.executor import Command, Executor, Purpose
from perfdiff.collect.runs.suitecases import SuiteCase
from perfdiff.collect.runs.targets import Target
from perfdiff.collect.runs.workloads import filled
from perfdiff.collect.trees.upkeep import Chores, Upkeep
from perfdiff.config import WorkloadConfig
from perfdiff.errors import DiskFilledError, RunFailedError, RunTimeoutError, WorkloadError
from perfdiff.languages.frameworks import frameworks
from perfdiff.languages.listing import CALLS, LIKELY, LIMIT_S, LISTED_TO, LISTING_S, LONGEST_S, Benchmark, SuiteListing, Values
from perfdiff.records.endless import EndlessCase
from perfdiff.records.schema import Note, Side

PATIENT_S = 40.0  # that one benchmark may take where there is no other: the fewest pairs of runs of it take seven minutes
_TIMES = 10  # as long as a run a listing may take, which tries all benchmarks
_NO_POINT = -1
_NUMBERS = re.compile(r"[0-9]+|0x[0-9a-f]+")  # in reasons: how long something took, a process, an address
_SHOWN = 5  # names in a note
_SHOWN_ALIKE = 2  # of those that fail for the same reason
_TELLING = 4  # characters of a name that stands in a reason: shorter ones are parts of words


@dataclass(frozen=True, slots=True)
class ListedCases:
    """The cases of a suite that run in all revisions, those that do not end on head, or fail there alone, and what is told of others."""

    cases: Sequence[SuiteCase]
    notes: tuple[Note, ...]
    endless: tuple[EndlessCase, ...] = ()
    failing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _RetriedCall:
    """How many seconds a call took that head had given up; whether it `ended`, or was ended after these."""

    seconds: float
    ended: bool


@dataclass(frozen=True, slots=True)
class Suites:
    """Lists suites in the plain builds of all sides. `room` is an empty folder, `environment` that of runs.

    If they may be `abreast`, all sides are listed at the same time, and what then fails is tried again alone. What is named by `likely`
    words may be tried first, as a listing may end before all is tried.
    """

    targets: Mapping[Side, Target]
    environment: Mapping[str, str]
    room: Path
    upkeep: Upkeep = field(default_factory=Upkeep)
    abreast: bool = False
    likely: Collection[str] = ()

    def expanded(
        self, configs: Sequence[WorkloadConfig], executor: Executor, *, once: bool = False
    ) -> tuple[tuple[WorkloadConfig, ...], tuple[Note, ...]]:
        """Return workloads with the benchmarks of each suite in its place, and what is told of those that are left out.

        They are called as often as a run needs to be timed, or `once`. Raises WorkloadError where a listing fails, or nothing is left
        of a suite (`no-benchmarks`).
        """
        workloads: list[WorkloadConfig] = []
        notes: list[Note] = []
        for config in configs:
            if config.suite is None:
                workloads.append(config)
                continue
            listed = self.cases(config, executor)
            workloads += [case.workload(1 if once else case.calls) for case in listed.cases]
            notes += listed.notes
        return tuple(apart(workloads)), tuple(notes)

    def cases(self, config: WorkloadConfig, executor: Executor, *, limit_s: float = LIMIT_S, patient: bool = False) -> ListedCases:
        """List a suite's cases; the listing of a side may take `limit_s` seconds.

        Where that leaves nothing, and somebody is `patient`, benchmarks may take longer. Raises WorkloadError where a listing fails, or
        nothing is left of the suite (`no-benchmarks`).
        """
        listings = self._listed(config, executor, {LISTING_S: limit_s})
        first, last = next(iter(listings)), list(listings)[-1]
        listings[last], endless = self._tried_again(config, last, executor, listings[last], listings[first], limit_s)
        common = list(_common(list(listings.values())))
        if not common and patient and not endless:
            limits = {LISTING_S: max(limit_s, LIMIT_S), LONGEST_S: PATIENT_S}
            listings = self._apart(config, executor, limits)
            common = list(_common(list(listings.values())))
        if not common and not endless:
            raise WorkloadError(_nothing(config, listings), slug="no-benchmarks", detail=_told(_failures(listings)))
        start_s = max(listing.start_s for listing in listings.values())
        notes = (*_left_out(config, listings, {case.name.split()[0] for case in endless}), *map(does_not_end, endless))
        failing = _failing_alone(listings[first], listings[last])
        return ListedCases([SuiteCase(config, sides, start_s) for sides in common], notes, endless, failing)

    def provide(self, configs: Sequence[WorkloadConfig], executor: Executor) -> None:
        """Have what runs need of suites that were listed on another machine; raise WorkloadError where it cannot be had here."""
        for config in configs:
            assert config.suite is not None, "only suites are listed"
            command = frameworks()[config.suite.kind].framework.provision(config.suite)
            if command is None:
                continue
            for side in self.targets:
                failures = self._listing(replace(config, command=command), side, executor, {LISTING_S: LIMIT_S}).failures
                if failures:
                    whys = _told([f"{name} ({why})" for name, why in failures.items()])
                    raise WorkloadError(f"{config.name} cannot be run in {side}: {whys}; have there what it needs", slug="no-benchmarks")

    def _listed(self, config: WorkloadConfig, executor: Executor, limits_s: Mapping[str, float]) -> dict[Side, SuiteListing]:
        """Return the listing of each side; raise WorkloadError where one fails."""
        trees = {target.tree for target in self.targets.values()}
        if not self.abreast or config.alone or len(self.targets) != len(Side) or len(trees) < len(self.targets):
            return self._apart(config, executor, limits_s)
        began_s = time.monotonic()
        try:
            listings = self._together(config, executor, limits_s)
        except DiskFilledError:
            raise
        except WorkloadError:  # it is told where it fails alone as well
            return self._apart(config, executor, limits_s)
        first, last = listings
        if _disturbed(listings[first], listings[last]):
            return self._apart(config, executor, limits_s)
        spent_s = time.monotonic() - began_s  # listing one side behind the other would have taken about as long once more
        listings[first], _ = self._tried_again(config, first, executor, listings[first], listings[last], spent_s, only_ended=True)
        return listings

    def _apart(self, config: WorkloadConfig, executor: Executor, limits_s: Mapping[str, float]) -> dict[Side, SuiteListing]:
        return {side: self._listing(config, side, executor, limits_s) for side in self.targets}

    def _together(self, config: WorkloadConfig, executor: Executor, limits_s: Mapping[str, float]) -> dict[Side, SuiteListing]:
        files = {side: self.room / f"listing-{side}.json" for side in self.targets}
        with contextlib.ExitStack() as stack:
            commands = [
                stack.enter_context(self._ready(config, side, executor, self._lists(config, side, file, limits_s)))
                for side, file in files.items()
            ]
            executor.execute_together(commands, os.sched_getaffinity(0))
        return {side: self._read(config, side, file) for side, file in files.items()}

    def _tried_again(  # noqa: PLR0913, PLR0917 (what is tried, where and how long)
        self,
        config: WorkloadConfig,
        side: Side,
        executor: Executor,
        listing: SuiteListing,
        base: SuiteListing,
        limit_s: float,
        *,
        only_ended: bool = False,
    ) -> tuple[SuiteListing, tuple[EndlessCase, ...]]:
        """Return head's listing with the points at which base runs and head failed, where they run after all, for `limit_s` seconds.

        A listing gives up what takes long. A point that head alone gave up may be the slow-down, and is not left out: one that does not end
        here either is listed with the seconds that it had, or where base needs far less, returned as a case that does not end. Where
        `only_ended` ones count, it is neither.
        """
        ends_s = time.monotonic() + limit_s
        benchmarks, failures, endless = dict(listing.benchmarks), dict(listing.failures), list[EndlessCase]()
        for name, of_base in base.benchmarks.items():
            failed = [key for key in failures if key == name or key.startswith(f"{name} ")]
            own = benchmarks.get(name, replace(of_base, points={}))
            if not failed or own.parameters != of_base.parameters:
                continue
            missing = [values for values in of_base.points if values not in own.points]
            run: dict[Values, tuple[float, bool]] = {}
            hanging: list[EndlessCase] = []
            for values in missing:
                trial = self._called(config, side, executor, of_base, values, ends_s)
                base_s, again = of_base.points[values]
                if trial is None or (only_ended and not trial.ended):
                    continue
                case = EndlessCase(_label(of_base, values), base.start_s + base_s, trial.seconds)
                if not trial.ended and case.tells:
                    hanging.append(case)
                elif trial.ended or trial.seconds > base_s:
                    run[values] = trial.seconds, again
            if run:
                benchmarks[name] = replace(own, points={**own.points, **run})
            if len(run) + len(hanging) == len(missing):
                failures = {key: why for key, why in failures.items() if key not in failed}
            endless += hanging
        return replace(listing, benchmarks=benchmarks, failures=failures), tuple(endless)

    def _called(  # noqa: PLR0913, PLR0917 (what is called, where and how long)
        self, config: WorkloadConfig, side: Side, executor: Executor, benchmark: Benchmark, values: Values, ends_s: float
    ) -> _RetriedCall | None:
        """Return a run with one call of a benchmark, which is ended when the time is over; None where it fails, or there is no time."""
        left_s = ends_s - time.monotonic()
        if left_s <= 0.0:
            return None
        parameters = dict(zip(benchmark.parameters, values, strict=True))
        target = self.targets[side]
        command = Command(
            text=filled(benchmark.command.replace(CALLS, "1"), parameters),
            directory=target.directory,
            environment=target.surroundings(self.environment),
            timeout_s=left_s,
            exit_codes=config.exit_codes,
            where=f"{side}, {benchmark.name}",
        )
        setup = " && ".join(filter(None, (config.setup, benchmark.setup)))
        started_s = time.monotonic()
        try:
            self._execute(config, side, executor, command, setup=filled(setup, parameters))
        except RunTimeoutError:
            return _RetriedCall(left_s, ended=False)
        except RunFailedError:
            return None
        return _RetriedCall(time.monotonic() - started_s, ended=True)

    def _listing(self, config: WorkloadConfig, side: Side, executor: Executor, limits_s: Mapping[str, float]) -> SuiteListing:
        file = self.room / "listing.json"
        with self._ready(config, side, executor, self._lists(config, side, file, limits_s)) as command:
            executor.execute(command)
        return self._read(config, side, file)

    def _lists(self, config: WorkloadConfig, side: Side, file: Path, limits_s: Mapping[str, float]) -> Command:
        """Return the command that lists a side."""
        target = self.targets[side]
        return Command(
            text=config.command,
            directory=target.directory,
            environment={
                **target.surroundings(self.environment),
                LISTED_TO: str(file),
                LIKELY: " ".join(sorted(self.likely)),
                **{name: f"{seconds:g}" for name, seconds in limits_s.items()},
            },
            timeout_s=_TIMES * config.timeout_s,
            exit_codes=(0,),
            where=f"{side}, listing {config.name}",
            purpose=Purpose.LISTING,
        )

    @contextmanager
    def _ready(self, config: WorkloadConfig, side: Side, executor: Executor, command: Command) -> Iterator[Command]:
        """Yield what lists a side with a folder for its temporary files, in its tree, which is put back."""
        with temporary.folder() as scratch:
            own = replace(command, environment={**command.environment, "TMPDIR": str(scratch)})
            with self._around(config, side, executor, own, setup=config.setup or ""):
                yield own

    def _read(self, config: WorkloadConfig, side: Side, file: Path) -> SuiteListing:
        """Return what a side's listing wrote; raise WorkloadError where that tells nothing."""
        target = self.targets[side]
        try:
            return SuiteListing.read(file.read_text().replace(f"{target.tree}/", ""))
        except (OSError, ValueError, KeyError, TypeError) as error:
            by_hand = self._lists(config, side, file, {}).by_hand
            raise WorkloadError(
                f"'{config.command}' did not list the benchmarks of {config.name} in {side} ({error}); {by_hand}",
                slug="no-benchmarks",
            ) from error
        finally:
            file.unlink(missing_ok=True)

    def _execute(self, config: WorkloadConfig, side: Side, executor: Executor, command: Command, *, setup: str) -> None:
        """Run a command of a suite in the tree of a side, behind what prepares it; the tree is put back."""
        with self._around(config, side, executor, command, setup=setup):
            executor.execute(command)

    def _around(
        self, config: WorkloadConfig, side: Side, executor: Executor, command: Command, *, setup: str
    ) -> AbstractContextManager[object]:
        """Return what makes the tree of a side ready for a command, and puts it back."""
        target = self.targets[side]
        assert target.tree is not None, "plain builds are put back"
        before, prepare = (
            replace(command, text=text, where=f"{purpose} of {command.where}", purpose=purpose) if text else None
            for purpose, text in ((Purpose.SETUP, setup), (Purpose.PREPARE, config.prepare))
        )
        chores = Chores(f"{config.name} {command.text}", _NO_POINT, 0, before, prepare)
        return self.upkeep.around(target.tree, command, chores, executor, target.home)


def _disturbed(first: SuiteListing, last: SuiteListing) -> bool:
    """Return whether something fails in both listings, each time for another reason: one may have been in the other's way."""
    return any(
        _NUMBERS.sub("", why) != _NUMBERS.sub("", last.failures[name]) for name, why in first.failures.items() if name in last.failures
    )


def _label(benchmark: Benchmark, values: Values) -> str:
    """Return what a point of a benchmark is called."""
    return " ".join((benchmark.name, *(f"{name}={value}" for name, value in zip(benchmark.parameters, values, strict=True))))


def _common(listings: Sequence[SuiteListing]) -> Iterator[Sequence[Benchmark]]:
    """Yield each benchmark of the last revision, as all of them have it, at the points that all of them have."""
    for name, last in listings[-1].benchmarks.items():
        sides = [listing.benchmarks[name] for listing in listings if name in listing.benchmarks]
        points = [values for values in last.points if all(values in benchmark.points for benchmark in sides)]
        if len(sides) == len(listings) and points and all(benchmark.parameters == last.parameters for benchmark in sides):
            yield [replace(benchmark, points={values: benchmark.points[values] for values in points}) for benchmark in sides]


def apart(workloads: Iterable[WorkloadConfig]) -> Iterator[WorkloadConfig]:
    """Yield workloads under names of their own: suites may have benchmarks in common."""
    taken: set[str] = set()
    for workload in workloads:
        names = itertools.chain([workload.name], (f"{workload.name} ({number})" for number in itertools.count(2)))
        name = next(name for name in names if name not in taken)
        taken.add(name)
        yield replace(workload, name=name)


def _failures(listings: Mapping[Side, SuiteListing]) -> list[str]:
    """Return which benchmarks fail, and why: once where it is the same in all revisions, and together where others fail alike."""
    sides_by_failure: dict[tuple[str, str], list[Side]] = {}
    for side, listing in listings.items():
        for name, why in listing.failures.items():
            sides_by_failure.setdefault((name, why), []).append(side)
    alike: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for (name, why), sides in sides_by_failure.items():
        where = "" if len(sides) == len(listings) else f" in {sides[0]}"
        alike.setdefault((where, _without_its_own(name, why)), []).append((name, why))
    return [f"{units.listed([name for name, _ in failed], _SHOWN_ALIKE)}{where} ({failed[0][1]})" for (where, _), failed in alike.items()]


def _without_its_own(name: str, why: str) -> str:
    """Return a reason without what is of one case alone: its name, whole or behind its class or file, and numbers."""
    case = name.split(" ", maxsplit=1)[0]
    own = [text for text in (case, case.rpartition("::")[2]) if len(text) >= _TELLING]
    return _NUMBERS.sub("", functools.reduce(lambda rest, text: rest.replace(text, ""), own, why))


def _failing_alone(base: SuiteListing, head: SuiteListing) -> tuple[str, ...]:
    """Return the cases that fail in head, and run in base; what head had no time for need not fail."""
    failing = (name for name in head.failures if name not in head.untried)
    return tuple(name for name in failing if name not in base.failures and name.split()[0] in base.benchmarks)


def does_not_end(case: EndlessCase) -> Note:
    """Return the note on a case that does not end on head."""
    limit, base = (units.duration(1e9 * seconds) for seconds in (case.limit_s, case.base_s))
    return Note("case-does-not-end", f"{case.name} does not end on head within {limit}, where base takes {base}; it is not run again")


def _left_out(config: WorkloadConfig, listings: Mapping[Side, SuiteListing], endless: Collection[str]) -> Iterator[Note]:
    failing = _failures(listings)
    if failing:
        yield Note("benchmarks-left-out", f"of {config.name}, what fails when it is tried is left out: {_told(failing)}")
    failed = {name.split()[0] for listing in listings.values() for name in listing.failures}
    everywhere = set.intersection(*(set(listing.benchmarks) for listing in listings.values()))
    lacking = [name for listing in listings.values() for name in listing.benchmarks if name not in everywhere.union(failed, endless)]
    if lacking:
        whole = all(listing.whole for listing in listings.values())
        why = "what one revision alone has" if whole else "what was not tried in all revisions, for lack of time,"
        yield Note("benchmarks-left-out", f"of {config.name}, {why} is left out: {_told(lacking)}")


def _nothing(config: WorkloadConfig, listings: Mapping[Side, SuiteListing]) -> str:
    where = "any revision" if len(listings) > 1 else next(iter(listings))
    if any(listing.benchmarks for listing in listings.values()):
        return f"the revisions have no benchmark of {config.name} in common that runs in both; an overlay gives both the same ones"
    if config.suite is not None and config.suite.guessed:
        return f"none was seen that runs in {where}"
    return f"'{config.command}' found no benchmark of {config.name} that runs in {where}; correct what it selects"


def _told(names: Sequence[str]) -> str:
    return units.listed(names, _SHOWN)
