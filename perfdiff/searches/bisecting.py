"""The search for the commit that made something slower, from two revisions to the culprit.

both ends → what to follow → commits between → measure the one that tells most → posterior → … → culprit against what stands before it
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from dataclasses import replace
from statistics import median

import numpy as np

from perfdiff import __version__, clustered, pipeline, storage
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.analysis.search import posterior, symptom
from perfdiff.analysis.search.ahead import asked_ahead
from perfdiff.analysis.search.bisection import HIGHEST, Bisection, CommitStanding, MeasuredCommit
from perfdiff.analysis.search.ends import SearchSubject, follow
from perfdiff.analysis.search.posterior import Confirm, CulpritSet, Knowledge, Reading, Search, StepTrial, Terms
from perfdiff.analysis.search.symptom import Figure, Symptom, figures, ratio_of
from perfdiff.build.cache import BuildCache
from perfdiff.collect.built import kinship
from perfdiff.collect.built.workshop import Workshop
from perfdiff.collect.runs import inputs
from perfdiff.config import Config
from perfdiff.errors import (
    BuildError,
    MeasurementError,
    RecordingError,
    RevisionError,
    WorkloadError,
)
from perfdiff.outcome import Outcome
from perfdiff.progress import Progress, Within
from perfdiff.records import codec
from perfdiff.records.schema import Note, Side
from perfdiff.report.sentences.catalogue import say
from perfdiff.request import Request
from perfdiff.revisions.history import CommitHistory, changed_files
from perfdiff.revisions.pins import resolve
from perfdiff.searches import state
from perfdiff.searches.question import SearchQuestion, SearchRange, stretch
from perfdiff.searches.state import CommitReading, SearchRecords, StepReading
from perfdiff.searches.trail import Trail

RUNS = 5  # of each side in one measurement: the least that the comparison can work with; weak evidence is measured again
AGAIN = 0.5  # what measuring a commit again costs of measuring a new one: nothing is built
FRESH = 1_000_000  # added to the seed of runs that confirm: their order is another one
LIKELIER = 2.0  # times as likely as evenly shared, or as likely as not: less is not worth naming a commit for
SURE = 0.95  # from here on a commit's own readings make it good or bad


def bisect(question: SearchQuestion, progress: Progress) -> tuple[Bisection, Outcome]:
    """Find the commit that made something slower, and compare it with what stands before it.

    UsageError: `ends-alike`, `ends-swapped`, `unknown-function`; RevisionError as `history` raises; MeasurementError: `ends-inconclusive`.
    """
    span = stretch(question, progress)
    pins, commits = span.pins, span.commits
    progress.note(f"{_plural(len(commits.commits), 'commit')} between the ends, {_different(commits)} of them differ in what is built")
    request = replace(question.request, revisions=(pins.base.commit, pins.head.commit))
    ends = pipeline.compare(request, progress)
    if ends.findings.met:
        span = stretch(question, progress, ends.findings.met)
    good, bad = question.request.revisions
    wanted = SearchSubject(good, bad, question.function, question.named, question.metric)
    followed = follow(ends.findings, wanted, say(ends.findings.sentence))
    progress.note(f"following {followed.says}: {figures(followed.expected)} between the ends")
    hunt = Hunt(question, span, ends, followed, progress)
    return hunt.conclude(hunt.search())


class Hunt:
    """A bisection under way: its question, the measurements so far, and the file that keeps them."""

    def __init__(self, question: SearchQuestion, span: SearchRange, ends: Outcome, followed: Symptom, progress: Progress) -> None:
        self._question, self._request = question, question.request
        self._pins, self._history, self._inert = span.pins, span.commits, span.inert
        self._ends, self._symptom, self._progress = ends, followed, progress
        self._config = measuring(question.request.config, ends.findings)
        self._followed = frozenset(
            (finding.info.base.file, finding.info.base.line) for finding in ends.findings.functions if finding.info.base is not None
        )
        self._trail = Trail(span.pins, span.commits)
        self._state = self._request.cache / "bisects" / f"{self._key()}.json"
        self._notes: list[Note] = []
        self._ahead: set[int] = set()  # commits that the workers of a cluster have been asked for
        self._records = self._resumed()

    def search(self) -> CulpritSet:
        """Measure until the culprit is known with the asked confidence, or nothing tells more."""
        while True:
            search, knowledge, terms = self._search(), self._known(), self._terms()
            step = posterior.decide(search, knowledge, terms)
            if isinstance(step, CulpritSet):
                return step
            started = time.monotonic()
            if isinstance(step, Confirm):
                self._confirm(step.suspects)
            else:
                self._measure_ahead(search, knowledge, terms)
                self._measure(step.commit)
            self._records = replace(self._records, spent_s=self._records.spent_s + time.monotonic() - started)
            state.save(self._state, self._records)
            self._look_at_names()

    def conclude(self, answer: CulpritSet) -> tuple[Bisection, Outcome]:
        """Return the conclusion with the comparison that shows it: last suspect against what stands before them, or the ends."""
        suspects = sorted(answer.suspects)
        outcome = self._step(answer.suspects, self._progress) if answer.certain else self._ends
        bisection = Bisection(
            good=self._pins.base.revision,
            bad=self._pins.head.revision,
            symptom=self._symptom,
            ends=ratio_of(self._symptom.expected, RUNS),
            commits=len(self._history.commits),
            suspects=tuple(self._trail.revision(self._trail.id(number)) for number in suspects),
            confidence=answer.probability,
            certain=answer.certain,
            measured=tuple(self._measured()),
            passed=self._trail.passed(self._records.skipped),
            alike=self._trail.alike(self._records.alike),
            findings=outcome.findings,
        )
        notes = (Note("bisected", f"{say(bisection.sentence)}; {_plural(len(bisection.measured), 'commit')} measured"), *self._notes)
        findings = replace(outcome.findings, notes=(*notes, *outcome.findings.notes))
        return replace(bisection, findings=findings), replace(outcome, findings=findings)

    def _measure_ahead(self, search: Search, knowledge: Knowledge, terms: Terms) -> None:
        """Have the workers of a cluster compare the commits that will be asked for next, each worker one, where counts are followed.

        Of times one comparison gains more by the runs of all workers.
        """
        address = self._request.config.cluster.address
        if address is None or not self._symptom.exact or next(iter(asked_ahead(search, knowledge, terms, 1)), None) in self._ahead | {None}:
            return

        def wanted(workers: int) -> list[Request]:
            numbers = asked_ahead(search, knowledge, terms, workers)
            self._ahead |= {*numbers}
            commits = [self._history.commits[number].id for number in numbers]
            return [self._asked((self._history.good, commit), self._request.config.compare.seed) for commit in commits]

        clustered.compare_ahead(address, wanted, self._progress)

    def _measure(self, number: int) -> None:
        """Measure a commit against the good end, unless it is the same as a neighbour that was; where it cannot be, keep the reason."""
        commit = self._history.commits[number].id
        progress = Within(self._progress, self._announce(f"measuring {commit[:10]}"))
        try:
            other = self._twin(number, progress)
            if other is not None:
                self._records = replace(self._records, alike={**self._records.alike, commit: other})
                return
            taken = self._records.taken.get(commit)
            seed = self._request.config.compare.seed + (taken.times if taken else 0)
            findings = pipeline.compare(self._asked((self._history.good, commit), seed), progress).findings
            reading = symptom.read(findings, self._symptom)
        except (BuildError, WorkloadError, MeasurementError, RevisionError) as error:
            self._skip(commit, state.reason_of(error))
            return
        if reading is None:
            self._skip(commit, f"{self._symptom.says} is not there to be measured")
            return
        function = symptom.find(findings, self._symptom) if self._symptom.figure is not Figure.WHOLE else None
        place = symptom.place_of(function.info.head) if function else None
        taken = CommitReading(taken.reading.joined(reading), taken.times + 1, place) if taken else CommitReading(reading, 1, place)
        self._records = replace(self._records, taken={**self._records.taken, commit: taken})
        self._progress.note(f"{self._trail.named(commit)} is {self._standing(taken.reading)}: {figures(taken.reading)}")

    def _skip(self, commit: str, reason: str) -> None:
        self._records = replace(self._records, skipped={**self._records.skipped, commit: reason})
        self._progress.note(f"{self._trail.named(commit)} is skipped: {reason}")

    def _asked(self, revisions: tuple[str, str], seed: int) -> Request:
        config = replace(self._config, compare=replace(self._config.compare, seed=seed))
        return replace(self._request, revisions=revisions, config=config, followed=self._followed)

    def _confirm(self, suspects: frozenset[int]) -> None:
        """Compare the last suspect with what stands before them, with fresh runs."""
        progress = Within(self._progress, self._announce(f"confirming {self._history.commits[max(suspects)].id[:10]}"))
        findings = self._step(suspects, progress).findings
        place = (
            self._records.taken[head].place if (head := self._trail.last(suspects, self._records.skipped)) in self._records.taken else None
        )
        if place is None and head == self._history.bad and (function := symptom.find(self._ends.findings, self._symptom)):
            place = symptom.place_of(function.info.head)
        reading = symptom.read(findings, self._symptom, place)
        if reading is None:
            # The function is not worth a probe in this step, or the comparison tells of another one: its verdict is all there is.
            shown = self._symptom.expected.effect if findings.verdict is Verdict.REGRESSION else 0.0
            reading = Reading(shown, max(self._symptom.expected.error, abs(self._symptom.expected.effect) / 4))
        ids = frozenset(self._history.commits[number].id for number in suspects)
        self._records = replace(self._records, tried=(*self._records.tried, StepReading(ids, reading)))
        self._progress.note(f"{self._trail.named(head)} against what stands before it: {figures(reading)}")

    def _step(self, suspects: frozenset[int], progress: Progress) -> Outcome:
        config = self._request.config
        compare = replace(config.compare, seed=config.compare.seed + FRESH)
        names = self._trail.step(suspects, self._records.skipped)
        request = replace(self._request, revisions=names, config=replace(config, compare=compare))
        return pipeline.compare(request, progress)

    def _twin(self, number: int, progress: Progress) -> str | None:
        """Return a neighbour that is known already and the same as a commit for what was probed, None where there is none."""
        commit = self._history.commits[number].id
        if commit in self._records.taken:
            return None
        return next((other for other in self._neighbours(number) if self._unchanged(other, commit, progress)), None)

    def _neighbours(self, number: int) -> list[str]:
        """Return the nearest known commits below and above: those that hold most, and least."""
        numbers = [self._trail.numbers[commit] for commit in (*self._records.taken, *self._records.alike)]
        below = max(
            (other for other in numbers if other in self._trail.held[number]), key=lambda other: len(self._trail.held[other]), default=None
        )
        above = min(
            (other for other in numbers if number in self._trail.held[other]), key=lambda other: len(self._trail.held[other]), default=None
        )
        return [
            self._history.good if below is None else self._history.commits[below].id,
            self._history.bad if above is None else self._history.commits[above].id,
        ]

    def _unchanged(self, base: str, head: str, progress: Progress) -> bool:
        """Return whether no function that any workload calls differs between two commits, nor what these depend on.

        Only asked where nothing but sources differs; both are built as they are, which measuring would do as well.
        """
        repository, request = self._pins.base.repository, self._request
        if not kinship.are_sources([file for file in changed_files(repository, base, head) if not self._inert(file)]):
            return False
        pair = resolve(repository, (base, head), snapshots=request.cache / "snapshots")
        idle = {skip.name for skip in self._ends.findings.skipped if skip.kind.is_idle}
        cache, wait_s = request.cache, request.config.measure.wait_s
        with storage.in_use(cache, progress), storage.at_work(cache, progress, wait_s=wait_s) as room, BuildCache(cache) as builds:
            workshop = Workshop(
                pins={Side.BASE: pair.base, Side.HEAD: pair.head},
                config=request.config.build,
                environment=request.environment,
                cache=builds,
                root=cache,
                plans=room,
                packs=request.packs,
                progress=progress,
            )
            return kinship.unchanged(workshop, request.config.probes.depth, idle)

    def _search(self) -> Search:
        count = len(self._history.commits)
        contains = np.zeros((count, count), dtype=bool)
        for number, held in enumerate(self._trail.held):
            contains[number, list(held)] = True
        prior = np.array([float(same == number) for number, same in enumerate(self._history.same)])
        return Search(contains, prior / max(prior.sum(), 1.0), self._symptom.expected, self._symptom.exact)

    def _known(self) -> Knowledge:
        numbers, records = self._trail.numbers, self._records
        return Knowledge(
            readings={numbers[commit]: taken.reading for commit, taken in records.taken.items()},
            skipped=[same for commit in records.skipped for same in self._same_as(numbers[commit])],
            trials=[StepTrial(frozenset(numbers[suspect] for suspect in tried.suspects), tried.reading) for tried in records.tried],
            ties=[(numbers[commit], numbers.get(other)) for commit, other in records.alike.items()],
            measurements=records.measurements,
        )

    def _same_as(self, number: int) -> list[int]:
        """Return the commits that are built from the same files as this one, itself included."""
        return [other for other, same in enumerate(self._history.same) if same == number]

    def _terms(self) -> Terms:
        count = len(self._history.commits)
        ended = self._trail.numbers.get(self._history.bad)
        excluded = {*self._records.skipped, *self._records.alike}
        eligible = np.array([same == number for number, same in enumerate(self._history.same)])
        for number, commit in enumerate(self._history.commits):
            if commit.id in excluded or (ended is not None and self._history.same[ended] == number):
                eligible[number] = False
        cost = np.ones(count)
        cost[[self._trail.numbers[commit] for commit in self._records.taken]] = AGAIN
        errors = [taken.reading.error * math.sqrt(taken.times) for taken in self._records.taken.values()]
        return Terms(eligible, cost, median(errors) if errors else self._symptom.expected.error, self._question.confidence)

    def _announce(self, doing: str) -> str:
        """Return the title of a step: what is done, where the search stands, and how long it may take."""
        weights = self._search().posterior(self._known())
        best = int(weights.argmax())
        left = int((weights >= (1 - self._question.confidence) / len(weights)).sum())
        steps = len(self._records.taken) + len(self._records.skipped) + len(self._records.alike) + len(self._records.tried)
        pace_s = self._records.spent_s / steps if steps else None
        ahead = posterior.remaining(weights) + 1
        said = [f"{_plural(left, 'commit')} left"]
        if weights[best] >= min(LIKELIER / left, 0.5):
            percent = int(100 * min(float(weights[best]), HIGHEST))  # rounded down: it never says 100
            said.append(f"likeliest {self._history.commits[best].id[:10]} with {percent} %")
        if pace_s:
            said.append(f"about {_waiting(pace_s * ahead)} left")
        return f"{doing} ({', '.join(said)})"

    def _measured(self) -> list[MeasuredCommit]:
        order = sorted(self._records.taken, key=self._trail.numbers.__getitem__)
        taken = self._records.taken
        return [
            MeasuredCommit(
                self._trail.revision(commit),
                self._standing(taken[commit].reading),
                ratio_of(taken[commit].reading, RUNS * taken[commit].times),
                taken[commit].times,
            )
            for commit in order
        ]

    def _standing(self, reading: Reading) -> CommitStanding:
        holds = self._search().holds(reading)
        return CommitStanding.BAD if holds >= SURE else CommitStanding.GOOD if holds <= 1 - SURE else CommitStanding.UNCLEAR

    def _key(self) -> str:
        """Return what the state of this search is kept under: the question as it was put."""
        question, config = self._question, self._request.config
        parts = [
            __version__,
            self._pins.base.repository.name,
            *self._request.revisions,
            question.function,
            question.metric,
            question.first_parent,
            question.paths,
            codec.encode((config.build, config.workloads, config.services, config.probes, config.counters, config.compare)),
            inputs.digest(self._request.repository, config.workloads),
        ]
        return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).hexdigest()

    def _resumed(self) -> SearchRecords:
        """Return what an earlier search for the same left behind, as far as it still holds."""
        fresh = SearchRecords(self._history.good, self._history.bad)
        try:
            earlier = state.load(self._state)
        except RecordingError as error:
            self._progress.note(f"{error}; what was measured is kept")
            earlier = None
        if earlier is None:
            return fresh
        if (earlier.good, earlier.bad) != (fresh.good, fresh.bad):
            self._rewritten("since the search was begun", earlier.bad if earlier.bad != fresh.bad else earlier.good)
            return fresh
        if not {*earlier.taken, *earlier.skipped, *earlier.alike} <= self._trail.numbers.keys():
            return fresh
        self._progress.note(f"going on with a search that has made {_plural(earlier.measurements, 'measurement')}")
        return earlier

    def _look_at_names(self) -> None:
        """Say so where the names of the ends have come to mean other commits: the search goes on with those that it began with."""
        repository = self._pins.base.repository
        for pin in (self._pins.base, self._pins.head):
            now = repository.ask("rev-parse", "--verify", "--quiet", f"{pin.revision.rev}^{{commit}}").output.strip()
            if now != pin.commit and not any(note.slug == "history-rewritten" for note in self._notes):
                self._rewritten("during the search", pin.commit)

    def _rewritten(self, when: str, commit: str) -> None:
        note = Note("history-rewritten", f"history was rewritten {when}: an end was {commit[:10]}; what is unchanged is not measured again")
        self._notes.append(note)
        self._progress.note(note.text)


def measuring(config: Config, ends: Findings) -> Config:
    """Return how single commits are measured: few runs, and counts where something between the ends grew by exact ones.

    It depends on the ends alone, so that another function's bisect finds the same builds and recordings.
    """
    exact = any(
        difference.exact and difference.expected.effect > 0
        for function in ends.functions
        for difference in symptom.symptoms(ends, function, None)
    )
    return replace(
        config,
        workloads=tuple(replace(workload, runs=min(workload.runs, RUNS)) for workload in config.workloads),
        counters=replace(config.counters, software=config.counters.software and exact),
    )


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _waiting(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _different(commits: CommitHistory) -> int:
    return sum(same == number for number, same in enumerate(commits.same))
