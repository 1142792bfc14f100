"""The outcome of a comparison: its findings with their evidence, from the cache or analysed now."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from perfdiff import storage
from perfdiff.analysis.findings import Findings
from perfdiff.concluded import StoredFindings, concluded
from perfdiff.config import CompareConfig, Config
from perfdiff.engines.engine import Engines
from perfdiff.errors import RecordingError
from perfdiff.progress import Progress, Stopwatch
from perfdiff.records import recorded, store
from perfdiff.records.places import PlaceExperiment
from perfdiff.records.recorded import CachedTables, RecordedExperiment
from perfdiff.records.schema import Experiment, SampleTable, Side
from perfdiff.records.thresholds import as_configured
from perfdiff.revisions.repository import find_repository

if TYPE_CHECKING:
    from perfdiff.analysis.annotations.consequences import Consequences
    from perfdiff.fuzzing.findings import SearchFindings

TABLES = 128  # sample tables held while they are analysed and drawn, which reads each several times; 2 MB each, as a rule


@dataclass(frozen=True, slots=True)
class Outcome:
    """The findings, the recorded calls, runs and counts of lines behind them, and what they mean for who uses the program.

    `inputs` are those that a search found beyond the workloads' own, None where nobody searched.
    """

    findings: Findings
    samples: Callable[[int, Side], SampleTable | None]
    experiment: Experiment | None = None
    counts: Callable[[int, Side], SampleTable | None] = recorded.nothing
    lines: Callable[[], PlaceExperiment | None] = recorded.no_lines
    consequences: Consequences | None = None
    inputs: SearchFindings | None = None

    @property
    def drawn(self) -> Callable[[int, Side], SampleTable | None]:
        """Return the loader of the calls that reports draw: those of several machines at the pace of one."""
        if self.experiment is None or len({run.machine for run in self.experiment.runs}) < 2:
            return self.samples
        from perfdiff.analysis.sums.levelling import levelled

        return levelled(self.experiment, self.samples).samples

    @property
    def recorded(self) -> RecordedExperiment | None:
        """Return the recorded experiment, None if only its findings were kept."""
        return RecordedExperiment(self.experiment, self.samples, self.counts, self.lines) if self.experiment else None


def analysed(
    recording: RecordedExperiment,
    config: CompareConfig,
    progress: Progress,
    stored: StoredFindings | None = None,
    engines: Engines = nullcontext,
) -> Outcome:
    """Compare the two sides of a recording; use the findings in `stored` if they are there, else store them there.

    Functions are analysed by what `engines` gives, or on this machine.
    """
    watch = Stopwatch(progress)
    samples = CachedTables(recording.samples, TABLES)
    findings = stored.load() if stored else None
    if findings is None:
        from perfdiff.analysis.analysis import analyse  # which takes half a second of CPU to load

        watch.stage("analysing", None)
        with engines() as engine:
            findings = analyse(recording.experiment, samples, config, recording.counts, recording.lines(), engine)
        if stored:
            stored.save(findings)
    stages = {**findings.stages, **watch.seconds}
    return Outcome(replace(findings, stages=stages), samples, recording.experiment, recording.counts, recording.lines)


def last(repository: Path, cache: Path, config: Config, progress: Progress) -> Outcome:
    """Return the outcome of the last comparison of a repository; raise RecordingError if there is none."""
    name = find_repository(repository).name
    with storage.in_use(cache, progress):
        comparison = storage.last(cache, name)
        if comparison is None or not store.exists(storage.experiment(cache, comparison)):
            raise RecordingError("no comparison of this repository is in the cache; run `perfdiff BASE HEAD` first", slug="no-comparison")
        folder = storage.experiment(cache, comparison)
        store.verify(folder)  # what was concluded from it would not show that it is damaged
        recording = recorded.load(folder)
        return judged(replace(recording, experiment=comparison.names(recording.experiment)), folder, cache, config, progress)


def judged(  # noqa: PLR0913, PLR0917 (what was recorded, where it is kept, and how and where it is judged)
    recording: RecordedExperiment, folder: Path, cache: Path, config: Config, progress: Progress, engines: Engines = nullcontext
) -> Outcome:
    """Compare the two sides of the experiment in `folder`; what was concluded from it before, by the same code and thresholds, is kept."""
    experiment = replace(recording.experiment, points=as_configured(recording.experiment.points, config.workloads))
    stored = concluded(cache, folder, experiment, config.compare)
    return analysed(replace(recording, experiment=experiment), config.compare, progress, stored, engines)
