"""Tests that are commands, as CTest and Meson run them: each in a folder, with variables, and an end that is expected.

Commands that run one program of the project over several files are one benchmark, whose parameter is the file.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfdiff.config import INPUT
from perfdiff.languages.c.suites.attempts import Attempts, quoted, why
from perfdiff.languages.c.suites.programs import is_program
from perfdiff.languages.listing import CASES, Batch, Benchmark, SuiteListing, TriedCommand, Values

_BUILDERS = frozenset(("make", "gmake", "ninja"))
_BROKEN = range(126, 128 + 65)  # exit codes of a shell: what cannot be executed, is not there, or was ended by one of 64 signals
_BUILDS = frozenset(("--build", "--build-and-test"))  # options of cmake and ctest


@dataclass(frozen=True, slots=True)
class Expected:
    """How a test has to end: with an output that has one of the patterns of `passes`, or with code 0; and without those of `fails`."""

    fails_on_purpose: bool = False
    passes: tuple[str, ...] = ()
    fails: tuple[str, ...] = ()
    skip_code: int | None = None

    def why_not(self, attempt: TriedCommand) -> str:
        """Return why a test did not end so, "" where it did."""
        if attempt.code is None or attempt.code == 0 or attempt.code in _BROKEN:
            reason = why(attempt)
        elif attempt.code == self.skip_code:
            return "is skipped"
        else:
            reason = "" if self.passes or self.fails_on_purpose else why(attempt)
        output = attempt.output + attempt.errors
        if not reason and self.passes and not any(_matches(pattern, output) for pattern in self.passes):
            reason = "its output is not that of a test that passes"
        if not reason and any(_matches(pattern, output) for pattern in self.fails):
            reason = "its output is that of a test that fails"
        return reason


@dataclass(frozen=True, slots=True)
class CommandTest:
    """A test: its `words` run in `directory` with `variables`, each as the shell sets it, after the tests of `setups`."""

    name: str
    words: tuple[str, ...]
    directory: Path
    variables: tuple[str, ...] = ()
    setups: tuple[CommandTest, ...] = ()
    expected: Expected = Expected()
    limit_s: float = math.inf

    @property
    def builds(self) -> bool:
        """Return whether it compiles something: that is no work of the project's."""
        return Path(self.words[0]).name in _BUILDERS or not _BUILDS.isdisjoint(self.words)

    def text(self, at: int | None = None) -> str:
        """Return the shell command, for the current folder whatever its name; the word `at` is the place of a file in this folder."""
        up = os.path.relpath(Path.cwd(), self.directory)
        words = [self._local(os.path.normpath(word) if word.startswith("/") else word, up) for word in self.words]
        if is_program(self.directory / self.words[0]) and (self.directory / self.words[0]).is_relative_to(Path.cwd()):
            program = os.path.relpath(self.directory / self.words[0], self.directory)
            words[0] = program if "/" in program else f"./{program}"
        elif self.words[0].startswith("./") and "/" not in words[0]:
            words[0] = f"./{words[0]}"  # a script of the folder
        texts = [quoted(word) for word in words]
        if at is not None:
            texts[at] = f"{{{INPUT}}}" if up == "." else f"{quoted(up)}/{{{INPUT}}}"
        folder = os.path.relpath(self.directory)
        variables = [self._local(variable, up) for variable in self.variables]
        return " ".join([*([] if folder == "." else ["cd", quoted(folder), "&&"]), *variables, *texts])

    def without(self, at: int) -> CommandTest:
        """Return the test without its name and the word that names a file: what it has in common with tests of other files."""
        return replace(self, name="", words=(*self.words[:at], "", *self.words[at + 1 :]))

    def from_here(self) -> CommandTest:
        """Return the test as a command of the current folder."""
        places = {0, *(at for at, _ in self.files())}
        words = (str(self.directory / word) if at in places else word for at, word in enumerate(self.words))
        return replace(self, directory=Path.cwd(), words=tuple(map(os.path.normpath, words)))

    def files(self) -> Iterator[tuple[int, str]]:
        """Yield the places of words that name a file of the project's, and the names of these, where its program is the project's."""
        root = Path.cwd()
        program = self.directory / self.words[0]
        if not program.is_relative_to(root) or not is_program(program):
            return
        for at, word in enumerate(self.words[1:], start=1):
            path = Path(os.path.normpath(self.directory / word))
            if path.is_relative_to(root) and os.path.isfile(path):  # noqa: PTH113 - the other raises OSError at words too long for a name
                yield at, path.relative_to(root).as_posix()

    @staticmethod
    def _local(text: str, up: str) -> str:
        """Return a text with the current folder's name as the way `up` to it."""
        within = re.escape(str(Path.cwd()))
        return re.sub(rf"{within}(?=$|[^\w.-])", lambda _: up, text).removeprefix("./" if up == "." else "\0")


@dataclass(frozen=True, slots=True)
class Family:
    """Tests that are alike but for the file that their word `at` names; one alone has no such word."""

    name: str
    tests: tuple[CommandTest, ...]
    files: tuple[str, ...] = ()
    at: int | None = None


def listing_of(tests: Sequence[CommandTest], failures: Mapping[str, str], attempts: Attempts) -> SuiteListing:
    """Return a listing of tests, each run once; what fails is added to the failures."""
    left_out = {test.name: "builds something, which is for the build to do" for test in tests if test.builds}
    reasons = {**failures, **left_out}
    benchmarks: dict[str, Benchmark] = {}
    for family in _families([test for test in tests if not test.builds]):
        benchmark = _tried(family, attempts, reasons)
        if benchmark is not None:
            benchmarks[benchmark.name] = benchmark
    return SuiteListing(benchmarks, reasons)


def _tried(family: Family, attempts: Attempts, reasons: dict[str, str]) -> Benchmark | None:
    """Return the benchmark of tests that end as they have to, None where none does; add why others do not."""
    setup = " && ".join(f"({setup.text()})" for setup in family.tests[0].setups)
    if setup:
        attempts.shell(setup)
    text = _plainest(family, attempts)
    ends: dict[str, TriedCommand] = {}
    for name, test in zip(family.files or ("",), family.tests, strict=True):
        attempt = attempts.shell(_filled(text, name), min(test.limit_s, attempts.longest_s))
        reason = test.expected.why_not(attempt)
        if not reason and ends and attempt.code != next(iter(ends.values())).code:
            reason = "ends with another exit code than tests that are alike"
        if reason:
            reasons[test.name] = reason
        else:
            ends[name] = attempt
    if not ends:
        return None
    code = next(iter(ends.values())).code
    text += f" || test $? = {code}" if code else ""
    if family.files:
        return Benchmark(family.name, text, setup, (INPUT,), {(name,): (attempt.wall_s, False) for name, attempt in ends.items()})
    points: dict[Values, tuple[float, bool]] = {(): (ends[""].wall_s, False)}
    return Benchmark(family.name, text, setup, (), points, Batch(CASES, f"({text})", " && "))


def _plainest(family: Family, attempts: Attempts) -> str:
    """Return the command of tests: that from this folder where it prints the same, so that reports know the size of its file."""
    test = family.tests[0]
    text = test.text(family.at)
    if family.at is None:
        return text
    plain = test.from_here().text(family.at)
    first, second = (attempts.shell(_filled(command, family.files[0])) for command in (text, plain))
    return plain if (first.code, first.output, first.errors) == (second.code, second.output, second.errors) else text


def _families(tests: Sequence[CommandTest]) -> Iterator[Family]:
    """Yield tests that differ by a file together, the shortest file first, and the others one by one."""
    alike: dict[object, list[tuple[CommandTest, str]]] = {}
    keys = {test.name: {(at, test.without(at)): file for at, file in test.files()} for test in tests}
    for test in tests:
        for key, file in keys[test.name].items():
            alike.setdefault(key, []).append((test, file))
    taken: set[str] = set()
    for test in tests:
        if test.name in taken:
            continue
        at, members = max(
            ((key[0], [(other, file) for other, file in alike[key] if other.name not in taken]) for key in keys[test.name]),
            key=lambda candidate: len(dict(candidate[1])),
            default=(0, []),
        )
        files = {file: other for other, file in sorted(members, key=lambda member: (Path(member[1]).stat().st_size, member[1]))}
        if len(files) < 2:
            taken.add(test.name)
            yield Family(test.name, (test,))
            continue
        taken |= {other.name for other, _ in members}
        yield Family(_common_name([other.name for other in files.values()]), tuple(files.values()), tuple(files), at)


def _common_name(names: Sequence[str]) -> str:
    """Return what names of tests begin with, all of the first where that is nothing."""
    shared = itertools.takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    return "".join(letters[0] for letters in shared).rstrip(" ._-/:([") or names[0]


def _filled(text: str, name: str) -> str:
    return text.replace(f"{{{INPUT}}}", shlex.quote(name))


def _matches(pattern: str, output: str) -> bool:
    try:
        return re.search(pattern, output, re.MULTILINE) is not None
    except re.error:
        return False
