"""Runtimes that are kept ready between runs of one program, and fork for each (`languages.traits.Forking`)."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shlex
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from perfdiff import processes, temporary
from perfdiff.collect.execution.executor import Command
from perfdiff.languages.installed import installed

FOLDER = "PERFDIFF_PLACES"  # the variable that tells a run where to leave its counts
_OPTION = re.compile(r"-[bBdEIOqsSu]+")  # of an interpreter, without a value
_START_S = 30.0  # that an interpreter takes to start, and to import what a program does
_END_S = 5.0  # until a server tells of an end, and imports what the first run did
_OPERATORS = frozenset("();<>|&`$*?[~#!{}\\'\"")  # of the shell, all but one `< file`, and quotes that are none of these:
_QUOTED = re.compile(r"""'[^']*'|"[^"$`\\]*\"""")


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended: its status as wait(2) has it, its CPU time, and its most memory."""

    status: int
    cpu_ns: float
    max_rss_bytes: float


@dataclass(frozen=True, slots=True)
class ForkedProgram:
    """A command that a server can make runs of: the words that start the server, those of the program, and a file to read.

    `caller` are words that take the place of the server's script where calls of a function are recorded, or made alone.
    """

    server: tuple[str, ...]
    words: tuple[str, ...]
    input: str
    caller: tuple[str, ...]


def program_of(command: Command) -> ForkedProgram | None:
    """Return what a server needs to know of a command, None where there is no server for it, or the shell has more to do."""
    bare = _QUOTED.sub("", command.text)
    text, _, read = command.text.rpartition(" < ") if " < " in bare else (command.text, "", "")
    try:
        words, files = shlex.split(text), shlex.split(read)
    except ValueError:
        return None
    if not words or len(files) > 1 or not _OPERATORS.isdisjoint(bare.replace(" < ", " ", 1)) or "\n" in command.text:
        return None
    options = next((place for place, word in enumerate(words[1:]) if not _OPTION.fullmatch(word)), None)
    if options is None or (words[1 + options].startswith("-") and (words[1 + options] != "-m" or len(words) < options + 3)):
        return None
    for traits in installed():
        forking = traits.running.forking
        if forking is not None and forking.program.fullmatch(Path(words[0]).name):
            started = (*words[: 1 + options], str(forking.server))
            return ForkedProgram(started, tuple(words[1 + options :]), next(iter(files), os.devnull), forking.caller)
    return None


class ForkServer:
    """A server that makes runs of one program in one environment, one after the other, until `close`; it `is_gone` when it has failed."""

    def __init__(self, program: ForkedProgram, command: Command) -> None:
        """Start it beside the folder that a run of the command leaves its counts in."""
        self.is_gone = False
        self._environment = {**command.environment}
        self._stack = ExitStack()
        self._room = self._stack.enter_context(temporary.folder("server-", within=Path(command.environment[FOLDER]).parent))
        started = processes.running(
            f"exec {shlex.join(program.server)}",
            command.directory,
            {**self._environment, FOLDER: str(self._room)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._process = process = self._stack.enter_context(started)
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None, "requests go to a pipe, and answers come from one"
            self._stack.callback(_closed, pipe)
        self._number = self._answer(_START_S)

    def fork(self, program: ForkedProgram, command: Command) -> ForkedRun | None:
        """Begin a run of the program as a command has it, None where the server is gone."""
        environment = {name: value for name, value in command.environment.items() if self._environment.get(name) != value}
        request = {"words": program.words, "input": program.input, "environment": environment | {FOLDER: str(self._room)}}
        before = self._own_counts()
        assert self._process.stdin is not None, "requests go to a pipe"
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            self.is_gone = True
        leader = self._answer(_START_S)
        if leader is None:
            return None
        return ForkedRun(self, int(leader), Path(command.environment[FOLDER]), before)

    @property
    def descriptor(self) -> int:
        """Return a file descriptor that becomes readable once a run has ended."""
        assert self._process.stdout is not None, "answers come from a pipe"
        return self._process.stdout.fileno()

    def ended(self, folder: Path) -> RunEnd | None:
        """Return how the last run ended, what it left moved to its folder; None where the server is gone."""
        answer = self._answer(_END_S)
        if answer is None:
            return None
        for path in self._room.iterdir():
            if not self._is_own(path):
                path.rename(folder / path.name)
        status, cpu_s, rss_kib = answer.split()
        return RunEnd(int(status), float(cpu_s) * 1e9, float(rss_kib) * 1024.0)

    def close(self) -> None:
        """End the server, and remove the files that it left."""
        self._stack.close()

    def _is_own(self, path: Path) -> bool:
        return path.name.startswith(f"{self._number}-")

    def _own_counts(self) -> dict[str, bytes]:
        """Return what the server itself has counted, which is part of each of its runs."""
        return {path.name: path.read_bytes() for path in self._room.iterdir() if self._is_own(path)}

    def _answer(self, timeout_s: float) -> str | None:
        """Return the next line that the server answers, and no more than that, None where none comes: it is gone then."""
        line = b""
        while not self.is_gone and not line.endswith(b"\n"):
            ready, _, _ = select.select([self.descriptor], [], [], timeout_s)
            part = os.read(self.descriptor, 1) if ready else b""
            self.is_gone = not part
            line += part
        return None if self.is_gone else line.decode().strip()


def _closed(pipe: IO[bytes]) -> None:
    with contextlib.suppress(BrokenPipeError):
        pipe.close()


@dataclass(frozen=True, slots=True)
class ForkedRun:
    """A run that a server has begun in a process `leader`, and whose counts belong in `folder`, with those of the server `before` it."""

    server: ForkServer
    leader: int
    folder: Path
    before: Mapping[str, bytes]

    @property
    def descriptor(self) -> int:
        """Return a file descriptor that becomes readable once the run has ended."""
        return self.server.descriptor

    def end(self) -> RunEnd | None:
        """Return how it ended, None where the server is gone."""
        end = self.server.ended(self.folder)
        for name, content in self.before.items() if end else ():
            (self.folder / name).write_bytes(content)
        return end
