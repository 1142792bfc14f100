"""Fuzz targets of a project: functions that take bytes, with folders of such bytes, which a main of perfdiff's own calls.

The build links them (`build/fuzzing.py`), and leaves in the project's folder of the built tree what came of each.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from perfdiff.config import INPUT, BuildConfig, Suite, WorkloadConfig
from perfdiff.errors import ConfigError
from perfdiff.languages import listing
from perfdiff.languages.c.suites import seeds
from perfdiff.languages.c.suites.attempts import Attempts, quoted, why
from perfdiff.languages.c.suites.checkout import SOURCES, Folder, folders
from perfdiff.languages.frameworks import Framework, Material, Needs
from perfdiff.languages.listing import Benchmark, SuiteListing, Values

FOLDER = Path("perfdiff-fuzz")  # of the built tree, with programs of fuzz targets
LINKED = FOLDER / "targets.json"
MOST_TARGETS = 8  # that are linked where nobody names one, until some of them are chosen

_DEFINITION = re.compile(rb"\bLLVMFuzzerTestOneInput\s*\([^;{}]*\)\s*(?:noexcept\s*)?\{")
_MOST_READ = 200  # files that are read in search of targets
_READ_BYTES = 1 << 20
_LIBFUZZER = b"libFuzzer: "  # in what its main prints
_SAME_RUNS = ("-seed=1", "-timeout=0")  # and no signals of an alarm clock
_PLACE = f"{{{INPUT}}}"


@dataclass(frozen=True, slots=True)
class FuzzTarget:
    """A fuzz target of a built tree: its `program`, and its `seeds` by their paths in the project's folder, or why it has none."""

    source: str
    program: str = ""
    seeds: tuple[str, ...] = ()
    failure: str = ""
    takes_calls: bool = True  # its main is perfdiff's

    @property
    def name(self) -> str:
        """Return the name of the target: that of its source without the suffix."""
        return Path(self.source).stem


class FuzzTargets(Framework):
    """Functions that libFuzzer calls, with seeds."""

    name, title, material = "fuzz", "fuzz targets", Material.FUZZ_TARGETS
    wanted = 'the source of a fuzz target, and its seeds where they are not found, such as "fuzz/parse.c fuzz/corpus/*", or ""'

    is_words = True

    def find(self, project: Path) -> Iterator[str]:
        """Yield "", which means all targets, if one of them has seeds."""
        there = folders(project)
        if any(seeds.seeds(project, source, there) for source in _sources(project, there)[:MOST_TARGETS]):
            yield ""

    def command(self, project: Path, suite: Suite, workload: WorkloadConfig) -> str:
        """Return the command that lists the targets that the build linked."""
        return listing.command("perfdiff.languages.c.suites.fuzz:listed", *shlex.split(suite.what)[:1])

    def needs(self, project: Path, values: Sequence[str]) -> Needs:
        """Return the targets for the build to link, and that both revisions have the seeds of the checkout."""
        there = folders(project)
        targets: dict[str, tuple[str, ...]] = {}
        for value in values:
            words = shlex.split(value)
            for source in [Path(words[0])] if words else _sources(project, there)[:MOST_TARGETS]:
                if source.suffix in SOURCES and not (project / source).is_file():
                    raise ConfigError(f"fuzz = '{value}': there is no {source} in {project}; correct its path", slug="config-fuzz")
                own = _named(project, words[1:]) if len(words) > 1 else seeds.seeds(project, source, there)
                targets[source.as_posix()] = own
        overlay = dict.fromkeys(seed for own in targets.values() for seed in own)
        return Needs(overlay=tuple(overlay), build={"fuzz_targets": tuple(shlex.join([source, *own]) for source, own in targets.items())})

    def needed(self, build: BuildConfig, commands: Collection[str]) -> BuildConfig:
        """Return builds that link the targets whose programs these commands run."""
        words = {word for command in commands for word in shlex.split(command)}
        run = (text for text in build.fuzz_targets if f"./{linked_to(Path(shlex.split(text)[0]))}" in words)
        return replace(build, chosen_targets=tuple(run))


def linked_to(source: Path) -> Path:
    """Return where the program of a target's source is, relative to the project's folder of a built tree."""
    return FOLDER / "-".join(source.with_suffix("").parts)


def _sources(project: Path, there: Sequence[Folder]) -> list[Path]:
    """Return the sources of fuzz targets in folders of a project."""
    names = (folder.path / name for folder in there for name in folder.names if "fuzz" in f"{folder.path}/{name}".lower())
    named = sorted(file for file in names if file.suffix in SOURCES)
    return [file for file in named[:_MOST_READ] if _DEFINITION.search(_beginning(project / file))]


def _beginning(file: Path) -> bytes:
    try:
        with file.open("rb") as content:
            return content.read(_READ_BYTES)
    except OSError:
        return b""


def _named(project: Path, patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the seeds that words mean: files, patterns, and folders with all in them; raise ConfigError where one means nothing."""
    named: set[Path] = set()
    for pattern in patterns:
        relative = Path(os.path.normpath(pattern))
        if relative.is_absolute() or ".." in relative.parts:
            raise ConfigError(f"fuzz: '{pattern}' is outside of {project}; put the seeds into the project", slug="config-fuzz")
        places = project.glob(str(relative / "**/*" if (project / relative).is_dir() else relative))
        files_of_pattern = {place.relative_to(project) for place in places if place.is_file()}
        if not files_of_pattern:
            raise ConfigError(f"fuzz: no file is meant by '{pattern}' in {project}; correct it, or put seeds there", slug="config-fuzz")
        named |= files_of_pattern
    return tuple(map(Path.as_posix, named)) if len(named) == 1 else seeds.spread(seeds.sizes(project, named))


def listed(what: str = "") -> SuiteListing:
    """Return the targets that the build linked, or one by its source, called with each of their seeds."""
    try:
        targets = [FuzzTarget(**{**target, "seeds": tuple(target["seeds"])}) for target in json.loads(LINKED.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError) as error:
        return SuiteListing(failures={what or FuzzTargets.title: f"the build has linked none: {error}"})
    attempts, names = Attempts.within_limit(), [target.name for target in targets]
    benchmarks, failures, starts_s = dict[str, Benchmark](), dict[str, str](), [0.0]
    for target in targets:
        if what not in ("", target.source):
            continue
        name = target.name if names.count(target.name) == 1 else target.source
        if target.failure or not target.seeds:
            failures[name] = target.failure or f'it has no seeds; name them: fuzz = "{target.source} FOLDER"'
            continue
        timings = {seed: timing(target, seed, attempts) for seed in target.seeds}
        points: dict[Values, tuple[float, bool]] = {}
        for seed, call in timings.items():
            if isinstance(call, str):
                failures[f"{name} {seed}"] = call
            else:
                points[seed,] = call.call_s, call.is_repeatable
                starts_s.append(call.start_s)
        if points:
            benchmarks[name] = Benchmark(name, _command(target), parameters=(INPUT,), points=points)
    return SuiteListing(benchmarks, failures, max(starts_s))


@dataclass(frozen=True, slots=True)
class CallTime:
    """What a start of a process and a call in it take, and whether one process can make more calls."""

    start_s: float
    call_s: float
    is_repeatable: bool


def timing(target: FuzzTarget, seed: str, attempts: Attempts) -> CallTime | str:
    """Return how long a call with a seed takes, or why it fails."""
    program = f"./{target.program}"
    if not target.takes_calls:
        if not is_libfuzzer(Path(target.program)):
            run = attempts.run([program, seed])
            return why(run) or CallTime(0.0, run.cpu_s, is_repeatable=False)
        command = _command(target)
        start = attempts.start(command.replace(_PLACE, os.devnull).replace(listing.CALLS, "1"))
        call_s = attempts.seconds_of_call(command.replace(_PLACE, shlex.quote(seed)), start)
        return call_s if isinstance(call_s, str) else CallTime(start.cpu_s, call_s, is_repeatable=True)
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as file:
        run = attempts.run([program, seed, "0", file.name])
        times_s = file.read().split()
    if run.code != 0 or len(times_s) != 2:
        return why(run) or "it ends the process"
    return CallTime(float(times_s[0]), float(times_s[1]), is_repeatable=True)


def _command(target: FuzzTarget) -> str:
    program = quoted(f"./{target.program}")
    if target.takes_calls:
        return f"{program} {_PLACE} {listing.CALLS}"
    if is_libfuzzer(Path(target.program)):  # which says on standard error how long it took
        return f"{program} {' '.join(_SAME_RUNS)} -runs={listing.CALLS} {_PLACE} 2>/dev/null"
    return f"{program} {_PLACE}"


def is_libfuzzer(program: Path) -> bool:
    """Return whether a program has the main of libFuzzer."""
    return _LIBFUZZER in program.read_bytes()


def written(targets: Sequence[FuzzTarget]) -> str:
    """Return the text of `LINKED`."""
    return json.dumps([asdict(target) for target in targets])
