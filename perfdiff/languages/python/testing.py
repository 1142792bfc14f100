"""What tests and benchmarks of a project need beside the project itself, as it is declared in the places that projects have for that.

Nothing is run. What is declared for tests alone is preferred to what developers need, which brings tools that no test uses.
"""

from __future__ import annotations

import ast
import configparser
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet

from perfdiff.errors import BuildError
from perfdiff.languages.python import projects, pyproject
from perfdiff.languages.python.projects import Project
from perfdiff.languages.python.pyproject import normal, table, texts
from perfdiff.languages.python.requirements import wanted

# Names of extras, groups, environments and files, as `normal` writes them.
_OF_TESTS = r"(?:py|unit)?tests?|testing|bench(?:marks?|marking)?|perf|hatch-test"
_OF_DEVELOPERS = r"dev|develop|development"
_FOLDERS = (".", "requirements", "reqs", "tests", "test", "benchmarks", "bench")  # in which lists of requirements lie
_OWN_EXTRAS = re.compile(r"([\w.-]+)\[([^\]]+)\]")
_CARET = re.compile(r"\^(\d+)(?:\.(\d+))?(?:\.(\d+))?.*")

Named = Callable[[str], bool]  # whether something of a name is what is looked for


def requirements(project: Path) -> tuple[str, ...]:
    """Return the declared requirements of a project's tests, none if they cannot be read."""
    try:
        tables = pyproject.read(project)
        own = replace(projects.read(project), requirements=())
    except BuildError:  # the build will say so
        return ()
    for pattern in (_OF_TESTS, _OF_DEVELOPERS):
        lines = [line for line in _declared(project, tables, own, partial(_is_named, pattern)) if not line.startswith("-")]
        if lines:
            return tuple(dict.fromkeys(lines))
    return ()


def with_own(declared: Iterable[str], revision: Path) -> tuple[str, ...]:
    """Return what a checkout declares for its tests, and what the tests of a revision need beside that, in any version.

    Tests of an old revision may use packages that the checkout's tests no longer do. Both sides have the same versions of all others.
    """
    declared = tuple(declared)
    names = {_name(line) for line in declared}
    return *declared, *dict.fromkeys(_unpinned(line) for line in requirements(revision) if _name(line) not in names | {None})


def _name(line: str) -> str | None:
    try:
        return normal(Requirement(line).name)
    except InvalidRequirement:  # a path, an address or an option
        return None


def _unpinned(line: str) -> str:
    requirement = Requirement(line)
    requirement.specifier = SpecifierSet()
    return str(requirement)


def _is_named(pattern: str, name: str) -> bool:
    return re.fullmatch(pattern, normal(name)) is not None


def _declared(project: Path, tables: Mapping[str, Any], own: Project, named: Named) -> Iterator[str]:
    extras = {**own.extras, **{normal(name): lines for name, lines in _of_setuptools(project)}}
    yield from _of_extras(own.name, extras, filter(named, extras))
    groups = table(tables, "dependency-groups")
    yield from (line for name in filter(named, groups) for line in _of_group(groups, name, frozenset()))
    yield from _of_tools(table(tables, "tool"), named, lambda names: _of_extras(own.name, extras, names))
    for file in _files(project, named):
        yield from _of_files(project, own, [file])
    yield from _of_tox(project, own)


def _of_extras(name: str | None, extras: Mapping[str, Iterable[str]], chosen: Iterable[str]) -> Iterator[str]:
    """Yield what extras require; one that names others of the project requires what these do."""
    left, done = [normal(extra) for extra in chosen], set[str]()
    while left:
        extra = left.pop()
        if extra in done:
            continue
        done.add(extra)
        for line in extras.get(extra, ()):
            others = _OWN_EXTRAS.match(line)
            if others and name and normal(others[1]) == normal(name):
                left += [normal(other.strip()) for other in others[2].split(",")]
            else:
                yield line


def _of_group(groups: Mapping[str, Any], name: str, within: frozenset[str]) -> Iterator[str]:
    """Yield what a dependency group requires, with those that it includes (PEP 735)."""
    by_name = {normal(group): entries for group, entries in groups.items()}
    entries = by_name.get(normal(name))
    for entry in entries if isinstance(entries, list) and normal(name) not in within else ():
        if isinstance(entry, str):
            yield entry
        elif isinstance(entry, dict) and isinstance(entry.get("include-group"), str):
            yield from _of_group(groups, entry["include-group"], within | {normal(name)})


def _of_setuptools(project: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the extras that `setup.cfg` and `setup.py` write out, and what they require."""
    settings = _settings(project / "setup.cfg")
    if settings.has_section("options.extras_require"):
        yield from ((name, _lines(text)) for name, text in settings.items("options.extras_require"))
    if settings.has_option("options", "tests_require"):
        yield "tests", _lines(settings.get("options", "tests_require"))
    for node in ast.walk(_parsed(project / "setup.py")):
        if isinstance(node, ast.keyword) and node.arg in ("extras_require", "tests_require"):
            try:
                content = ast.literal_eval(node.value)
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):  # it is computed
                continue
            extras = content if isinstance(content, dict) else {"tests": content}
            yield from ((str(name), _strings(lines)) for name, lines in extras.items())


def _of_tools(tools: Mapping[str, Any], named: Named, of_extras: Callable[[Iterable[str]], Iterable[str]]) -> Iterator[str]:
    """Yield what tools that keep environments know to be needed: Hatch, Poetry, PDM, uv."""
    environments = table(tools, "hatch", "envs")
    for name in filter(named, environments):
        environment = table(environments, name)
        yield from (*texts(environment, "dependencies"), *texts(environment, "extra-dependencies"))
        yield from of_extras(texts(environment, "features"))
    groups = {**table(tools, "poetry", "group"), "dev": {"dependencies": table(tools, "poetry", "dev-dependencies")}}
    groups |= {name: group for name, group in table(tools, "poetry", "group").items() if name == "dev"}
    for name in filter(named, groups):
        yield from (_of_poetry(package, version) for package, version in table(groups, name, "dependencies").items())
    for name, lines in (*table(tools, "pdm", "dev-dependencies").items(), ("dev", table(tools, "uv").get("dev-dependencies"))):
        yield from _strings(lines) if named(name) else ()


def _of_poetry(package: str, version: object) -> str:
    """Return what Poetry writes as a table's key and value as a line that others read."""
    text = version.get("version", "*") if isinstance(version, dict) else version
    extras = f"[{','.join(_strings(version.get('extras')))}]" if isinstance(version, dict) and version.get("extras") else ""
    if not isinstance(text, str) or text == "*":
        return f"{package}{extras}"
    parts = [_of_caret(part.strip()) for part in text.split(",")]
    return f"{package}{extras}{','.join(parts)}"


def _of_caret(text: str) -> str:
    """Return a version of Poetry's as PEP 440 has it: `^1.2` allows what does not change the first number that is not 0."""
    if caret := _CARET.fullmatch(text):
        numbers = [int(number) for number in caret.groups() if number is not None]
        place = next((place for place, number in enumerate(numbers) if number), len(numbers) - 1)
        upper = ".".join(map(str, [*numbers[:place], numbers[place] + 1]))
        return f">={text[1:]},<{upper}"
    if text.startswith("~") and not text.startswith("~="):
        return f">={text[1:]},=={'.'.join(text[1:].split('.')[:2])}.*"
    return text if text.startswith((">", "<", "=", "!", "~")) else f"=={text}"


def _files(project: Path, named: Named) -> Iterator[str]:
    """Yield lists of requirements, by their names relative to the project."""
    for folder in _FOLDERS:
        for path in sorted((project / folder).glob("*.txt")):
            parts = [part for part in re.split(r"requirements|reqs", path.stem) if part.strip("-_.")]
            is_list = path.stem != "".join(parts) or folder in ("requirements", "reqs")
            name = parts[0].strip("-_.") if parts else folder
            if is_list and len(parts) < 2 and named(name):
                yield path.relative_to(project).as_posix()


def _of_files(project: Path, own: Project, configured: Iterable[str]) -> Iterator[str]:
    try:
        yield from wanted(project, replace(own, requirements=()), list(configured), ()).lines
    except BuildError:  # one that it includes is not there
        return


def _of_tox(project: Path, own: Project) -> Iterator[str]:
    """Yield what tox installs for tests, but for what it does under conditions."""
    for name in ("tox.ini", "setup.cfg"):
        settings = _settings(project / name)
        for section in ("testenv", "tox:testenv"):
            lines = _lines(settings.get(section, "deps", fallback="")) if settings.has_section(section) else []
            for line in (line.replace("{toxinidir}/", "").replace("{tox_root}/", "") for line in lines):
                if not re.match(r"[\w!,{}.-]+: ", line) and "{" not in line:
                    file = re.match(r"-r *(\S+)", line)
                    yield from _of_files(project, own, [file[1]]) if file else (line,)


def _settings(file: Path) -> configparser.RawConfigParser:
    """Return what a file of settings says, nothing where it cannot be read."""
    settings = configparser.RawConfigParser(strict=False)
    try:
        settings.read_string(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, configparser.Error):
        return configparser.RawConfigParser()
    return settings


def _parsed(file: Path) -> ast.AST:
    try:
        return ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError, RecursionError):
        return ast.Module([], [])


def _lines(text: str) -> list[str]:
    lines = (re.sub(r"(^|\s)#.*$", "", line).strip() for line in text.splitlines())
    return [line for line in lines if line]


def _strings(lines: object) -> list[str]:
    return [line for line in lines if isinstance(line, str)] if isinstance(lines, list | tuple) else []
