"""Weaving for counts without a clock: all classes of a project count what they do, and chosen methods have probes."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from perfdiff.errors import BuildError
from perfdiff.languages import compiled
from perfdiff.languages.java import jdks, tools, weaving
from perfdiff.languages.java.classes import OF_HARNESS
from perfdiff.languages.java.jdks import Jdk
from perfdiff.languages.java.weaving import ProbedMethod

_LOOM = "perfdiff.loom.CountLoom"
_OUTSIDE = "outside"
_NEWEST = 23  # of JDKs, whose own library for class files counts are woven with
_PACKAGE = re.compile(rb"^\s*package\s+([\w.\s]+?)\s*;", re.MULTILINE)
_LENGTH = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Woven:
    """A file with the woven classes, and one with the names of what they call of others', by their numbers."""

    sheet: Path
    outside: Path


def weave(jdk: Jdk, tree: Path, methods: Sequence[ProbedMethod], cache: Path) -> Woven:
    """Return the classes of a built tree that count, with probes in `methods`, weaving them at the first call.

    Raises BuildError where the loom fails or the JDK has none, StoreError where `cache` cannot be written.
    """
    loom = weaver(jdk)
    sources = source_names(tree)
    files = weaving.listed(map(weaving.sized, class_files(tree, sources)))
    request = weaving.listed(map(weaving.sized, sources)) + weaving.listed(method.request for method in methods) + files
    name = hashlib.sha256(tools.build(loom, cache, "loom").name.encode() + b"counted" + request).hexdigest()[:24]
    folder = compiled.kept(cache, f"java-counted-{name}", partial(_make, loom, tree, cache, request))
    return Woven(folder / weaving.SHEET, folder / _OUTSIDE)


def weaver(jdk: Jdk) -> Jdk:
    """Return the JDK that weaves counts for the programs of `jdk`: itself, or where its library for bytecode is another one, an older.

    Raises BuildError where none is beside it.
    """
    if jdk.feature <= _NEWEST:
        return jdk
    older = jdks.beside(jdk, _NEWEST)
    if older is None:
        raise BuildError(
            f"work without a clock is counted with the library for bytecode of JDKs up to {_NEWEST}; {jdk.home} is Java {jdk.release}, and"
            " no older JDK is installed beside it",
            slug="java-not-counted",
        )
    return older


def arguments(tree: Path) -> tuple[str, ...]:
    """Return what a loom that counts is started with: class files may be for a newer Java than it runs under."""
    return str(tree), "newer"


def source_names(tree: Path) -> list[bytes]:
    """Return the Java files of a tree as class files know them: package and name, `com/acme/Box.java`."""
    names = set()
    for path in tree.rglob("*.java"):
        if path.is_file() and not OF_HARNESS.fullmatch(path.name):
            package = _PACKAGE.search(path.read_bytes())
            folder = b"".join(package[1].split()).replace(b".", b"/") + b"/" if package else b""
            names.add(folder + path.name.encode(errors="surrogateescape"))
    return sorted(names)


def class_files(tree: Path, sources: Sequence[bytes]) -> list[bytes]:
    """Return the class files of a tree that may come from these sources: which of them do, they say themselves."""
    folders = {source.rpartition(b"/")[0].decode(errors="surrogateescape") for source in sources}

    def is_wanted(path: str) -> bool:
        parts = path[1:].split("/")[:-1]
        return any("/".join(parts[start:]) in folders for start in range(len(parts) + 1))

    return weaving.files_where(tree, is_wanted)


def _make(loom: Jdk, tree: Path, cache: Path, request: bytes, folder: Path) -> None:
    answer = tools.run(loom, cache, _LOOM, arguments(tree), request)
    end = _LENGTH.size + int(_LENGTH.unpack_from(answer)[0])
    (folder / weaving.SHEET).write_bytes(answer[_LENGTH.size : end])
    (folder / _OUTSIDE).write_bytes(answer[end:])
