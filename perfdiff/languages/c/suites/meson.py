"""Lists the benchmarks and tests that Meson runs, by the files in which it tells of a build what `meson introspect` prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfdiff.languages.c.suites.attempts import Attempts, quoted
from perfdiff.languages.c.suites.commands import CommandTest, Expected, listing_of
from perfdiff.languages.c.suites.programs import MARKS, holds
from perfdiff.languages.c.suites.switches import build_folders, with_switches
from perfdiff.languages.listing import SuiteListing

_FILES = ("meson-info/intro-benchmarks.json", "meson-info/intro-tests.json")
_SKIPPED = 77  # the exit code of a test that is skipped


def listed(value: str, guessed: str = "") -> SuiteListing:
    """Return Meson's tests and benchmarks of the build folder `value`, of all builds below this folder if it is "".

    With `guessed`, tests that other frameworks list themselves are left out.
    """
    failures: dict[str, str] = {}
    tests: dict[str, CommandTest] = {}
    for folder in [Path(value)] if value else build_folders(_FILES[0]):
        for file in _FILES:
            for test in _tests(folder, file, failures):
                if not guessed or not any(holds(Path(test.words[0]), marks) for marks in MARKS.values()):
                    name = test.name if test.name not in tests else f"test {test.name}"
                    tests.setdefault(name, replace(test, name=name))
    return with_switches(listing_of(list(tests.values()), failures, Attempts.within_limit()))


def _tests(folder: Path, file: str, failures: dict[str, str]) -> Iterator[CommandTest]:
    try:
        entries: list[dict[str, Any]] = json.loads((folder / file).read_text(errors="replace"))
    except (OSError, ValueError) as error:
        failures[folder.as_posix()] = f"is no build of Meson's ({error})"
        return
    for entry in entries:
        words, variables = tuple(map(str, entry.get("cmd", ()))), entry.get("env") or {}
        if not words or not Path(words[0]).exists():
            failures[str(entry.get("name"))] = "its program was not built"
            continue
        test = CommandTest(
            str(entry.get("name")),
            words,
            Path(entry.get("workdir") or folder).absolute(),
            tuple(f"{name}={quoted(str(value))}" for name, value in variables.items()),
            expected=Expected(skip_code=_SKIPPED),
        )
        yield replace(test, limit_s=float(entry["timeout"])) if entry.get("timeout") else test
