"""Programs with sample inputs: what tests call built programs with, each file as a point by its size."""

from __future__ import annotations

import os
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff.config import INPUT, Suite, WorkloadConfig
from perfdiff.languages import listing
from perfdiff.languages.c.suites import seeds, testing
from perfdiff.languages.c.suites.attempts import Attempts, quoted, why
from perfdiff.languages.c.suites.checkout import folders
from perfdiff.languages.c.suites.hints import hints
from perfdiff.languages.c.suites.testing import ProgramCall
from perfdiff.languages.frameworks import Framework, Material
from perfdiff.languages.listing import Benchmark, SuiteListing, Values

_FEWEST = 3  # samples by which growth is told
_MOST_WAYS = 8  # of calling programs: more are variants of options
_MOST = 0.5  # of the samples that have to be taken: tests of errors have others
_PLACE = f"{{{INPUT}}}"


class Samples(Framework):
    """Programs that tests call with files of a folder."""

    name, title, material = "samples", "sample inputs of tests", Material.SAMPLES
    wanted = 'a shell command that runs tests, whose calls of built programs with files are run, such as "make check", or ""'

    def find(self, project: Path) -> Iterator[str]:
        """Yield all samples, where a project that is compiled has some, and tests."""
        from perfdiff.configuration import buildsystem  # whose package asks for all frameworks as it is loaded

        if not buildsystem.compiles(project):
            return
        tests = testing.commands(project) or {"ctest", "meson"} & hints(project).frameworks
        if tests and seeds.samples_of_tests(project, folders(project)):
            yield ""

    def command(self, project: Path, suite: Suite, workload: WorkloadConfig) -> str:
        """Return what runs the tests, and lists how they call programs; samples are to be those of the checkout."""
        return listing.command("perfdiff.languages.c.suites.samples:listed", str(project), suite.what)


@dataclass(frozen=True, slots=True)
class Way:
    """A way in which tests call a program: the shell command, with a place for the sample, and what it is called."""

    name: str
    command: str

    def run(self, sample: str, attempts: Attempts) -> listing.TriedCommand:
        """Call the program with a sample."""
        return attempts.shell(self.command.replace(_PLACE, shlex.quote(sample)))


def listed(project: str, what: str) -> SuiteListing:
    """Return how the tests of a project call its programs with samples; `what` runs them, "" for what the tree tells."""
    attempts, place = Attempts.within_limit(), Path.cwd()
    built = {path for path in place.rglob("*") if path.is_file()}
    commands = (what,) if what else testing.commands(place)
    samples_by_way: dict[Way, set[str]] = {}
    failures: dict[str, str] = {} if commands else {Samples.title: "no command is known that runs tests"}
    for command in commands:
        samples_by_way = ways(testing.calls(command, attempts), built, place)
        if samples_by_way:
            break
        failures[command] = f"it calls no built program with {_FEWEST} files of different sizes, one at a time"
    benchmarks: dict[str, Benchmark] = {}
    for way, samples in samples_by_way.items():
        points = _points(way, samples, Path(project), attempts, failures)
        if points:
            name = way.name if way.name not in benchmarks else way.command
            benchmarks[name] = Benchmark(name, way.command, parameters=(INPUT,), points=points)
    return SuiteListing(benchmarks, failures)


def ways(calls: Sequence[ProgramCall], built: set[Path], place: Path) -> dict[Way, set[str]]:
    """Return the ways in which programs were called with files, and these by their paths in the project, the most used first.

    Programs and files are of those that were `built` or checked out: what a test makes is not there in a run.
    """
    samples_by_way: dict[Way, set[str]] = defaultdict(set)
    for call in calls:
        program = _program(call.program)
        if program in built:
            for way, sample in _with_samples(call, program, place):
                if sample in built:
                    samples_by_way[way].add(sample.relative_to(place).as_posix())
    sizes_by_way = {way: {Path(place, name).stat().st_size for name in names} for way, names in samples_by_way.items()}
    usable = [way for way, sizes in sizes_by_way.items() if len(sizes) >= _FEWEST]
    usable.sort(key=lambda way: -len(samples_by_way[way]))
    return {way: samples_by_way[way] for way in usable[:_MOST_WAYS]}


def _program(path: Path) -> Path:
    """Return what calls a program: of one that libtool keeps aside, the script in its place."""
    beside = path.parent.parent / path.name.removeprefix("lt-")
    return beside if path.parent.name == ".libs" and beside.is_file() else path


def _with_samples(call: ProgramCall, program: Path, place: Path) -> Iterator[tuple[Way, Path]]:
    """Yield a call with the place of a sample for each file that it names, and that file."""
    words = [f"./{name}" if "/" not in (name := os.path.relpath(program, call.folder)) else name, *call.words]
    inside = f"cd {shlex.quote(os.path.relpath(call.folder, place))} && " if call.folder != place else ""
    standard_input = call.standard_input if call.standard_input and call.standard_input.is_relative_to(place) else None
    redirected = f" < {shlex.quote(os.path.relpath(standard_input, call.folder))}" if standard_input else ""
    way_back = "" if call.folder == place else f"{os.path.relpath(place, call.folder)}/"
    if not call.folder.is_relative_to(place):
        return
    texts = [quoted(word) for word in words]
    for number, word in enumerate(words[1:], 1):
        option, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)
        sample = Path(os.path.normpath(call.folder / value))
        if sample.is_file():
            text = f"{quoted(f'{option}{equals}') if option else ''}{way_back}{_PLACE}"
            yield _way([*texts[:number], text, *texts[number + 1 :]], inside, redirected), sample
    if standard_input:
        yield _way(texts, inside, f" < {way_back}{_PLACE}"), standard_input


def _way(texts: Sequence[str], inside: str, redirected: str) -> Way:
    name = " ".join([Path(shlex.split(texts[0])[0]).name, *(text for text in texts[1:] if _PLACE not in text)])
    return Way(name, f"{inside}{' '.join(texts)}{redirected}")


def _points(
    way: Way, samples: set[str], project: Path, attempts: Attempts, failures: dict[str, str]
) -> Mapping[Values, tuple[float, bool]]:
    """Return the seconds of a program with samples, some of all sizes; add why it has none, or not all that were tried."""
    same = {name: Path(name).stat().st_size for name in samples if _is_same(Path(name), project / name)}
    chosen = seeds.spread(same)
    runs = {name: way.run(name, attempts) for name in chosen}
    failed = {name: why(run) for name, run in runs.items() if run.code != 0}
    if len(chosen) < _FEWEST:
        failures[way.name] = f"{len(samples) - len(same)} of {len(samples)} samples are not in the checkout, or not the same there"
        return {}
    if len(failed) > _MOST * len(chosen):
        name, reason = next(iter(failed.items()))
        failures[way.name] = f"{len(failed)} of {len(chosen)} samples are not taken outside of the tests ({name}: {reason})"
        return {}
    failures |= {f"{way.name} {name}": reason for name, reason in failed.items()}
    return {(name,): (run.cpu_s, False) for name, run in runs.items() if name not in failed}


def _is_same(file: Path, other: Path) -> bool:
    """Return whether two files hold the same: both revisions are compared with the samples of the checkout."""
    try:
        return file.read_bytes() == other.read_bytes()
    except OSError:
        return False
