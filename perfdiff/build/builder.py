"""Builds: the user's own command, run in a fresh tree under the compiler masquerade."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from perfdiff import processes, seals
from perfdiff.build import compilers
from perfdiff.build.cache import BuildCache
from perfdiff.build.commands import DroppedProbe, Uncounted, read_compile_log
from perfdiff.build.failures import read_failure
from perfdiff.build.links import Link, read_links
from perfdiff.build.masquerade import Flags, set_up_masquerade
from perfdiff.build.variants import BuildRequest, build_environment, build_key, elsewhere
from perfdiff.config import BuildConfig
from perfdiff.errors import BuildError, StoreError
from perfdiff.languages.protocol import CompileCommand, Prepared
from perfdiff.records.schema import Note, Phase
from perfdiff.revisions import overlay
from perfdiff.revisions.trees import lay_out, settle

SOURCE, _BUILD, _OUTCOME = "source", "build", "outcome.json"


@dataclass(frozen=True, slots=True)
class Built:
    """A finished build: `tree` is its root, `folder` the project's folder in it, where the build ran and workloads run.

    `uncounted` names what a counted or placed build had to leave plain.
    """

    variant: Phase
    tree: Path
    folder: Path
    commands: tuple[CompileCommand, ...]
    dropped: tuple[DroppedProbe, ...]
    notes: tuple[Note, ...]
    duration_s: float
    uncounted: tuple[Uncounted, ...] = ()
    links: tuple[Link, ...] = ()  # of a plain build

    @property
    def beside(self) -> Path:
        """Return the folder of the build, with the tree and what languages laid beside it."""
        return self.tree.parent


def build(request: BuildRequest, cache: BuildCache) -> Built:
    """Return the build that `request` asks for, from the cache where it was made before.

    Lays out the tree, inserts the probes, runs the command. BuildError (`build-failed`, `build-timeout`, `no-compiler`,
    `compiler-not-found`) names the side, the command and what is missing; its detail is what the log says there. `no-compile-commands`: the
    build ended well, but no compiler was seen at work.
    """
    environment = build_environment(request.environment)
    key = _key(request)
    changed: list[str] = []

    def is_whole(folder: Path) -> bool:
        what = seals.broken(folder) or (request.workplace.broken(folder) if request.workplace else None)
        changed.extend([what] if what else [])
        return what is None

    def make(folder: Path) -> None:
        _make(request, environment, folder, cache.logs / f"{key}.log")

    # What is laid beside a tree, such as an environment of packages, leads to files of this machine.
    neighbours = cache.neighbours if request.workplace is None else None
    entry = cache.obtain(key, (lambda folder: neighbours.obtain(key, folder, make)) if neighbours else make, is_whole)
    built = _kept(entry, request.variant, request.pin.repository.folder)
    return replace(built, notes=(*built.notes, _changed(request, changed[0]))) if changed else built


def _changed(request: BuildRequest, what: str) -> Note:
    return Note(
        "build-changed",
        f"the kept build of {request.side} ({_name(request)}) was made again: {what}; see which workload or program writes to built trees",
    )


def is_kept(request: BuildRequest, cache: BuildCache) -> bool:
    """Return whether the build that `request` asks for was made before."""
    return cache.has(_key(request))


def _key(request: BuildRequest) -> str:
    return build_key(request, compiler_identity(build_environment(request.environment)))


def verify(entry: Path) -> None:
    """Raise StoreError where what is known of a kept build cannot be read, its tree is gone, or what it executes is not as it was built."""
    if not _kept(entry, Phase.PLAIN, Path()).tree.is_dir():
        raise StoreError(f"the build kept in {entry} has lost its tree; `perfdiff cache verify --remove` clears it", slug="damaged-build")
    changed = seals.broken(entry)
    if changed is not None:
        raise StoreError(
            f"the build kept in {entry} is damaged: {changed}; `perfdiff cache verify --remove` clears it", slug="damaged-build"
        )


def _kept(entry: Path, variant: Phase, folder: Path) -> Built:
    tree = (entry / SOURCE).resolve()
    try:
        outcome = json.loads((entry / _OUTCOME).read_text())
        log, links = read_compile_log(entry / _BUILD / "calls", tree), read_links(entry / _BUILD / "links")
        notes = tuple(Note(**note) for note in outcome["notes"])
        duration_s = float(outcome["duration_s"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(
            f"the build kept in {entry} is damaged: {error}; `perfdiff cache verify --remove` clears it", slug="damaged-build"
        ) from error
    return Built(
        variant=variant,
        tree=tree,
        folder=tree / folder,
        commands=log.commands,
        dropped=log.dropped,
        notes=notes,
        duration_s=duration_s,
        uncounted=log.uncounted,
        links=links,
    )


def _make(request: BuildRequest, environment: Mapping[str, str], folder: Path, log: Path) -> None:
    tree = folder / SOURCE
    notes = list(lay_out(request.pin, tree, overlay=request.config.overlay))
    flags = None
    if request.instrumentation is not None:
        asked = request.instrumentation
        flags = Flags(header=asked.insert(tree) if asked.insert else None, runtime=asked.runtime, kind=asked.kind)
        settle(tree)
    place = tree / request.pin.repository.folder
    if not place.is_dir():
        raise BuildError(
            f"{request.side} ({_name(request)}) has no folder {request.pin.repository.folder}; run perfdiff where both revisions have the "
            "project",
            slug="build-failed",
        )
    started, workplace = time.monotonic(), request.workplace
    prepared = workplace.prepare(folder, tree, place, environment) if workplace else Prepared({})
    variables = {**environment, **prepared.variables}
    is_ours = not request.config.command
    request = replace(request, config=replace(request.config, command=request.config.command or prepared.command))
    masquerade = set_up_masquerade(folder / _BUILD, tree, variables, flags)
    # Compilers that are killed leave their temporary files. Not in the cache, whose path may be too long for sockets (107 bytes).
    with tempfile.TemporaryDirectory(prefix="perfdiff-", ignore_cleanup_errors=True) as temporary:
        ours = {"TMPDIR": temporary, **(elsewhere(Path(temporary)) if request.variant is Phase.PLACED else {})}
        with _without_overlay(request, tree, folder) if is_ours else nullcontext():
            status = _run(request.config, place, {**masquerade.environment, **ours}, log) if request.config.command else 0
    if status != 0:
        raise _build_error(request, status, log, tree, notes)
    if workplace:
        notes += workplace.finish(folder, tree, place, variables)
    duration_s = time.monotonic() - started
    if not workplace and not any(masquerade.calls.glob("*.json")):
        raise BuildError(
            f"no compiler call of '{request.config.command}' was seen in {request.side} ({_name(request)}): it calls compilers by absolute "
            f"path, or compiles nothing, so nothing can be measured; let it take the compiler from CC, CXX or PATH (whole log: {log})",
            slug="no-compile-commands",
            detail=read_failure(log, tree).tail,
        )
    (folder / _OUTCOME).write_text(json.dumps({"duration_s": duration_s, "notes": [asdict(note) for note in notes]}))
    seals.close(folder)


@contextmanager
def _without_overlay(request: BuildRequest, tree: Path, folder: Path) -> Iterator[None]:
    """Keep the overlay's own folders and modules out of the way of a command that nobody wrote with them in mind."""
    with tempfile.TemporaryDirectory(dir=folder) as room, overlay.apart(request.pin.repository, request.config.overlay, tree, Path(room)):
        yield


def _run(config: BuildConfig, folder: Path, environment: Mapping[str, str], log: Path) -> int | None:
    """Run the build command, its output in `log`; return its status, None where its time is over. Nothing of it goes on writing."""
    with (
        log.open("wb") as output,
        processes.running(config.command, folder, environment, stdout=output.fileno(), stderr=output.fileno()) as build,
    ):
        try:
            return build.wait(config.timeout_s)
        except subprocess.TimeoutExpired:
            return None


def _build_error(request: BuildRequest, status: int | None, log: Path, tree: Path, notes: Sequence[Note]) -> BuildError:
    command, where, failure = request.config.command, f"{request.side} ({_name(request)})", read_failure(log, tree)
    if status is None:
        return BuildError(
            f"'{command}' did not end within {request.config.timeout_s:g} s in {where}; raise build.timeout_s (whole log: {log})",
            slug="build-timeout",
            detail=failure.tail,
        )
    ended = f"exited {status}" if status > 0 else f"was killed by {processes.signal_name(-status)}"
    why = f": {failure.cause}" if failure.cause else ""
    # What the tree lacks may be behind a thing that was not found, not behind an error in the code.
    hints = "".join(f"; {text}" for text in [failure.remedy, *(note.text for note in notes if failure.remedy or not failure.cause)] if text)
    return BuildError(
        f"'{command}' {ended} in {where}{why}{hints} (excerpt below, whole log: {log})",
        slug="build-failed",
        detail=failure.excerpt,
    )


def _name(request: BuildRequest) -> str:
    revision = request.pin.revision
    return revision.rev if revision.commit is None or revision.commit.startswith(revision.rev) else f"{revision.rev}, {revision.commit[:7]}"


def compiler_identity(environment: Mapping[str, str]) -> str:
    """Return which compilers a build in this environment finds: their paths and what they say of their version; raise BuildError."""
    if not compilers.on_path(environment):
        raise BuildError("no C or C++ compiler was found on PATH; install gcc or clang", slug="no-compiler")
    found = (compilers.chosen(environment, language=language) for language in compilers.LANGUAGES)
    return "\n".join(f"{compiler.resolve()} {compilers.says(compiler, environment)}" for compiler in found if compiler)
