"""What a plain build writes down of a call that made something: enough to repeat it in another tree (`steps.py` reads it)."""

# Part of the masquerade: importing pathlib would take longer than all the rest.
# ruff: noqa: PTH104, PTH109, PTH113, PTH118, PTH119, PTH122, PTH123

from __future__ import annotations

import os
import time
import zlib

from perfdiff.build.calls import ARCHIVE, ASSEMBLER, COMPILE, HEADER, LINK, PARTIAL, Build, ParsedCall, expand, tries_tools_out
from perfdiff.build.compiling import start, wait

_LINKING_VARIABLES = ("LD_RUN_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX")  # what decides a link beside its arguments
_OF_THE_CALLER = frozenset(("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKE_TERMOUT", "MAKE_TERMERR", "OLDPWD", "SHLVL", "_"))
_PIECE = 1 << 20  # bytes read at once
_WRITING, _READING = frozenset("dmqrs"), frozenset("ptx")  # operations of `ar`
_BY_PLACE = frozenset("abiN")  # its modifiers that take a word before the archive


def record(folder: str, content: dict[str, object]) -> str:
    """Write one JSON file under a name of its own, which sorts by time; complete or not at all. Return the name."""
    import json

    name = f"{time.time_ns():020d}-{os.getpid()}.json"
    with open(os.path.join(folder, f"{name}.part"), "w", encoding="utf-8") as file:
        json.dump(content, file)
    os.rename(os.path.join(folder, f"{name}.part"), os.path.join(folder, name))
    return name


class CallRecorder:
    """The record of one compiler call, begun before it runs; `output` is the file that it makes."""

    def __init__(  # noqa: PLR0913, PLR0917 (what a call is)
        self, kind: str, name: str, compiler: str, arguments: list[str], directory: str, output: str
    ) -> None:
        self._kind, self._name, self._compiler, self._arguments, self._directory = kind, name, compiler, arguments, directory
        self._output = os.path.join(directory, output)
        self._existed = os.path.lexists(self._output)
        self._started_ns = self._ended_ns = time.time_ns()

    def stop(self) -> None:
        """Take this for the moment at which the call has ended."""
        self._ended_ns = time.time_ns()

    def write(self, build: Build, inputs: list[str], **more: object) -> None:
        """Write down a call that ended well, with the files that it was given; nothing where its output cannot be told."""
        if not os.path.isfile(self._output) and self._kind != ASSEMBLER:
            return
        size, digest = size_and_digest(self._output) if os.path.isfile(self._output) else (0, 0)
        call: dict[str, object] = {"kind": self._kind, "directory": self._directory, "name": self._name, "compiler": self._compiler}
        call["arguments"] = self._arguments
        call["environment"] = {variable: os.environ[variable] for variable in _LINKING_VARIABLES if variable in os.environ}
        call["changes"] = _changes(build.folder)
        call["inputs"] = [os.path.realpath(os.path.join(self._directory, file)) for file in inputs]
        output = {"output": os.path.realpath(self._output), "size": size, "digest": digest, "existed": self._existed}
        is_program = self._kind == LINK and is_inside(self._output, build.tree)
        folder = os.path.join(build.folder, "links" if is_program else "steps")
        record(folder, {**call, **output, **more, "started_ns": self._started_ns, "ended_ns": self._ended_ns})


def recording(call: ParsedCall, name: str, compiler: str, directory: str) -> CallRecorder | None:
    """Return how to record a compiler call of a plain build; None of one that makes nothing to be linked."""
    if call.stop not in ("compile", "link") or not (call.sources or call.others or call.headers):
        return None
    if call.headers:
        kind, output = HEADER, call.output or f"{call.headers[0]}.gch"
    elif call.stop == "compile":
        first = (*(path for path, _ in call.sources), *call.assembler, "")[0]
        kind = ASSEMBLER if "-S" in call.arguments else COMPILE
        output = call.output or os.path.splitext(os.path.basename(first))[0] + ".o"
    else:
        kind, output = PARTIAL if call.partial else LINK, call.output or "a.out"
    return CallRecorder(kind, name, compiler, call.arguments, directory, output)


def size_and_digest(file: str) -> tuple[int, int]:
    """Return a file's size and CRC-32."""
    size, digest = 0, 0
    with open(file, "rb") as content:
        while piece := content.read(_PIECE):
            size, digest = size + len(piece), zlib.crc32(piece, digest)
    return size, digest


def included(text: bytes, directory: str, tree: str) -> list[str]:
    """Return the files of a tree that a preprocessed text is of, relative to it, as its markers (`# 1 "size.h"`) tell."""
    names: set[bytes] = set()
    for piece in (b"\n" + text).split(b"\n# ")[1:]:
        begin = piece.find(b'"') + 1
        names.add(piece[begin : piece.find(b'"', begin)])
    names = {name for name in names if not name.startswith(b"<")}  # such as `<built-in>`
    files = {os.path.realpath(os.path.join(directory, os.fsdecode(name.replace(b"\\\\", b"\\")))) for name in names}
    return sorted(file[len(tree) + 1 :] for file in files if file.startswith(tree + os.sep))


def run_archiver(name: str, archiver: str, path: str, arguments: list[str], build: Build) -> int:
    """Run a tool that writes a static archive, and record what it made in a plain build; return its exit status."""
    directory, expanded = os.getcwd(), expand(arguments, 0)
    output, members = archive_words(expanded, is_index="ranlib" in name)
    if not build.is_plain or output is None or tries_tools_out(directory, [output, *members]):
        os.environ["PATH"] = path
        os.execv(archiver, [archiver, *arguments])
    call = CallRecorder(ARCHIVE, name, archiver, expanded, directory, output)
    status = wait(start([archiver, *arguments], path))
    if status == 0:
        call.stop()
        call.write(build, members)
    return status


def archive_words(arguments: list[str], *, is_index: bool) -> tuple[str | None, list[str]]:
    """Return the archive that a call of `ar`, or of `ranlib`, writes, None where it writes none or more; and what it puts there."""
    key, files, words = "", list[str](), iter(arguments)
    for word in words:
        if word in ("--plugin", "--target", "--output"):
            next(words, None)
        elif word.startswith("--"):
            continue
        elif word.startswith("-") and not files:
            key += word[1:]
        elif not (key or files or is_index):
            key = word
        else:
            files.append(word)
    if is_index:
        return (files[0] if len(files) == 1 else None), []
    writes = not _WRITING.isdisjoint(key) and _READING.isdisjoint(key) and _BY_PLACE.isdisjoint(key)
    return (files[0], files[1:]) if files and writes else (None, [])


def note_environment(file: str, environment: dict[str, str]) -> None:
    """Write down with what environment a build begins, by checksums alone: it may hold secrets."""
    import json

    with open(file, "w", encoding="utf-8") as noted:
        json.dump({name: _mark(value) for name, value in environment.items()}, noted)


def _changes(folder: str) -> dict[str, str | None]:
    """Return what the build itself has changed of its environment, None where it took a variable away."""
    import json

    try:
        with open(os.path.join(folder, "environment"), encoding="utf-8") as file:
            noted = json.load(file)
    except OSError:
        return {}
    changed: dict[str, str | None] = dict.fromkeys(noted.keys() - os.environ.keys())
    return changed | {name: value for name, value in os.environ.items() if name not in _OF_THE_CALLER and noted.get(name) != _mark(value)}


def _mark(value: str) -> int:
    return zlib.crc32(os.fsencode(value))


def is_inside(file: str, tree: str) -> bool:
    """Return whether a file lies in the tree."""
    return os.path.realpath(file).startswith(tree + os.sep)
