"""The virtual environment of a revision: made beside its tree before the build command runs, and completed after it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from perfdiff import units
from perfdiff.errors import BuildError, store_errors
from perfdiff.languages.dependencies import keep, kept
from perfdiff.languages.protocol import Prepared
from perfdiff.languages.python import (
    backends,
    bytecode,
    distributions,
    installing,
    interpreters,
    layout,
    packages,
    pip,
    projects,
    requirements,
    testing,
)
from perfdiff.languages.python.bytecode import Uncompiled
from perfdiff.languages.python.interpreters import Interpreter
from perfdiff.languages.python.layout import Layout
from perfdiff.languages.python.projects import Project
from perfdiff.languages.python.requirements import Requirements
from perfdiff.languages.python.traits import PythonConfig
from perfdiff.records.schema import Note

_ENVIRONMENT, _RECORD = "venv", "environment.json"
_SHOWN = 5  # names in a note
_HASH_SEED = "0"  # no randomisation: sets are walked through in the same order in each run


@dataclass(frozen=True, slots=True)
class ProjectEnvironment:
    """The environment of a built revision, which was made in a folder, and serves there alone.

    `packages` is the set of packages in the cache that it shares with others, if any; `borrowed` are the folders of the user's own packages
    where such a set could not be had. `versions` are those of all installed distributions but the project's own, by name; they are known
    once the environment is finished, and so is the `byte_code` that was made of the tree beside what its build left.
    """

    made_in: Path
    layout: Layout
    packages: Layout | None
    borrowed: tuple[Path, ...]
    release: str  # of the interpreter
    versions: Mapping[str, str]
    byte_code: tuple[str, ...] = ()

    @property
    def folders(self) -> tuple[Path, ...]:
        """Return the folders in which its interpreter finds packages, in order."""
        return (self.layout.site_packages, *((self.packages.site_packages,) if self.packages else ()), *self.borrowed)


_HELD = tuple(part.name for part in fields(ProjectEnvironment))  # of a kept build, whose record has no others


@dataclass(frozen=True, slots=True)
class Environments:
    """Makes the environments of a project's revisions.

    `project` is its folder in the user's checkout, `environment` the user's; `cache` keeps what several revisions share. `hook` are
    lines of a path file, which each start of an interpreter follows. `commands` are those of workloads. `drivers` are folders of
    packages by which benchmarks of the project are run, by their names.
    """

    config: PythonConfig
    project: Path
    environment: Mapping[str, str]
    cache: Path
    hook: str = ""
    commands: tuple[str, ...] = ()
    drivers: Mapping[str, Path] = field(default_factory=dict)

    @property
    def interpreter(self) -> Interpreter:
        """Return the interpreter of all revisions; raise BuildError."""
        return interpreters.find(self.config.interpreter, self.project, self.environment)

    @property
    def own_packages(self) -> tuple[Path, ...]:
        """Return the folders in which the user's interpreter finds packages, by itself and by the user's variables."""
        return (*map(Path, filter(None, self.environment.get("PYTHONPATH", "").split(os.pathsep))), *self.interpreter.own_packages)

    @property
    def identity(self) -> str:
        """Return the part of a build's key that its environment determines, besides its tree's requirements."""
        asked = (*self.config.requirements, *self.config.optional, *requirements.runners(self.commands))
        texts = [file.read_text() for folder in self.drivers.values() for file in sorted(folder.glob("*.py"))]
        return "\n".join([self.interpreter.identity, *asked, str(self.config.editable), self.hook, *_HELD, *texts])

    def prepare(self, beside: Path, tree: Path, place: Path, environment: Mapping[str, str]) -> Prepared:
        """Make an environment in the folder `beside`, with all that the project in `place` requires; return the variables of its build.

        BuildError: `no-interpreter`, `python-unsupported`, `python-project`, `python-requirements`, `python-dependency`.
        """
        interpreter = self.interpreter
        with store_errors(beside):
            venv = layout.make(beside / _ENVIRONMENT, interpreter)
            pip.provide(venv, interpreter, self.cache)
            active = {**environment, **variables(venv, environment), **pip.variables(self.cache)}
            project, backend = projects.read(place), None
            if not self._lies_ready(project):
                backend = backends.ask(project, place, interpreter, active, self.cache)
                project = backend.project if backend else project
            wanted = requirements.wanted(place, project, self.config.requirements, requirements.runners(self.commands))
            wanted = replace(wanted, optional=testing.with_own(self.config.optional, place) if self.config.optional else ())
            shared, borrowed = _installed(wanted, interpreter, active, self.cache)
            layout.add_paths(venv, "packages", [shared.site_packages] if shared else borrowed)
            if shared:
                layout.adopt_scripts(venv, shared)
            command = ""
            if not self._lies_ready(project):
                command = backends.installation(project, is_prepared=backend is not None, is_editable=self.config.editable)
            keep(beside / _RECORD, ProjectEnvironment(beside.resolve(), venv, shared, borrowed, interpreter.release, {}))
        tools = backend.variables(environment) if backend else {}
        led = {**variables(venv, {**environment, **tools}), **pip.variables(self.cache), "PYTHONPATH": tools.get("PYTHONPATH", "")}
        return Prepared(led, command)

    def finish(self, beside: Path, tree: Path, place: Path, environment: Mapping[str, str]) -> tuple[Note, ...]:
        """Complete an environment after the build command, so that the project is found and all is compiled; return what there is to tell.

        BuildError: `python-project`, `python-compile`.
        """
        own = read(beside)
        with store_errors(beside):
            project = projects.read(place)
            if project.name and project.lies_ready and not distributions.is_installed(own.layout.site_packages, project.name, tree):
                installing.lay_out(own.layout, project, place)
            installing.lead_back(own.layout, tree)
            if self.hook:
                layout.add_hook(own.layout, self.hook)
            for name, driver in self.drivers.items():
                layout.add_package(own.layout, name, driver)
            compiled = bytecode.compile_modules(own.layout, [tree, own.layout.site_packages])
            in_tree = tuple(file.relative_to(tree).as_posix() for file in compiled.files if file.is_relative_to(tree))
            keep(beside / _RECORD, replace(own, versions=distributions.versions(own.folders, tree, place), byte_code=in_tree))
        return tuple(_notes(own, compiled.failed, tree))

    def broken(self, beside: Path) -> str | None:
        """Return what is wrong with the environment in the folder of a kept build, in words; None where it can be used.

        The packages that it shares count as used now, so that they are kept as long as the build is.
        """
        own = read(beside)
        if own.made_in != beside.resolve():
            return f"its environment was made in {own.made_in}, whose path is in its files"
        shared = own.packages
        if shared is None or packages.is_whole(shared.folder.parent):
            return None
        return f"its packages in {shared.folder.parent} are not as they were installed"

    def _lies_ready(self, project: Project) -> bool:
        """Return whether a project needs no installation: it is none that can be installed, or its modules can be imported as they lie."""
        return not project.is_packaged or (project.lies_ready and self.config.editable is None)


def read(beside: Path) -> ProjectEnvironment:
    """Return the environment that lies in the folder of a build; raise StoreError (`damaged-build`) where that cannot be read."""
    return kept(ProjectEnvironment, beside / _RECORD, "the environment kept in")


def are_alike(base: Path, head: Path) -> bool:
    """Return whether the environments themselves of two builds, whose folders these are, hold the same files and lead to the same."""
    first, second = (dict(_held(read(beside))) for beside in (base, head))
    return first == second


def _held(environment: ProjectEnvironment) -> Iterator[tuple[str, bytes]]:
    """Yield what lies in an environment by its path, but for byte code, which was compiled of what does; trees go by no name."""
    own, top = os.fsencode(environment.made_in), environment.layout.folder
    for folder, folders, names in os.walk(top):
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        folders[:] = [name for name in folders if name != "__pycache__"]
        for path in (Path(folder) / name for name in (*names, *links)):
            content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            is_record = path.name == "RECORD" and path.parent.name.endswith(".dist-info")
            yield path.relative_to(top).as_posix(), (_listed(content) if is_record else content).replace(own, b"")


def _listed(record: bytes) -> bytes:
    """Return the files that a record of an installation lists, without digests of them: paths of the environment are in some."""
    return b"\n".join(line.rsplit(b",", 2)[0] for line in record.splitlines())


def variables(venv: Layout, environment: Mapping[str, str]) -> dict[str, str]:
    """Return what makes an environment the active one of a command that runs in `environment` otherwise."""
    return {
        "PATH": os.pathsep.join([str(venv.programs), *filter(None, [environment.get("PATH", "")])]),
        "VIRTUAL_ENV": str(venv.folder),
        "PYTHONHASHSEED": environment.get("PYTHONHASHSEED", _HASH_SEED),
        "PYTHONNOUSERSITE": "1",
        # Empty is as if unset: the user's own lead to other modules than those of the revision.
        "PYTHONHOME": "",
        "PYTHONPATH": "",
    }


def _installed(
    wanted: Requirements, interpreter: Interpreter, environment: Mapping[str, str], cache: Path
) -> tuple[Layout | None, tuple[Path, ...]]:
    """Return the shared set of packages that is wanted; where it cannot be had, the folders of the user's own, if they have all of it."""
    if not wanted.lines and not wanted.optional:
        return None, ()
    try:
        return packages.obtain(wanted, interpreter, environment, cache), ()
    except BuildError:
        named = [line for line in (*wanted.lines, *wanted.constraints) if not line.startswith("-")]
        if not distributions.satisfy(interpreter.own_packages, named, interpreter.markers):
            raise
        return None, interpreter.own_packages


def _notes(own: ProjectEnvironment, uncompiled: Sequence[Uncompiled], tree: Path) -> Iterator[Note]:
    if own.borrowed:
        yield Note(
            "python-packages",
            f"what the project requires could not be installed; packages in {', '.join(map(str, own.borrowed))} meet it, and were used",
        )
    missing = packages.left_out(own.packages) if own.packages else ()
    if missing:
        yield Note(
            "requirements-left-out",
            f"of what the project's tests ask for, {units.listed(missing, _SHOWN)} cannot be installed; tests that need it are left out",
        )
    if not uncompiled:
        return
    first = uncompiled[0]
    file = first.file.relative_to(tree) if first.file.is_relative_to(tree) else first.file
    where = f"{file}{'' if first.line is None else f', line {first.line}'}: {first.error}"
    what = "a module is" if len(uncompiled) == 1 else f"{len(uncompiled)} modules are"
    yield Note("python-syntax", f"{what} not valid for Python {own.release}, and cannot be imported ({where})")
