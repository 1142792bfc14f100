"""What installations lay into folders of packages: copies of the project's own files, and packages of others.

Those of others that differ between the revisions of a program can be guilty, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path, PurePosixPath

from perfdiff.languages.python import distributions
from perfdiff.languages.python.sources import PythonFile, source_files

_FOLDER = "site-packages"  # stands for whatever folders of packages an environment has, as files of a tree have none of them
_PACKAGE = "__init__"
MOST_FILES = (
    2000  # of all packages that differ: some seconds to parse; the largest in wide use have more, and are compiled for the most part
)


def copies(tree: Path, folders: Sequence[Path]) -> dict[str, tuple[Path, ...]]:
    """Return by file of a tree all paths that it is imported from: its own, and those of copies in `folders` of packages, byte by byte."""
    return {file.file: (tree / file.file, *_copies(file, folders)) for file in source_files(tree)}


def _copies(file: PythonFile, folders: Sequence[Path]) -> Iterator[Path]:
    module = PurePosixPath(*file.module.split("."))
    for folder in folders:
        installed = folder / (module / "__init__.py" if file.is_package else module.with_suffix(".py"))
        if installed.is_file() and installed.read_bytes() == file.data:
            yield installed


def sources(folders: Sequence[Path], names: Collection[str]) -> tuple[PythonFile, ...]:
    """Return the Python files of installed distributions by their names, in order, at most `MOST_FILES`."""
    return tuple(sorted(_sources(folders, names), key=lambda source: source.file)[:MOST_FILES])


def place(file: str, folders: Sequence[Path]) -> Path | None:
    """Return where a file of `sources` lies, None of another one."""
    path = PurePosixPath(file)
    if path.parts[0] != _FOLDER:
        return None
    return next((laid for folder in folders if (laid := folder.joinpath(*path.parts[1:])).is_file()), None)


def _sources(folders: Sequence[Path], names: Collection[str]) -> Iterator[PythonFile]:
    for file, path in distributions.files(folders, names):
        parts = PurePosixPath(file).with_suffix("").parts
        is_package = parts[-1] == _PACKAGE
        module = ".".join(parts[:-1] if is_package else parts)
        yield PythonFile(f"{_FOLDER}/{file}", module, path.read_bytes(), is_package)
