"""One build while it is made: its tree is laid out, its command runs, and what came out is sealed."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from perfdiff import logs, processes, seals, temporary
from perfdiff.build import compilers, repeatable, repeating, userhome
from perfdiff.build.cache import remove_folder
from perfdiff.build.commands import read_compile_log
from perfdiff.build.failures import read_failure
from perfdiff.build.holdings import BUILD, OUTCOME, SOURCE
from perfdiff.build.masquerade import FlagKind, Flags, Masquerade, Plain, set_up_masquerade
from perfdiff.build.recording import note_environment
from perfdiff.build.repeatable import UnrepeatableError
from perfdiff.build.variants import BuildRequest, Instrumentation, elsewhere
from perfdiff.configuration.switches import switched_off
from perfdiff.errors import BuildError, NothingCompiledError
from perfdiff.languages.protocol import Prepared
from perfdiff.records.schema import Note, Phase
from perfdiff.revisions import overlay
from perfdiff.revisions.trees import lay_out, settle, settle_in_order


@dataclass(frozen=True, slots=True)
class Job:
    """A build that is laid out in `folder`; `request` has the command to run in `place`, "" where nothing is left to do.

    `variables` are those that what languages laid beside the tree is used by, `is_ours` tells a command that the user has not written.
    Where it `repeats` the plain build, the command does not run; `anew` says why a variant is built anew instead.
    """

    request: BuildRequest
    folder: Path
    place: Path
    variables: Mapping[str, str]
    masquerade: Masquerade
    log: Path
    notes: tuple[Note, ...]
    is_ours: bool
    prepared_s: float
    repeats: bool = False
    anew: str = ""

    @property
    def tree(self) -> Path:
        """Return the root of the tree."""
        return self.folder / SOURCE

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run the command for the length of the block, its output bounded in `log`; nothing of it goes on writing afterwards."""
        request = self.request
        # Compilers that are killed leave their temporary files. Not in the cache, whose path may be too long for sockets (107 bytes).
        with temporary.folder() as room, ExitStack() as stack:
            ours = {"TMPDIR": str(room), **(elsewhere(room) if request.variant is Phase.PLACED else {})}
            if self.is_ours:
                stack.enter_context(_without_overlay(request, self.tree, self.folder))
            output = stack.enter_context(logs.bounded(self.log))
            userhome.lay_out(self.folder, request.environment)
            environment = {**self.masquerade.environment, **userhome.variables(self.folder / userhome.NAME, request.environment), **ours}
            note_environment(str(self.masquerade.began), environment)
            yield stack.enter_context(processes.running(self._command, self.place, environment, stdout=output, stderr=output))

    @property
    def _command(self) -> str:
        """Return the shell command that builds, and links the fuzz targets behind it, or that repeats the plain build."""
        if self.repeats:
            return shlex.join([sys.executable, "-P", "-m", repeating.__name__, str(self.masquerade.folder.absolute())])
        command, targets = self.request.config.command, self.request.fuzz_targets
        if not targets:
            return command
        words = [sys.executable, "-P", "-m", "perfdiff.build.fuzzing", str(self.masquerade.folder.absolute()), *targets]
        return f"( {command}\n) && {shlex.join(words)}"

    def failure(self, status: int | None) -> BuildError:
        """Return the error of a build whose command ended with this status; None as status means that it ran out of time."""
        request, log = self.request, self.log
        where, failure = f"{request.side}{request.variant.build} ({name(request)})", read_failure(log, self.tree)
        command = request.config.command
        if status is None:
            return BuildError(
                f"'{command}' did not end within {request.config.timeout_s:g} s in {where}; raise build.timeout_s (log: {log})",
                slug="build-timeout",
                detail=failure.tail,
            )
        number = -status if status < 0 else status - 128  # the shell reports a child's signal as 128 + number
        ended = f"was killed by {processes.signal_name(number)}" if 0 < number < signal.NSIG else f"exited {status}"
        why = f": {failure.cause}" if failure.cause else ""
        # What the tree lacks may be behind a thing that was not found, not behind an error in the code.
        remedies = (
            self._from_checkout(failure.missing) or failure.remedy,
            *(note.text for note in self.notes if failure.remedy or not failure.cause),
        )
        hints = "".join(f"; {text}" for text in remedies if text)
        return BuildError(
            f"'{command}' {ended} in {where}{why}{hints} (log: {log})",
            slug="build-failed",
            detail=failure.excerpt,
        )

    def _from_checkout(self, missing: str) -> str:
        """Return how a file that was not found comes from the checkout, "" where the checkout lacks it or the tree has it."""
        repository = self.request.pin.repository
        if not missing or repository.top is None or (self.place / missing).exists():
            return ""
        if not (repository.top / repository.folder / missing).is_file():
            return ""
        path = Path(missing)
        named = f"{path.parts[0]}/" if len(path.parts) > 1 else missing
        return f'your checkout has it, this revision does not: `overlay = ["{named}"]` under [build] copies it into both revisions'

    def writes_elsewhere(self) -> bool:
        """Return whether a compiler of the command worked in a folder that is not this build's own."""
        commands = read_compile_log(self.masquerade.calls, self.tree.resolve()).commands
        return not all(command.directory.resolve().is_relative_to(self.folder.resolve()) for command in commands)

    def finish(self, running_s: float) -> None:
        """Finish and seal a build whose command has succeeded after `running_s` seconds; raise BuildError."""
        request, started, notes = self.request, time.monotonic(), list(self.notes)
        if request.workplace:
            notes += request.workplace.finish(self.folder, self.tree, self.place, self.variables)
        else:
            self._require_compiled()
        if request.variant is Phase.PLAIN and request.workplace is None:
            repeatable.write_recipe(self.masquerade.folder, self.tree.resolve())
        duration_s = self.prepared_s + running_s + time.monotonic() - started
        outcome = {"duration_s": duration_s, "notes": [asdict(note) for note in notes], "anew": self.anew}
        (self.folder / OUTCOME).write_text(json.dumps(outcome))
        seals.close(self.folder, without=userhome.NAME)

    def _require_compiled(self) -> None:
        """Raise BuildError where no compiler was seen at work, or only on files that the revision does not have."""
        request = self.request
        log = read_compile_log(self.masquerade.calls, self.tree.resolve())
        where = f"{request.side} ({name(request)})"
        off: tuple[str, ...] = ()
        if log.elsewhere and not log.commands:
            says = (
                f"'{request.config.command}' compiles {log.elsewhere[0]}, which is no file of {where}, and nothing else, so nothing can be "
                f'measured; copy it into your checkout, let the command name it there, and write `overlay = ["{log.elsewhere[0].name}"]` '
                "under [build], which copies it into both revisions"
            )
        elif not any(self.masquerade.calls.glob("*.json")):
            given = (f"{variable} is '{chosen}'" for variable in compilers.VARIABLES if (chosen := request.environment.get(variable)))
            settings = ", ".join(given)
            says = (
                f"no compiler call of '{request.config.command}' was seen in {where}: it compiles nothing, or calls compilers by absolute "
                "path or by names that are none of gcc's or clang's (cc, gcc-12, clang++, …), so nothing can be measured; let it take the "
                f"compiler from CC, CXX or PATH{f' ({settings})' if settings else ''}"
            )
            if off := tuple(switched_off(self.place)):
                says += f"; where tests or benchmarks are all that it compiles, switch them on: --build with {', '.join(off)}"
        else:
            return
        raise NothingCompiledError(f"{says} (log: {self.log})", detail=read_failure(self.log, self.tree).tail, switches=off)


def prepare(request: BuildRequest, environment: Mapping[str, str], folder: Path, log: Path, *, anew: str = "") -> Job:
    """Lay out the tree, and what languages lay beside it, with the probes in it; raise BuildError.

    A variant is made from the plain build where that can be repeated, unless there is a reason to build it `anew`.
    """
    if request.instrumentation is not None and not anew:
        try:
            return _repeating(request, request.instrumentation, environment, folder, log)
        except UnrepeatableError as error:
            anew = str(error)
            remove_folder(folder / SOURCE)
    tree = folder / SOURCE
    notes = lay_out(request.pin, tree, overlay=request.config.overlay)
    flags = None
    if request.instrumentation is not None:
        asked = request.instrumentation
        flags = Flags(header=asked.insert(tree) if asked.insert else None, runtime=asked.runtime, kind=asked.kind, plain=asked.plain)
        settle(tree)
    place = tree / request.pin.repository.folder
    if not place.is_dir():
        raise BuildError(
            f"{request.side} ({name(request)}) has no folder {request.pin.repository.folder}; run perfdiff where both revisions have the "
            "project",
            slug="build-failed",
        )
    started, workplace = time.monotonic(), request.workplace
    prepared = workplace.prepare(folder, tree, place, environment) if workplace else Prepared({})
    variables = {**environment, **prepared.variables}
    if not (request.config.command or prepared.command):  # else a build would take what is committed beside its source for out of date
        settle_in_order(tree, but=overlay.overlay_files(request.pin.repository, request.config.overlay))
    return Job(
        request=replace(request, config=replace(request.config, command=request.config.command or prepared.command)),
        folder=folder,
        place=place,
        variables=variables,
        masquerade=set_up_masquerade(folder / BUILD, tree, variables, flags, request.partner, request.earlier),
        log=log,
        notes=notes,
        is_ours=not request.config.command,
        prepared_s=time.monotonic() - started,
        anew=anew,
    )


def _repeating(request: BuildRequest, asked: Instrumentation, environment: Mapping[str, str], folder: Path, log: Path) -> Job:
    """Lay out a copy of the plain build's tree with the probes in it; raise UnrepeatableError where that cannot be repeated."""
    tree, plain = folder / SOURCE, asked.plain
    if plain is None or request.workplace is not None:
        raise UnrepeatableError("more is built than by compilers alone")
    if request.fuzz_targets:
        raise UnrepeatableError("fuzz targets are linked to what it has built")
    started, origin = time.monotonic(), repeating.origin_of(plain.folder)
    repeating.lay_out(plain.folder, origin, tree, plain.used)
    notes = tuple(Note(**note) for note in json.loads((plain.folder.parent / OUTCOME).read_text())["notes"])
    flags = Flags(header=asked.insert(tree) if asked.insert else None, runtime=asked.runtime, kind=asked.kind)
    masquerade = set_up_masquerade(folder / BUILD, tree, environment, flags, request.partner, request.earlier)
    repeating.write_order(masquerade.folder, _order(asked.kind, plain, origin, repeating.changed_files(origin, tree)))
    return Job(
        request=request,
        folder=folder,
        place=tree / request.pin.repository.folder,
        variables=environment,
        masquerade=masquerade,
        log=log,
        notes=notes,
        is_ours=False,
        prepared_s=time.monotonic() - started,
        repeats=True,
    )


def _order(kind: FlagKind, plain: Plain, origin: Path, changed: tuple[str, ...]) -> repeating.RepeatOrder:
    """Say which objects of the plain build serve a kind of build: counts are made of all units, of lines only where files are named."""
    is_placed = kind in (FlagKind.PLACED, FlagKind.PLACED_IN_THREADS)
    serves = kind is not FlagKind.COUNTED and not (is_placed and plain.line_files is None)
    return repeating.RepeatOrder(
        plain=str(plain.folder.absolute()),
        origin=str(origin.absolute()),
        other=str(plain.other.absolute()) if plain.other is not None and serves else None,
        changed=changed,
        is_aligned=not is_placed,
        line_files=tuple(plain.line_files or ()),
        used=tuple(sorted(plain.used)),
        optimised=_optimised_by_the_linker(kind, plain),
    )


def _optimised_by_the_linker(kind: FlagKind, plain: Plain) -> tuple[str, ...] | None:
    """Return the files whose units a variant leaves to the linker where the project does, None for all.

    Counts are of the program as it is optimised, and compile all units in any case. Calls are timed where what either side has probes in is
    optimised together. What is called, and which lines run, hangs on no optimisation.
    """
    if kind is FlagKind.COUNTED:
        return None
    return tuple(sorted(plain.probed)) if kind is FlagKind.PROBED else ()


def name(request: BuildRequest) -> str:
    """Return a build's revision in the user's words, with the commit where they do not tell it."""
    revision = request.pin.revision
    return revision.rev if revision.commit is None or revision.commit.startswith(revision.rev) else f"{revision.rev}, {revision.commit[:7]}"


@contextmanager
def _without_overlay(request: BuildRequest, tree: Path, folder: Path) -> Iterator[None]:
    """Keep the overlay's own folders and modules out of the way of a command that nobody wrote with them in mind."""
    with temporary.folder(within=folder) as room, overlay.apart(request.pin.repository, request.config.overlay, tree, room):
        yield
