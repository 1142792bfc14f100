"""Lists the tests that CTest runs, by what `ctest --show-only=json-v1` tells of a build."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfdiff.languages.c.suites.attempts import Attempts, quoted, why
from perfdiff.languages.c.suites.commands import CommandTest, Expected, listing_of
from perfdiff.languages.c.suites.programs import MARKS, holds
from perfdiff.languages.c.suites.switches import build_folders, with_switches
from perfdiff.languages.listing import SuiteListing

_FILE = "CTestTestfile.cmake"


def listed(value: str, guessed: str = "") -> SuiteListing:
    """Return the tests of a build folder, of all builds below the current one by ""; `guessed` ones not where a framework lists them."""
    attempts = Attempts.within_limit()
    failures: dict[str, str] = {}
    tests: list[CommandTest] = []
    for folder in [Path(value)] if value else _outermost(build_folders(_FILE)):
        tests += _tests(folder, attempts, failures)
    of_frameworks = [test for test in tests if guessed and any(holds(Path(test.words[0]), marks) for marks in MARKS.values())]
    return with_switches(listing_of([test for test in tests if test not in of_frameworks], failures, attempts))


def _outermost(folders: Iterator[Path]) -> list[Path]:
    """Return folders that are in none of the others: CTest runs those of the folders below with them."""
    paths = list(folders)
    return [path for path in paths if not any(path != other and path.is_relative_to(other) for other in paths)]


def _tests(folder: Path, attempts: Attempts, failures: dict[str, str]) -> Iterator[CommandTest]:
    """Yield the tests of a build; add why others are none."""
    attempt = attempts.run(["ctest", "--show-only=json-v1"], folder)
    try:
        entries = [CTestEntry(test) for test in json.loads(attempt.output)["tests"]]
    except (ValueError, KeyError, TypeError):
        failures[folder.as_posix()] = why(attempt) or "ctest --show-only=json-v1 does not tell its tests: it does so from CMake 3.14 on"
        return
    for entry in entries:
        if entry.reason or "FIXTURES_SETUP" in entry.properties or "FIXTURES_CLEANUP" in entry.properties:
            failures.update({entry.name: entry.reason} if entry.reason else {})
            continue
        fixtures = set(entry.properties.get("FIXTURES_REQUIRED", ()))
        setups = [
            other.test(folder) for other in entries if not other.reason and fixtures & set(other.properties.get("FIXTURES_SETUP", ()))
        ]
        yield entry.test(folder, tuple(setups))


class CTestEntry:
    """A test as CTest lists it."""

    def __init__(self, test: Mapping[str, Any]) -> None:
        self.name = str(test["name"])
        self.words = tuple(map(str, test.get("command", ())))
        self.properties = {str(entry["name"]): entry["value"] for entry in test.get("properties", ())}

    @property
    def reason(self) -> str:
        """Return why the test cannot be run, "" if it can."""
        if self.properties.get("DISABLED"):
            return "is disabled"
        missing = [file for file in self.properties.get("REQUIRED_FILES", ()) if not Path(file).exists()]
        if missing:
            return f"needs the file {missing[0]}"
        return "" if self.words else "its program was not built"

    def test(self, folder: Path, setups: tuple[CommandTest, ...] = ()) -> CommandTest:
        """Return the test as a command that can be run."""
        properties = self.properties
        expected = Expected(
            bool(properties.get("WILL_FAIL")),
            tuple(properties.get("PASS_REGULAR_EXPRESSION", ())),
            (*properties.get("FAIL_REGULAR_EXPRESSION", ()), *properties.get("SKIP_REGULAR_EXPRESSION", ())),
            properties.get("SKIP_RETURN_CODE"),
        )
        directory = Path(properties.get("WORKING_DIRECTORY") or folder).absolute()
        test = CommandTest(self.name, self.words, directory, tuple(self._variables()), setups, expected)
        limit_s = float(properties.get("TIMEOUT") or 0)
        return replace(test, limit_s=limit_s) if limit_s else test

    def _variables(self) -> Iterator[str]:
        """Yield the variables of the test as the shell sets them."""
        for variable in self.properties.get("ENVIRONMENT", ()):
            name, _, value = str(variable).partition("=")
            yield f"{name}={quoted(value)}"
        for change in self.properties.get("ENVIRONMENT_MODIFICATION", ()):
            name, _, change_of_it = str(change).partition("=")
            action, _, value = change_of_it.partition(":")
            ways = {
                "set": quoted(value),
                "path_list_prepend": f'{quoted(value)}"${{{name}:+:${name}}}"',
                "path_list_append": f'"${{{name}:+${name}:}}"{quoted(value)}',
            }
            if action in ways:
                yield f"{name}={ways[action]}"
