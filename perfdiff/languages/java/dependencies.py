"""What a Java project uses of others, by what its build files say and by the jars that lie in its tree, with versions."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

_DEEPEST = 6  # folders in which build files of modules are looked for
_MOST_BYTES = 2**20  # of a build file; those of projects have some kilobytes
_DECLARATIONS = ("<!DOCTYPE", "<!ENTITY")  # no build file needs them, and entities may grow without end
_PLACE = re.compile(r"\$\{([^}]+)\}")
_STEPS = 5  # from a property of Maven's to its value
_PROPERTY = re.compile(r"^\s*(?:def\s+|val\s+|ext\.)?(\w+)\s*=\s*[\"']([\w.+-]+)[\"']", re.MULTILINE)
_COORDINATES = re.compile(r"""["']([\w.-]+):([\w.-]+):([\w.+$\{}-]+)(?::[\w.-]+)?["']""")
_VARIABLE = re.compile(r"\$\{?(\w+)}?")
_LOCKED = re.compile(r"^([\w.-]+):([\w.-]+):([^=\s]+)=", re.MULTILINE)
_JAR = re.compile(r"(.+?)-(\d[\w.+-]*)\.jar")
_CATALOGUE = "libs.versions.toml"


def versions(tree: Path) -> dict[str, str]:
    """Return the libraries that a built tree names, by `group:artifact` or by the name of a jar, with their versions.

    Jars that the tree's own build makes are the project: those of `target` and `build` folders are left out, but for what was copied into
    folders of libraries there. A jar without a version in its name goes by a digest.
    """
    versions_by_name: dict[str, str] = {}
    for name, version in (*_maven(tree), *_gradle(tree), *_jars(tree)):
        versions_by_name.setdefault(name, version)
    return dict(sorted(versions_by_name.items()))


def _files(tree: Path, *names: str) -> Iterator[Path]:
    for depth in range(_DEEPEST):
        for name in names:
            yield from sorted(path for path in tree.glob("*/" * depth + name) if path.is_file() and not _is_made(path, tree))


def _is_made(path: Path, tree: Path) -> bool:
    return any(part in ("target", "build", "out", ".git", ".gradle") for part in path.relative_to(tree).parts[:-1])


def _text(file: Path) -> str:
    with file.open("rb") as opened:
        return opened.read(_MOST_BYTES).decode(errors="replace")


def _maven(tree: Path) -> Iterator[tuple[str, str]]:
    """Yield the dependencies that the files of Maven ask for; a version that a parent elsewhere decides is not known, and left out."""
    poms = [pom for file in _files(tree, "pom.xml") if (pom := _pom(_text(file))) is not None]
    own = {_child(pom, "artifactId") for pom in poms}
    properties = {element.tag: (element.text or "").strip() for pom in poms for element in pom.findall("./properties/*")}
    for pom in poms:
        version = _child(pom, "version") or _child(pom.find("parent"), "version")
        properties_of_pom = {**properties, "project.version": version, "revision": properties.get("revision", "")}
        for path in ("./dependencies/dependency", "./dependencyManagement/dependencies/dependency"):
            for dependency in pom.findall(path):
                artifact, asked = _child(dependency, "artifactId"), _filled(_child(dependency, "version"), properties_of_pom)
                if artifact not in own and asked:
                    yield f"{_filled(_child(dependency, 'groupId'), properties_of_pom)}:{artifact}", asked


def _pom(text: str) -> ElementTree.Element | None:
    if any(word in text for word in _DECLARATIONS):
        return None
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:  # Maven has said so, if it is one of its files
        return None
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root


def _child(element: ElementTree.Element | None, name: str) -> str:
    return "" if element is None else (element.findtext(name) or "").strip()


def _filled(text: str, properties: Mapping[str, str]) -> str:
    for _ in range(_STEPS):
        text = _PLACE.sub(lambda place: properties.get(place[1], place[0]), text)
    return text


def _gradle(tree: Path) -> Iterator[tuple[str, str]]:
    for file in _files(tree, "build.gradle", "build.gradle.kts", "gradle.lockfile"):
        text = _text(file)
        if file.name == "gradle.lockfile":
            yield from ((f"{group}:{name}", version) for group, name, version in _LOCKED.findall(text))
            continue
        properties = dict(_PROPERTY.findall(text))
        for group, name, version in _COORDINATES.findall(text):
            variable = _VARIABLE.fullmatch(version)
            yield f"{group}:{name}", properties.get(variable[1], version) if variable else version
    catalogue = tree / "gradle" / _CATALOGUE
    if catalogue.is_file():
        yield from _catalogue(_text(catalogue))


def _catalogue(text: str) -> Iterator[tuple[str, str]]:
    """Yield the libraries of a catalogue of versions."""
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return
    catalogue_versions: Mapping[str, Any] = table.get("versions", {}) if isinstance(table.get("versions"), dict) else {}
    for entry in (table.get("libraries") or {}).values() if isinstance(table.get("libraries"), dict) else ():
        if isinstance(entry, str) and entry.count(":") == 2:
            name, version = entry.rsplit(":", 1)
            yield name, version
        elif isinstance(entry, dict):
            name = str(entry.get("module") or f"{entry.get('group')}:{entry.get('name')}")
            asked = entry.get("version", "")
            asked = catalogue_versions.get(str(asked.get("ref")), "") if isinstance(asked, dict) else asked
            if isinstance(asked, str) and asked:
                yield name, asked


def _jars(tree: Path) -> Iterator[tuple[str, str]]:
    for file in sorted(tree.rglob("*.jar")):
        folders = file.relative_to(tree).parts[:-1]
        is_copied = bool(folders) and folders[-1] in ("dependency", "lib", "libs", "dependencies")
        if not file.is_file() or ".git" in folders or (_is_made(file, tree) and not (is_copied and folders[-2:] != ("build", "libs"))):
            continue
        match = _JAR.fullmatch(file.name)
        if match:
            yield match[1], match[2]
        else:
            yield file.name, hashlib.blake2b(file.read_bytes(), digest_size=4).hexdigest()
