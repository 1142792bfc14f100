"""The compiler masquerade: stands in for `cc`, `g++`, … on PATH, runs the real one, and records what was compiled and linked.

Runs on its own with NAME FOLDER TREE HEADER RUNTIME KIND ARGUMENTS…, once per compiler call, in a bare interpreter (`python -I -S`), so it
imports nothing that is slow to start, and of perfdiff only what `masquerade.py` lays beside it. HEADER and RUNTIME are empty in a plain
build; KIND is one of `calls.py`. Writes one JSON file a compile to FOLDER/calls, one a link to FOLDER/links in a plain build (in others,
with its words alone, to FOLDER/linked), and one an object that may serve the other side to FOLDER/objects; FOLDER/bin is the masquerade
itself.
"""

# Importing pathlib would take longer than all the rest.
# ruff: noqa: PTH104, PTH109, PTH113, PTH118, PTH123

from __future__ import annotations

import os
import time

from perfdiff.build.additions import Additions
from perfdiff.build.calls import Build, Call
from perfdiff.build.compiling import real_compiler, start, wait
from perfdiff.build.made import put_probes
from perfdiff.build.placing import Placing
from perfdiff.build.reuse import Outcome, Reuse

_LINKING_VARIABLES = ("LD_RUN_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX")  # what decides a link beside its arguments
_PIECE = 1 << 20  # bytes read at once


def record(folder: str, content: dict[str, object]) -> None:
    """Write one JSON file under a name of its own, which sorts by time; complete or not at all."""
    import json

    name = os.path.join(folder, f"{time.time_ns():020d}-{os.getpid()}")
    with open(name + ".part", "w", encoding="utf-8") as file:
        json.dump(content, file)
    os.rename(name + ".part", name + ".json")


def main(name: str, build: Build, arguments: list[str]) -> int:
    """Run one compiler call; return its exit status."""
    compiler, path = real_compiler(name, os.path.realpath(os.path.join(build.folder, "bin")))
    command = [compiler, *arguments]
    directory = os.getcwd()
    call = Call(name, arguments)
    is_inner = arguments[:1] in (["-cc1"], ["-cc1as"])  # clang calling itself
    is_passed = is_inner or call.is_configuration_check(directory)
    if is_passed or not (call.sources or call.headers or call.links or (call.assembler and (build.is_counted or build.is_placed))):
        os.environ["PATH"] = path
        os.execv(compiler, command)
    put_probes(call, build)
    added = _additions(call, compiler, path, build)
    words = added.words if added else []

    def compile_() -> Outcome:
        return added.run(command, path) if added else (wait(start(command, path)), {}, {})

    status, dropped, plain = Reuse(call, compiler, directory, build, words).run(compile_, path)
    if status == 0 and call.links and build.is_plain:
        record_link(call, name, compiler, directory, build)
    elif status == 0 and call.links:
        record(os.path.join(build.folder, "linked"), {"directory": directory, "arguments": call.arguments})
    if (call.sources and call.compiles) or any(is_inside(file, build.tree) for file in plain):
        sources = [{"file": os.path.join(directory, file), "language": language} for file, language in call.sources]
        content = {"directory": directory, "name": name, "compiler": compiler, "arguments": call.arguments, "sources": sources}
        named = {os.path.join(directory, file): says for file, says in plain.items()}
        outcome = {"output": call.output, "status": status, "dropped": dropped, "uncounted": named}
        record(os.path.join(build.folder, "calls"), {**content, **outcome})
    return status


def _additions(call: Call, compiler: str, path: str, build: Build) -> Additions | Placing | None:
    """Return what a build adds to a call, None of a plain one."""
    if build.is_plain:
        return None
    return Placing(call, compiler, path, build) if build.is_placed else Additions(call, compiler, path, build)


def record_link(call: Call, name: str, compiler: str, directory: str, build: Build) -> None:
    """Write down how a program or shared library in the tree was linked, and what came out: its size and CRC-32."""
    output = os.path.join(directory, call.output or "a.out")
    if not (is_inside(output, build.tree) and os.path.isfile(output)):
        return
    import zlib

    size, digest, ended = 0, 0, time.time_ns()
    with open(output, "rb") as file:
        while piece := file.read(_PIECE):
            size, digest = size + len(piece), zlib.crc32(piece, digest)
    variables = {variable: os.environ[variable] for variable in _LINKING_VARIABLES if variable in os.environ}
    content = {"directory": directory, "name": name, "compiler": compiler, "arguments": call.arguments, "environment": variables}
    record(os.path.join(build.folder, "links"), {**content, "output": output, "size": size, "digest": digest, "ended_ns": ended})


def is_inside(file: str, tree: str) -> bool:
    """Return whether a file lies in the tree."""
    return os.path.realpath(file).startswith(tree + os.sep)
