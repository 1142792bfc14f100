"""Which modules a built tree has, as the build tool of the project says, else as they lie there, and which classes these load."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

from perfdiff.languages.java.suites import gradle, maven
from perfdiff.languages.java.suites.modules import Module, Modules, plain


def modules(project: Path, build: str) -> Modules:
    """Return the modules of the current folder, which a command built."""
    answer = Modules(())
    if (project / maven.FILE).is_file():
        answer = maven.modules(project, build)
    elif any((project / file).is_file() for file in gradle.FILES):
        answer = gradle.modules(project)
    return answer if answer.modules else replace(answer, modules=(plain(build),))


def has_class(module: Module, name: str) -> bool:
    """Return whether a file such as `org/junit/Test.class` is on the class path of a module."""
    return any(contains(module.path(entry), name) for entry in module.class_path)


def contains(place: Path, name: str) -> bool:
    """Return whether a file is in a folder or an archive that classes are loaded from; nothing is in what cannot be read."""
    if place.is_dir():
        return (place / name).is_file()
    try:
        with zipfile.ZipFile(place) as archive:
            archive.getinfo(name)
    except (OSError, KeyError, zipfile.BadZipFile, NotImplementedError):
        return False
    return True
