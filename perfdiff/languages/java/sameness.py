"""What base and head have in common as a JVM gets it: class files in which only lines may differ, alone and in archives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from perfdiff.languages.java import archive_bytes, class_bytes
from perfdiff.languages.java.archive_bytes import ARCHIVES, MOST_BYTES
from perfdiff.languages.java.class_bytes import DamagedClassError
from perfdiff.languages.protocol import CodeComparison
from perfdiff.languages.tree_files import regular


def same_code(differing: Mapping[str, Mapping[int, Path]]) -> CodeComparison:
    """Compare the class files and archives of two builds."""
    compiled = {name: places for name, places in regular(differing).items() if name.endswith((".class", *ARCHIVES))}
    return CodeComparison(alike=frozenset(name for name, places in compiled.items() if _are_alike(*places)))


def _are_alike(base: Path, head: Path) -> bool:
    """Return whether two files differ in nothing but lines; not where they cannot be read."""
    try:
        if max(base.stat().st_size, head.stat().st_size) > MOST_BYTES:
            return False
        first, second = base.read_bytes(), head.read_bytes()
    except OSError:
        return False
    return archive_bytes.are_alike(first, second, are_alike_classes) if base.name.endswith(ARCHIVES) else are_alike_classes(first, second)


def are_alike_classes(base: bytes, head: bytes) -> bool:
    """Return whether two class files differ in nothing but lines; not where one is damaged."""
    try:
        return class_bytes.read(base) == class_bytes.read(head)
    except DamagedClassError:
        return False
