"""What base and head have in common as a JVM gets it: class files in which only lines may differ, alone and in archives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from perfdiff.languages.java import archive_bytes, class_bytes
from perfdiff.languages.java.archive_bytes import ARCHIVES, MOST_BYTES
from perfdiff.languages.java.class_bytes import DamagedClassError
from perfdiff.languages.java.class_shapes import ClassShape
from perfdiff.languages.meanings import MeaningComparison
from perfdiff.languages.protocol import Counterpart
from perfdiff.languages.tree_files import regular


def same_code(pairs: Sequence[Counterpart], differing: Mapping[str, Mapping[int, Path]]) -> MeaningComparison:
    """Compare the class files and archives of two builds, whose methods are `pairs`."""
    methods_by_file = {}
    for name, found in differing.items():
        places = regular(found)
        if places is not None and name.endswith((".class", *ARCHIVES)):
            methods_by_file[name] = _compared(*places)
    told = _told(pairs)
    return MeaningComparison(
        alike=frozenset(name for name, methods in methods_by_file.items() if methods is not None and not methods),
        by_function=frozenset(name for name, methods in methods_by_file.items() if methods and methods <= told),
    )


def _compared(base: Path, head: Path) -> frozenset[str] | None:
    """Return the methods whose code is all that differs in two files; None where something else does, or they cannot be read."""
    try:
        if max(base.stat().st_size, head.stat().st_size) > MOST_BYTES:
            return None
        first, second = base.read_bytes(), head.read_bytes()
    except OSError:
        return None
    return archive_bytes.compare(first, second, _differing) if base.name.endswith(ARCHIVES) else _differing(first, second)


def _differing(base: bytes, head: bytes) -> frozenset[str] | None:
    """Return the methods whose code is all that differs in two class files, lines aside."""
    try:
        before, after = class_bytes.read(base), class_bytes.read(head)
        if before == after:
            return frozenset()
        first, second = ClassShape(before), ClassShape(after)
        if first.outside != second.outside:
            return None
        methods = frozenset(name for name, code in first.codes.items() if first.code(code) != second.code(second.codes[name]))
    except DamagedClassError:
        return None
    return methods or None  # other constants, which nothing names


def _told(pairs: Sequence[Counterpart]) -> frozenset[str]:
    """Return the methods that are suspects under one name on both sides, and under which nothing is that is none."""
    suspects, others = set[str](), set[str]()
    for pair in pairs:
        names = set(pair.base.linkage if pair.base else ()) ^ set(pair.head.linkage if pair.head else ())
        others |= names
        if not names:
            (suspects if pair.change.is_suspect else others).update(pair.shown.linkage)
    return frozenset(suspects - others)
