"""Lists the benchmarks of JMH in a built tree: one process runs all of them for a moment, each with all of its parameters.

Runs call a benchmark in their own JVM, without a fork (`-f 0`), as often as perfdiff says (`-bs`), in JMH's mode of single shots: nothing
of it ends by the clock. One whose author measures single shots is called by iterations, as its fixtures belong to these. What fails in our
JVM is tried in a fork, which has the options that its author gives JVMs.
"""

from __future__ import annotations

import os
import re
import shlex
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perfdiff import temporary
from perfdiff.languages import listing
from perfdiff.languages.java.suites import built
from perfdiff.languages.java.suites.following import complaint, follow
from perfdiff.languages.java.suites.launchers import BuiltRevision, Launcher
from perfdiff.languages.java.suites.modules import files
from perfdiff.languages.listing import CALLS, Benchmark, SuiteListing

_MAIN = "org.openjdk.jmh.Main"
_MAIN_FILE = "org/openjdk/jmh/Main.class"
_BENCHMARKS = "META-INF/BenchmarkList"  # what JMH's compilers leave beside classes of benchmarks
# JMH has one process at a time otherwise, and perfdiff runs both revisions side by side; numbers are read with a point.
_OPTIONS = ("-Djmh.ignoreLock=true", "-Duser.language=en")
_MOMENT = ("-wi", "0", "-i", "4", "-r", "50ms", "-bm", "avgt")  # the fastest one is of compiled code, mostly
_SHOTS = ("-wi", "0", "-i", "3", "-bm", "ss")
_TELLING = ("-tu", "ns", "-opi", "1", "-foe", "false", "-wf", "0")
_IN_PROCESS, _IN_FORK = ("-f", "0"), ("-f", "1")
_VERSION = re.compile(r"-\d[\w.]*(?:-SNAPSHOT)?")
_ENTRY = re.compile(r"^JMH S \d+ (\S+) S \d+ \S+ S \d+ (\S+) S \d+ (\w+)", re.MULTILINE)
_NAME = re.compile(r"^\w[\w$]*(?:\.[\w$]+)+$", re.MULTILINE)
_HEADER = re.compile(r"# (Benchmark|Parameters): (.+)")
_RESULT = re.compile(r"Iteration +\d+: (?:≈ *)?([\d.]+)")
_CAUSE = re.compile(r"^(?:Caused by: )?([\w.$]+(?:Exception|Error)\b.*)$")
_FAILED, _OVER = "<failure>", "# Run complete"
_PARAMETER = re.compile(r"(?:^|, )([A-Za-z_]\w*) = ")
_COMMA = "JMH's option `-p` separates values by commas, and a value of its parameters has one"

Parameters = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Course:
    """What JMH has printed of a run so far: nanoseconds of a call by benchmark and parameters, and why others failed."""

    nanoseconds: dict[str, dict[Parameters, float]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    problem: str = ""
    _benchmark: str = ""
    _parameters: Parameters = ()
    _is_failing: bool = False

    def hear(self, line: str) -> None:
        """Take a line of what it prints."""
        if header := _HEADER.match(line):
            if header[1] == "Benchmark":
                self._benchmark, self._parameters, self._is_failing = header[2].strip(), (), False
            else:
                parts = _PARAMETER.split(header[2].strip()[1:-1])[1:]
                self._parameters = tuple(zip(parts[::2], parts[1::2], strict=True))
        elif result := _RESULT.match(line):
            points, nanoseconds = self.nanoseconds.setdefault(self._benchmark, {}), float(result[1])
            points[self._parameters] = min(nanoseconds, points.get(self._parameters, nanoseconds))
        elif line.startswith(_OVER):
            self._benchmark = ""
        elif _FAILED in line:
            self._is_failing = True
        elif self._is_failing and (cause := _CAUSE.match(line.strip())):
            self.failures[self._told] = cause[1]  # the last cause is the first one

    def stop(self, reason: str, errors: str = "") -> None:
        """Leave out what was running when its process was ended, or ended by itself."""
        if self._benchmark:
            self.failures[self._told] = reason
            self.nanoseconds.get(self._benchmark, {}).pop(self._parameters, None)
        elif not self.seen:
            self.problem = f"{reason}: {errors}"

    @property
    def seen(self) -> frozenset[str]:
        """Return the benchmarks that were begun."""
        return frozenset((*self.nanoseconds, *(name.partition(" ")[0] for name in self.failures)))

    @property
    def _told(self) -> str:
        values = ", ".join(f"{name} = {value}" for name, value in self._parameters)
        return f"{self._benchmark} ({values})" if values else self._benchmark


@dataclass(frozen=True, slots=True)
class _Benchmarks:
    """A jar or folder of benchmarks, what starts it, and which of its benchmarks are declared as single shots."""

    launcher: Launcher
    single: frozenset[str]

    def words(self, *rest: str) -> tuple[str, ...]:
        return (*self.launcher.words, _MAIN, *rest)


def listed(what: str, *given: str) -> SuiteListing:
    """Return the benchmarks of a jar, or of those in a folder, of all in the tree where it is empty; `given` says in which revision."""
    revision = BuiltRevision.read(given)
    end = time.monotonic() + listing.limit_s()
    places = _places(what, revision.build)
    benchmarks: dict[str, Benchmark] = {}
    failures = {} if places else {what or "benchmarks": _nothing(what)}
    start_s = 0.0
    for number, (place, class_path) in enumerate(places):
        holder = _Benchmarks(_launcher(revision, place, class_path), _single(Path(place)))
        own, failed = _listed(holder, benchmarks, (end - time.monotonic()) / (len(places) - number))
        failures |= {(place if name == "" else name): why for name, why in failed.items()}
        benchmarks |= own
        start_s = start_s or _start_s(holder, own, end)
    return SuiteListing(benchmarks, failures, start_s)


def provided(what: str, *given: str) -> SuiteListing:
    """Prepare to run benchmarks that another machine listed; return why they cannot be run, if so."""
    revision = BuiltRevision.read(given)
    places = _places(what, revision.build)
    for place, class_path in places:
        _launcher(revision, place, class_path)
    return SuiteListing(failures={} if places else {what or "benchmarks": _nothing(what)})


def _launcher(revision: BuiltRevision, place: str, class_path: Sequence[str]) -> Launcher:
    file = revision.kept / "-".join(("jmh", *Path(_VERSION.sub("", place)).parts))
    return Launcher.written(file, ".", class_path, _OPTIONS)


def _places(what: str, build: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return what holds benchmarks, each with its class path: what JMH is packed with first."""
    root = Path(what or ".")
    places = [place for place in _holders(root) if built.contains(place, _BENCHMARKS)]
    alone = [place for place in places if built.contains(place, _MAIN_FILE)]
    others = [place for place in places if place not in alone and not (alone and place.suffix == ".jar")]
    modules = built.modules(Path.cwd(), build).modules if others else ()
    started: list[tuple[str, tuple[str, ...]]] = [(place.as_posix(), (place.as_posix(),)) for place in alone]
    for place in others:
        for module in modules:
            class_path = [os.path.normpath(module.path(entry)) for entry in module.class_path]
            if place.as_posix() in class_path or place.is_relative_to(module.folder):
                started.append((place.as_posix(), tuple(dict.fromkeys((place.as_posix(), *class_path)))))
                break
    return started


def _holders(root: Path) -> Iterator[Path]:
    """Yield a jar, or those below a folder and the folders of classes in it that have a list of benchmarks."""
    for path in [root] if root.is_file() else files(root):
        if path.suffix == ".jar":
            yield path
        elif path.name == Path(_BENCHMARKS).name and path.parent.name == "META-INF":
            yield path.parent.parent


def _single(place: Path) -> frozenset[str]:
    """Return the benchmarks that are declared as single shots alone."""
    if place.is_dir():
        text = (place / _BENCHMARKS).read_text(encoding="utf-8", errors="replace")
    else:
        with zipfile.ZipFile(place) as archive:
            text = archive.read(_BENCHMARKS).decode(errors="replace")
    modes: dict[str, set[str]] = {}
    for entry in _ENTRY.finditer(text):
        modes.setdefault(f"{entry[1]}.{entry[2]}", set()).add(entry[3])
    return frozenset(name for name, own in modes.items() if own <= {"SingleShotTime"})


def _listed(holder: _Benchmarks, listed_before: Mapping[str, Benchmark], seconds: float) -> tuple[dict[str, Benchmark], dict[str, str]]:
    end = time.monotonic() + seconds
    asked = listing.tried(holder.words("-l"), max(seconds, 1.0))
    names = [name for name in _NAME.findall(asked.output) if name not in listed_before]
    if not names:
        return {}, {} if listed_before else {
            "": f"it lists no benchmark: {complaint(asked.output + asked.errors) or f'exit code {asked.code}'}"
        }
    benchmarks: dict[str, Benchmark] = {}
    failures: dict[str, str] = {}
    for is_single in (False, True):
        group = [name for name in names if (name in holder.single) == is_single]
        course = _run(holder, group, (*(_SHOTS if is_single else _MOMENT), *_IN_PROCESS), end)
        benchmarks |= _benchmarks(holder, course, _IN_PROCESS)
        again = [name for name in group if name in course.failures and name not in benchmarks]
        forked = _run(holder, again, (*(_SHOTS if is_single else _MOMENT), *_IN_FORK), end)
        in_fork = _benchmarks(holder, forked, _IN_FORK)
        benchmarks |= in_fork
        failures |= {name: why for name, why in course.failures.items() if name.partition(" ")[0] not in in_fork} | forked.failures
        failures |= {name: listing.UNTRIED for name in group if name not in course.seen}
    return benchmarks, failures


def _run(holder: _Benchmarks, names: Sequence[str], options: Sequence[str], end: float) -> _Course:
    """Run benchmarks for a moment each, in as many processes as that takes until all were begun."""
    course = _Course()
    while (left := [name for name in names if name not in course.seen]) and (left_s := end - time.monotonic()) > 0:
        with temporary.folder("perfdiff-jmh-") as room:
            report = room / "report"
            words = holder.words(*map(_exactly, left), *options, *_TELLING, "-o", str(report))
            part = _Course()
            follow(words, Path(), report, part, left_s)
        for name, points in part.nanoseconds.items():
            course.nanoseconds.setdefault(name, {}).update(points)
        course.failures |= part.failures
        if not part.seen:
            course.failures |= dict.fromkeys(left, part.problem or "it did not run")
    return course


def _benchmarks(holder: _Benchmarks, course: _Course, forks: Sequence[str]) -> dict[str, Benchmark]:
    benchmarks = {}
    for name, nanoseconds in course.nanoseconds.items():
        points = {values: taken for values, taken in nanoseconds.items() if not any("," in value for _, value in values)}
        if points:
            benchmarks[name] = _benchmark(holder, name, points, forks)
        elif nanoseconds:
            course.failures[name] = _COMMA
    return benchmarks


def _benchmark(holder: _Benchmarks, name: str, points: Mapping[Parameters, float], forks: Sequence[str]) -> Benchmark:
    names = tuple(key for key, _ in next(iter(points)))
    columns = [_numbers(column) for column in zip(*([value for _, value in point] for point in points), strict=True)]
    values = list(zip(*columns, strict=True)) or [()]
    called = ("-i", CALLS) if name in holder.single else ("-i", "1", "-bs", CALLS)
    given = [word for key in names for word in ("-p", f"{shlex.quote(key)}={{{key}}}")]
    words = (shlex.quote(_exactly(name)), *forks, "-bm", "ss", "-wi", "0", *called, *given, "-foe", "true", "-o", "/dev/null")
    seconds = {point: (nanoseconds / 1e9, True) for point, nanoseconds in zip(values, points.values(), strict=True)}
    return Benchmark(name, f"{holder.launcher.command} {_MAIN} {' '.join(words)}", parameters=names, points=seconds)


def _numbers(texts: Sequence[str]) -> Sequence[float | str]:
    """Return the values of a parameter as numbers, where they all are numbers that are written the same again."""
    for kind in (int, float):
        try:
            values = [kind(text) for text in texts]
        except ValueError:
            continue
        if [str(value) for value in values] == list(texts):
            return values
    return texts


def _exactly(name: str) -> str:
    return f"^{re.escape(name)}$"


def _start_s(holder: _Benchmarks, benchmarks: Mapping[str, Benchmark], end: float) -> float:
    """Return the CPU time of a process that calls the shortest benchmark once."""
    points = [(seconds, name, values) for name, benchmark in benchmarks.items() for values, (seconds, _) in benchmark.points.items()]
    if not points:
        return 0.0
    seconds, name, values = min(points, key=lambda point: point[0])
    given = [word for key, value in zip(benchmarks[name].parameters, values, strict=True) for word in ("-p", f"{key}={value}")]
    words = holder.words(_exactly(name), *_IN_PROCESS, "-bm", "ss", "-wi", "0", "-i", "1", *given, "-o", "/dev/null")
    return max(listing.tried(words, max(end - time.monotonic(), 1.0)).cpu_s - seconds, 0.0)


def _nothing(what: str) -> str:
    """Return what to do where the built tree has no benchmarks."""
    if what:
        return f"{what} is not in the built tree, or has no {_BENCHMARKS}: has the build made it?"
    for file in files(Path()):
        if file.name == "pom.xml":
            text = file.read_text(encoding="utf-8", errors="replace")
            for profile in re.findall(r"<profile>(.*?)</profile>", text, re.DOTALL):
                named = re.search(r"<id>\s*([\w.-]+)\s*</id>", profile)
                if named and re.search(r"jmh|bench", profile):
                    return f"nothing in the built tree has a {_BENCHMARKS}; {file} makes benchmarks in a profile: build with `-P{named[1]}`"
        elif file.suffix in (".gradle", ".kts") and "jmh" in file.read_text(encoding="utf-8", errors="replace"):
            return (
                f"nothing in the built tree has a {_BENCHMARKS}; with Gradle's plugin for JMH the task `jmhJar` makes it: build that, too"
            )
    return f"nothing in the built tree has a {_BENCHMARKS}: JMH's annotation processor has to run in the build"
