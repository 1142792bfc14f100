"""Frameworks of PHP's benchmarks and tests, whose classes drivers in the project's PHP list and run."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator
from pathlib import Path

from perfdiff.config import WorkloadConfig
from perfdiff.languages import listing
from perfdiff.languages.answers import answer
from perfdiff.languages.frameworks import Framework, Material, Needs

_AUTOLOAD = "vendor/autoload.php"
_MOST_FILES = 2000  # that are looked at for a benchmark or a test


class _PhpFramework(Framework):
    """A framework whose classes are found by Composer's autoloader."""

    def read(self, value: object) -> str | None:
        """Return words that the shell can split."""
        try:
            return value if isinstance(value, str) and shlex.split(value) is not None else None
        except ValueError:
            return None

    def command(self, project: Path, workload: WorkloadConfig) -> str:
        """Return what lists the suite in a built tree."""
        assert workload.suite is not None, "only suites are listed"
        return listing.command(f"perfdiff.languages.php.suites.{self.name}:listed", workload.suite.what)

    def needs(self, project: Path) -> Needs:
        """Return that both revisions have what Composer laid in the checkout, where the repository does not hold it."""
        if not (project / _AUTOLOAD).is_file():
            return Needs()
        tracked = answer(["git", "-C", project, "ls-files", "--", _AUTOLOAD])
        return Needs() if tracked.stdout else Needs(overlay=("vendor",))


class Phpbench(_PhpFramework):
    """Subjects of phpbench's benchmarks, which need not be installed."""

    name, title, material = "phpbench", "phpbench", Material.BENCHMARKS
    wanted = 'paths, or regular expressions of names such as "SortBench::benchMerge", or ""'

    def find(self, project: Path) -> Iterator[str]:
        """Yield all benchmarks, where phpbench is configured, or one of its usual folders has some."""
        files = ("phpbench.json", "phpbench.json.dist", ".phpbench.json", ".phpbench.json.dist")
        folders = ("benchmarks", "benchmark", "bench", "tests/Benchmark", "tests/Benchmarks", "tests/benchmarks", "tests/Bench")
        if any((project / name).is_file() for name in files) or any(_has(project / name, "*Bench.php") for name in folders):
            yield ""


class Phpunit(_PhpFramework):
    """Tests that PHPUnit runs."""

    name, title, material = "phpunit", "PHPUnit", Material.TESTS
    wanted = 'arguments of PHPUnit, such as "tests/SortTest.php" or "--testsuite=unit", or ""'

    def find(self, project: Path) -> Iterator[str]:
        """Yield all tests that its configuration names, else the folders that usually have them."""
        if any((project / name).is_file() for name in ("phpunit.xml", "phpunit.dist.xml", "phpunit.xml.dist")):
            yield ""
        elif folder := next((name for name in ("tests", "test") if _has(project / name, "*Test.php")), None):
            yield folder


FRAMEWORKS = (Phpbench(), Phpunit())


def _has(folder: Path, pattern: str) -> bool:
    """Return whether there is such a file among the first ones of a folder."""
    names = (path for path in itertools.islice(folder.rglob("*.php"), _MOST_FILES))
    return any(path.match(pattern) for path in names)
