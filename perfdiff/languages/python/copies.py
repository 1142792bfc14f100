"""Where the files of a tree may be imported from: an installation copies them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from perfdiff.languages.python.sources import SourceFile, source_files


def places(tree: Path, folders: Sequence[Path]) -> dict[str, tuple[Path, ...]]:
    """Return by file of a tree all paths that it is imported from: its own, and those of copies in `folders` of packages, byte by byte."""
    return {file.file: (tree / file.file, *_copies(file, folders)) for file in source_files(tree)}


def _copies(file: SourceFile, folders: Sequence[Path]) -> Iterator[Path]:
    module = PurePosixPath(*file.module.split("."))
    for folder in folders:
        installed = folder / (module / "__init__.py" if file.is_package else module.with_suffix(".py"))
        if installed.is_file() and installed.read_bytes() == file.data:
            yield installed
