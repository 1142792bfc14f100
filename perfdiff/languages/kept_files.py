"""What interpreters keep in files for themselves, by the paths of these: compiled code, and what they tell others of a process."""

from __future__ import annotations

from pathlib import PurePosixPath

from perfdiff.languages.installed import installed

_FILES = tuple(traits.files for traits in installed())
_FOLDERS = frozenset(name for files in _FILES for name in files.kept_folders)
BYTE_CODE = tuple(files.byte_code for files in _FILES if files.byte_code is not None)  # suffixes of what is loaded in place of sources


def is_kept(path: str) -> bool:
    """Return whether a file or folder is what an interpreter keeps of sources."""
    return not _FOLDERS.isdisjoint(path.split("/"))


def is_of_interpreters(path: str) -> bool:
    """Return whether an interpreter keeps a file for itself, of sources or of what it is about, wherever it lies."""
    return is_kept(str(PurePosixPath(path).parent)) or any(files.outside.search(path) for files in _FILES if files.outside is not None)


def is_byte_code(path: str) -> bool:
    """Return whether an interpreter loads a file in place of its source."""
    return path.endswith(BYTE_CODE)


def source_of(path: str) -> str | None:
    """Return the source of what an interpreter keeps in a folder beside it, None of other files."""
    file = PurePosixPath(path)
    suffix = next((files.source_suffix for files in _FILES if file.parent.name in files.kept_folders), None)
    return None if suffix is None else str(file.parent.parent / f"{file.name.partition('.')[0]}{suffix}")
