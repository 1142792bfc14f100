"""Frameworks of PHP's benchmarks and tests, whose classes drivers in the project's PHP list and run."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from perfdiff.config import Suite, WorkloadConfig
from perfdiff.languages import listing
from perfdiff.languages.answers import answer
from perfdiff.languages.frameworks import Framework, Material, Needs

_INSTALL = "composer install --no-interaction --no-progress"
_OF_PEST = "tests of Pest are not listed: run a file of them, as `perfdiff BASE HEAD -- vendor/bin/pest tests/Unit/ParserTest.php`"
_MOST_FILES = 2000  # that are looked at for a benchmark or a test


class _PhpFramework(Framework):
    """A framework whose classes are found by Composer's autoloader."""

    is_words = True

    def command(self, project: Path, suite: Suite, workload: WorkloadConfig) -> str:
        """Return what lists the suite in a built tree."""
        return listing.command(f"perfdiff.languages.php.suites.{self.name}:listed", suite.what)

    def needs(self, project: Path, values: Sequence[str]) -> Needs:
        """Return that both revisions have what Composer laid in the checkout, or what it lays for each, where no commit holds it."""
        composer = project / "composer.json"
        try:
            folder = json.loads(composer.read_text(encoding="utf-8"))["config"]["vendor-dir"]
        except (OSError, ValueError, LookupError, TypeError):
            folder = None
        vendor = folder if isinstance(folder, str) else "vendor"
        if (project / vendor / "autoload.php").is_file():
            tracked = answer(["git", "-C", project, "ls-files", "--", f"{vendor}/autoload.php"])
            return Needs() if tracked.stdout else Needs(overlay=(vendor,))
        return Needs(build={"command": _INSTALL}) if composer.is_file() and shutil.which("composer") else Needs()


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

    def unlisted(self, project: Path) -> str | None:
        """Return how a user runs tests of Pest, which PHPUnit does not find; None where the project has none."""
        return _OF_PEST if (project / "tests/Pest.php").is_file() else None


FRAMEWORKS = (Phpbench(), Phpunit())


def _has(folder: Path, pattern: str) -> bool:
    """Return whether there is such a file among the first ones of a folder."""
    return any(path.match(pattern) for path in itertools.islice(folder.rglob("*.php"), _MOST_FILES))
