"""What runs tests beside what they are compiled against: build tools bring the launcher of the JUnit Platform, and engines, themselves.

It lies where the library that it belongs to does, in the same version: in the same folder, in Maven's local repository, in Gradle's cache.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_ARTIFACT = re.compile(r"(?P<name>[a-z][a-z0-9]*(?:-[a-z][a-z0-9]*)*)(?:-(?P<version>\d.*))?\.jar")
_PLATFORM, _JUPITER = "org.junit.platform", "org.junit.jupiter"


@dataclass(frozen=True, slots=True)
class _Partner:
    """A library that has to be there where another one, its `anchor`, is."""

    name: str
    group: str
    anchor: str
    anchor_group: str


_PARTNERS = (
    _Partner("junit-jupiter-engine", _JUPITER, "junit-jupiter-api", _JUPITER),
    _Partner("junit-platform-engine", _PLATFORM, "junit-platform-commons", _PLATFORM),
    _Partner("junit-platform-launcher", _PLATFORM, "junit-platform-commons", _PLATFORM),
    # Compilers do without what others are compiled against: these are missing where a build names single jars.
    _Partner("junit-platform-commons", _PLATFORM, "junit-jupiter-api", _JUPITER),
    _Partner("opentest4j", "org.opentest4j", "junit-jupiter-api", _JUPITER),
    _Partner("hamcrest-core", "org.hamcrest", "junit4", "junit"),
    _Partner("hamcrest", "org.hamcrest", "junit4", "junit"),
)
_NEEDED = ("junit-jupiter-engine", "junit-platform-engine", "junit-platform-launcher")
_ABOVE_IN_GRADLE = 4  # folders: the group's, the artifact's, the version's, the digest's
_ROUNDS = 2  # what is found may have partners itself


def completed(folder: str, class_path: Sequence[str]) -> tuple[str, ...]:
    """Return a class path, relative to a folder, with the jars that run its tests added if this machine has them."""
    whole = list(class_path)
    for _ in range(_ROUNDS):
        there = {name: jar for jar in whole if (name := _name(jar)) is not None}
        for partner in _PARTNERS:
            if partner.anchor in there and partner.name not in there:
                anchor = Path(folder, there[partner.anchor])
                jar = next((jar for jar in _places(partner, anchor) if jar.is_file()), None)
                whole += [str(jar) if jar.is_absolute() else os.path.relpath(jar, folder)] if jar else []
    return tuple(whole)


def missing(class_path: Sequence[str]) -> str | None:
    """Return the library that the tests of a class path cannot run without, None where all is there."""
    names = {_name(jar) for jar in class_path}
    if not names & {"junit-platform-commons", "junit-jupiter-api"}:
        return None
    needed = _NEEDED if "junit-jupiter-api" in names else _NEEDED[1:]
    return next((name for name in needed if name not in names), None)


def _name(jar: str) -> str | None:
    artifact = _ARTIFACT.fullmatch(Path(jar).name)
    return artifact["name"] if artifact else None


def _places(partner: _Partner, anchor: Path) -> Iterator[Path]:
    """Yield where a partner may lie, most likely first: of its anchor's version, then of one that differs in its last number."""
    artifact = _ARTIFACT.fullmatch(anchor.name)
    version = artifact["version"] if artifact else None
    yield anchor.with_name(f"{partner.name}-{version}.jar")
    yield anchor.with_name(f"{partner.name}.jar")
    if version is None:
        return
    of_maven = Path(*partner.group.split("."), partner.name)
    above = len(partner.anchor_group.split(".")) + 2  # folders: the artifact's and the version's
    releases = dict.fromkeys((version, f"{'.'.join(version.split('.')[:2])}.*"))
    for release in releases if partner.group == partner.anchor_group else ("*",):
        if above < len(anchor.parents):
            yield from _latest(anchor.parents[above], f"{of_maven}/{release}/{partner.name}-*.jar")
        if len(anchor.parents) > _ABOVE_IN_GRADLE:
            yield from _latest(anchor.parents[_ABOVE_IN_GRADLE], f"{partner.group}/{partner.name}/{release}/*/{partner.name}-*.jar")


def _latest(folder: Path, pattern: str) -> Iterator[Path]:
    jars = (jar for jar in folder.glob(pattern) if not jar.stem.endswith(("-sources", "-javadoc")))
    return iter(sorted(jars, key=lambda jar: [int(number) for number in re.findall(r"\d+", jar.stem)], reverse=True))
