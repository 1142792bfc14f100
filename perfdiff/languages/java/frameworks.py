"""Frameworks of Java's benchmarks and tests, which perfdiff's own interpreter lists in built trees."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from perfdiff.config import Suite, WorkloadConfig
from perfdiff.languages import listing
from perfdiff.languages.frameworks import Framework, Material
from perfdiff.languages.java.suites.launchers import GIVEN
from perfdiff.languages.java.traits import TRAITS

_DEPTH = 3  # folders of modules within modules
_MOST_FILES = 200  # build files that are read; a project of 200 modules names its libraries in one of the first
_BUILD_FILE = re.compile(r"pom\.xml|build\.xml|ivy\.xml|.*\.gradle(\.kts)?|.*\.versions\.toml")
_NO_MODULES = frozenset(("src", "target", "build", "node_modules"))  # what they hold is no module of its own
_LIBRARIES = ("lib", "libs", "jars")
_PATTERN = re.compile(r"[\w.$*?, ]*")
_OF_TESTNG = (
    "tests of TestNG are not listed: run a class of them, as `perfdiff BASE HEAD -- java -cp "
    "'target/classes:target/test-classes:target/dependency/*' org.testng.TestNG -testclass org.example.ParserTest`"
)


class _Launched(Framework):
    """A framework whose suites are listed and started by the module of its name in `suites`."""

    def command(self, project: Path, suite: Suite, workload: WorkloadConfig) -> str:
        """Return what lists the suite."""
        return self._called("listed", suite)

    def provision(self, suite: Suite) -> str:
        """Return what keeps the arguments of JVMs, and our driver, on a machine that lists nothing."""
        return self._called("provided", suite)

    def _called(self, function: str, suite: Suite) -> str:
        return f"{listing.command(f'perfdiff.languages.java.suites.{self.name}:{function}', suite.what)} {GIVEN}"


class Jmh(_Launched):
    """Benchmarks of the Java Microbenchmark Harness."""

    name, title, material = "jmh", "JMH", Material.BENCHMARKS
    wanted = 'a jar of benchmarks or a folder of classes, such as "target/benchmarks.jar", or ""'

    def find(self, project: Path) -> Iterator[str]:
        """Yield all benchmarks, where a build file or a library names JMH."""
        if _names(project, re.compile(r"openjdk\.jmh|\bjmh-core\b|champeau\.(?:gradle\.)?jmh")):
            yield ""


class JUnit(_Launched):
    """Tests of JUnit 4 and 5."""

    name, title, material = "junit", "JUnit", Material.TESTS
    wanted = 'names of test classes, such as "Parser*Test", or ""'

    def read(self, value: object) -> str | None:
        """Return names with `*` and `?`."""
        return value if isinstance(value, str) and _PATTERN.fullmatch(value) else None

    def find(self, project: Path) -> Iterator[str]:
        """Yield all tests, where a build file or a library names JUnit."""
        if _names(project, re.compile(r"\bjunit\b|junit-?(?:4|jupiter|platform|vintage)|org\.springframework\.boot")):
            yield ""

    def unlisted(self, project: Path) -> str | None:
        """Return how a user runs tests of TestNG, which are not listed; None where the project has none."""
        return _OF_TESTNG if _names(project, re.compile(r"\btestng\b")) else None


FRAMEWORKS = (Jmh(), JUnit())


def _names(project: Path, framework: re.Pattern[str]) -> bool:
    """Return whether a project that is built by Java's tools names a framework: in the files of its build, or by a library that it has."""
    if not any((project / file).is_file() for file in TRAITS.files.packaging):
        return False
    libraries = (path.name for folder in _LIBRARIES for path in (project / folder).glob("*.jar"))
    files = itertools.islice(_build_files(project), _MOST_FILES)
    return any(map(framework.search, itertools.chain(libraries, (file.read_text(encoding="utf-8", errors="replace") for file in files))))


def _build_files(project: Path) -> Iterator[Path]:
    """Yield the files that say how a project and its modules are built, those of the project first."""
    folders = [project]
    for _ in range(_DEPTH + 1):
        below: list[Path] = []
        for folder in folders:
            for entry in _entries(folder):
                if entry.is_file() and _BUILD_FILE.fullmatch(entry.name):
                    yield Path(entry.path)
                elif entry.is_dir(follow_symlinks=False) and entry.name not in _NO_MODULES and not entry.name.startswith("."):
                    below.append(Path(entry.path))
        folders = below


def _entries(folder: Path) -> Sequence[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except PermissionError:
        return ()
