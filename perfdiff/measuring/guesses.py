"""What is run where nothing is configured: of the guesses, the first that can be built and has something to run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from perfdiff import units
from perfdiff.build.built import Built
from perfdiff.config import Config
from perfdiff.errors import BuildError, MeasurementError, NothingCompiledError, NothingToRunError, WorkloadError
from perfdiff.languages.frameworks import frameworks
from perfdiff.languages.installed import installed
from perfdiff.languages.tree_files import all_differing
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.benchmarks import Selecting, with_benchmarks
from perfdiff.measuring.changes import site_of, without_functions
from perfdiff.measuring.firstwords import FirstRuns
from perfdiff.measuring.reaching import sought
from perfdiff.measuring.site import Site
from perfdiff.measuring.switching import Switching
from perfdiff.records.schema import Note, Side

_SHOWN = 3  # files in a message
# Of a limited time, what plain builds took when finding functions, which parses all that they compiled, may end too late. From 0.3 to 1.5
# times a build was seen.
LONG_SHARE = 0.1
_EARLY_SHARE = 0.2  # of the time that is left, for these runs


@dataclass(frozen=True, slots=True)
class Fruitless:
    """A guess at what is run that gave nothing, and why; without a site where it could not be built."""

    bench: Bench
    site: Site | None
    error: BuildError | WorkloadError


@dataclass(slots=True)
class EarlyRuns:
    """The runs of a comparison so far, if any were made, and the builds that they are of."""

    first: FirstRuns | None = None
    site: Site | None = None

    @property
    def answer(self) -> tuple[Bench, Site] | None:
        """Return what is known where measuring ends before anything else is, None where base and head have not run."""
        if self.first is None or self.site is None or not self.first.tell_something:
            return None
        return self.first.bench, replace(self.site, first_runs=tuple(self.first.runs))

    def make(self, bench: Bench, plain: Mapping[Side, Built], built_with: str = "") -> Selecting | None:
        """Make the runs where functions are found late, and return the suites that were listed for them, None where none were.

        Raise NothingToRunError where nothing is in the suites; what else fails is told where it fails again.
        """
        deadline, config = bench.request.deadline, bench.request.config
        built_s = sum(built.duration_s for built in plain.values() if built.commands)
        if not deadline.is_limited or len(bench.sides) < 2 or built_s < LONG_SHARE * deadline.left_s or config.services:
            return None
        self.site = without_functions(bench, plain)
        budget_s, begun = _EARLY_SHARE * deadline.left_s, None
        written = tuple(workload for workload in config.workloads if workload.suite is None)
        if len(written) < len(config.workloads):
            bench.progress.stage("listing benchmarks", None)
            begun = Selecting(bench, self.site, built_with)
            begun.list_suites()
            if not begun.listed:
                begun.chosen()
            self.first = FirstRuns.within(bench, begun.listed, budget_s, written)
        else:
            self.first = FirstRuns(bench, budget_s, "")
        if self.first is not None:
            self.first.make(self.site)
        return begun


def prepared(bench: Bench, early: EarlyRuns) -> tuple[Bench, Site]:
    """Build all sides and choose what is run; return the bench with these workloads, and the site with notes of guesses that failed.

    The first guess has `early` runs, where those are wanted.

    Where no guess gives anything to run, each is tried with options of its build; so is one whose cases do not reach the change. Raises
    MeasurementError where nothing can be built or run, or only what has no part in the change: that of the likeliest guess where there are
    several.
    """
    failures: list[Fruitless] = []
    notes: list[Note] = []
    guesses = list(benches(bench))
    for number, guess in enumerate(guesses):
        site = None
        try:
            plain = guess.workshop.plain()
            begun = None if number else early.make(guess, plain)
            site = _site_of(guess, plain, guesses[:number])
            chosen, site = with_benchmarks(guess, site, begun=begun)
        except (BuildError, WorkloadError) as error:
            if not _may_be_the_guess(error):
                raise
            failures.append(Fruitless(guess, site if number else site or early.site, error))
            if len(guesses) > 1:
                notes.append(Note("guess-failed", _told(error, [left.request.config for left in guesses[number:]])))
                bench.progress.note(notes[-1].text)
            continue
        if site.is_idle:
            chosen, site = reaching_with_options(guess, chosen, site)
        return chosen, replace(site, notes=(*site.notes, *notes))
    chosen, site = with_options(failures, early)
    return chosen, replace(site, notes=(*site.notes, *notes))


def with_options(guesses: Sequence[Fruitless], early: EarlyRuns) -> tuple[Bench, Site]:
    """Return the bench of the first guess, with the cases of suites that are run, that has something to run when it is built with options.

    If none has, what takes long is run. Raises MeasurementError where there is nothing of this either: what is told of the first guess.
    """
    errors: list[MeasurementError] = []
    for guess in guesses:
        if not isinstance(guess.error, NothingCompiledError | NothingToRunError):
            errors.append(guess.error)
            continue
        if isinstance(guess.error, NothingCompiledError):
            switching = Switching(guess.bench, guess.error.switches)
        else:
            assert guess.site is not None, "what was listed was built"
            switching = Switching.of_plain(guess.bench, guess.site.plain)
        for built_with, switched in switching.builds():
            try:
                plain = switched.workshop.plain()
                begun = early.make(switched, plain, built_with)
                return with_benchmarks(switched, site_of(switched, plain), built_with, begun=begun)
            except NothingToRunError:
                switching.failures.append(f"built with {built_with}, it has nothing to run either")
        errors.append(switching.told(guess.error))
    for guess in guesses:
        if guess.site is not None and isinstance(guess.error, NothingToRunError):
            site = guess.site if guess.site.subjects.pairs else site_of(guess.bench, guess.site.plain)  # it may be that of early runs
            with contextlib.suppress(NothingToRunError):
                return with_benchmarks(guess.bench, site, patient=True)
    raise errors[0] from guesses[0].error


def reaching_with_options(guess: Bench, chosen: Bench, site: Site) -> tuple[Bench, Site]:
    """Return the bench of a guess with cases that reach the change where it is built with options, else what was `chosen` without them.

    The first build that ends well is the only one: it has all of benchmarks and tests that can be built.
    """
    switching = Switching.of_plain(guess, site.plain, "nothing that was built reaches the change")
    for built_with, switched in switching.builds():
        with contextlib.suppress(NothingToRunError):
            bench, of_options = with_benchmarks(switched, site_of(switched, switched.workshop.plain()), built_with)
            if not of_options.is_idle:
                return bench, of_options
        text = f"built with {built_with}, no case reaches the change either"
        return chosen, replace(site, notes=(*site.notes, Note("cases-chosen", text)))
    return chosen, site


def _site_of(bench: Bench, plain: Mapping[Side, Built], failed: Sequence[Bench]) -> Site:
    """Find what changed; raise WorkloadError where functions that changed may be in the languages of guesses that failed alone."""
    site = site_of(bench, plain)
    if failed and len(bench.sides) > 1 and not sought(site.subjects, bench.request.config.probes.exclude):
        suffixes = {suffix for guess in failed for suffix in _suffixes(guess.request.config)}
        base, head = (site.plain[side].tree for side in bench.sides)
        changed = [name for name, _ in all_differing(base, head) if name.endswith(tuple(suffixes))]
        if changed:
            raise WorkloadError(f"none of its functions changed, and {units.listed(changed, _SHOWN)} did", slug="no-benchmarks")
    return site


def _suffixes(config: Config) -> frozenset[str]:
    """Return the suffixes of sources in the languages whose suites a configuration runs."""
    names = {frameworks()[workload.suite.kind].language for workload in config.workloads if workload.suite}
    return frozenset(suffix for traits in installed() if traits.name in names for suffix in traits.files.sources)


def benches(bench: Bench) -> Iterator[Bench]:
    """Yield the bench, and those of the other guesses of its configuration."""
    yield bench
    asked = bench.request.config
    for guess in asked.otherwise:
        own = replace(asked, build=guess.build, workloads=guess.workloads, languages=guess.languages)
        config = replace(own, build_guessed_from=guess.build_guessed_from, otherwise=())
        request = replace(bench.request, config=config)
        yield replace(bench, request=request, packs=request.packs)


def titles(config: Config) -> str:
    """Return the titles of a configuration's suites, as people write them."""
    kinds = dict.fromkeys(workload.suite.kind for workload in config.workloads if workload.suite)
    return ", ".join(frameworks()[kind].framework.title for kind in kinds)


def _may_be_the_guess(error: BuildError | WorkloadError) -> bool:
    """Return whether it fails because the guess is wrong: its builds, or that nothing is in its suites."""
    return isinstance(error, BuildError) or error.slug == "no-benchmarks"


def _told(error: MeasurementError, guesses: list[Config]) -> str:
    first, *others = guesses
    after = f"{titles(others[0])} of the project is tried instead" if others else "no other guess is left"
    return f"{titles(first)} cannot be run here: {str(error).splitlines()[0]}; {after}"
