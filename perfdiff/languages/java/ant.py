"""Which targets of ant's build file compile a project and its tests, without running tests or writing documentation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

FILE = "build.xml"
# Tasks that take minutes and make nothing that a workload runs.
_NEEDLESS = frozenset(("junit", "junitlauncher", "testng", "javadoc", "checkstyle", "findbugs", "spotbugs", "pmd"))
_MAKING = frozenset(("javac", "jar", "war", "ant", "subant", "exec"))
_OF_TESTS = re.compile(r"test|junit|bench", re.IGNORECASE)
_DECLARATIONS = ("<!DOCTYPE", "<!ENTITY")  # whose entities other files define


@dataclass(frozen=True, slots=True)
class _Target:
    """A target: those that run before it, whether it makes classes or jars, compiles tests, and has needless tasks."""

    depends: tuple[str, ...]
    makes: bool
    compiles_tests: bool
    is_needless: bool


def targets(project: Path) -> tuple[str, ...]:
    """Return the targets that a build names; none where ant's default makes all that is wanted, and no more.

    A default that runs tests, writes documentation or only helps gives way to the target that makes most without. Tests that it does not
    compile are compiled by another target beside it.
    """
    files = list(_files(project / FILE, set()))
    by_name = {name: target for root in reversed(files) for name, target in _targets(root)}
    default = files[0].get("default", "") if files else ""
    before = {name: _closure(name, by_name) for name in by_name}
    usable = [name for name in by_name if not name.startswith("-") and not any(by_name[needed].is_needless for needed in before[name])]
    making = {name for name, target in by_name.items() if target.makes}
    tests = {name for name, target in by_name.items() if target.compiles_tests}
    whole = default if default in usable and before[default] & making else _widest(usable, before, making)
    testing = _widest(usable, before, tests)
    named = [name for name in (whole, testing) if name is not None]
    if whole is not None and testing is not None and before[testing] & tests <= before[whole]:
        named = [whole]
    return () if named == [default] else tuple(named)


def _widest(usable: list[str], before: Mapping[str, frozenset[str]], wanted: set[str]) -> str | None:
    """Return the target that runs most of the wanted ones, and of these the one that runs the fewest others; None where none runs any."""
    reaching = [name for name in usable if before[name] & wanted]
    return min(reaching, key=lambda name: (-len(before[name] & wanted), len(before[name]), len(name)), default=None)


def _closure(name: str, by_name: Mapping[str, _Target]) -> frozenset[str]:
    """Return the targets that run with one, itself among them."""
    reached, waiting = set[str](), [name]
    while waiting:
        current = waiting.pop()
        if current in by_name and current not in reached:
            reached.add(current)
            waiting.extend(by_name[current].depends)
    return frozenset(reached)


def _files(file: Path, seen: set[Path]) -> Iterator[ElementTree.Element]:
    """Yield the roots of a build file and of those that it imports by plain paths; what cannot be read has no targets."""
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() and file not in seen else ""
    seen.add(file)
    try:
        root = None if any(word in text for word in _DECLARATIONS) else ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return
    if root is not None:
        yield root
        for imported in root.iter("import"):
            yield from _files(file.parent / imported.get("file", ""), seen)


def _targets(root: ElementTree.Element) -> Iterator[tuple[str, _Target]]:
    for element in root.iter("target"):
        name = element.get("name", "")
        tasks = [(task, task.tag.rpartition("}")[2]) for task in element.iter()]
        compilers = [task for task, tag in tasks if tag == "javac"]
        called = [task.get("target", "") for task, tag in tasks if tag == "antcall"]
        depends = (*(word.strip() for word in element.get("depends", "").split(",")), *called)
        compiles_tests = any(_OF_TESTS.search(word) for task in compilers for word in (name, *task.attrib.values()))
        makes = any(tag in _MAKING for _, tag in tasks)
        yield name, _Target(depends, makes, compiles_tests, any(tag in _NEEDLESS for _, tag in tasks))
