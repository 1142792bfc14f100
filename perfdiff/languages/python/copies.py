"""Where the files of a tree may be imported from: an installation copies them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from perfdiff.languages.python.sources import SourceFile, source_files


def places(tree: Path, site_packages: Path) -> Mapping[str, tuple[Path, ...]]:
    """Return by file of a tree all paths that it is imported from: its own, and that of a copy in `site_packages` with the same content."""
    return {file.file: (tree / file.file, *_copies(file, site_packages)) for file in source_files(tree)}


def _copies(file: SourceFile, site_packages: Path) -> Iterator[Path]:
    module = PurePosixPath(*file.module.split("."))
    installed = site_packages / (module / "__init__.py" if file.is_package else module.with_suffix(".py"))
    if installed.is_file() and installed.read_bytes() == file.data:
        yield installed
