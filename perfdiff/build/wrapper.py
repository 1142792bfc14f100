"""The compiler masquerade: stands in for `cc`, `g++`, `ar`, … on PATH, runs the real one, and records what was compiled and linked.

Runs on its own with NAME FOLDER TREE HEADER RUNTIME KIND ARGUMENTS…, once per compiler call, in a bare interpreter (`python -I -S`), so it
imports nothing that is slow to start, and of perfdiff only what `masquerade.py` lays beside it. HEADER and RUNTIME are empty in a plain
build; KIND is one of `calls.py`. Writes one JSON file a compile to FOLDER/calls, and one an object that may serve the other side to
FOLDER/objects. In a plain build each call that made something leaves what it takes to repeat it, of a program in FOLDER/links, of all
else in FOLDER/steps; in others a link leaves its words in FOLDER/linked. FOLDER/bin is the masquerade itself.
"""

# Importing pathlib would take longer than all the rest.
# ruff: noqa: PTH109, PTH118

from __future__ import annotations

import os

from perfdiff.build.additions import Additions
from perfdiff.build.calls import Build, ParsedCall
from perfdiff.build.compiling import real_compiler, start, wait
from perfdiff.build.made import put_probes
from perfdiff.build.placing import Placing
from perfdiff.build.recording import included, is_inside, record, recording, run_archiver
from perfdiff.build.reuse import Outcome, Reuse, reads_more

_ARCHIVERS = ("ar", "ranlib")


def main(name: str, build: Build, arguments: list[str]) -> int:
    """Run one compiler call; return its exit status."""
    compiler, path = real_compiler(name, os.path.realpath(os.path.join(build.folder, "bin")))
    if _bare(name).endswith(_ARCHIVERS):
        return run_archiver(name, compiler, path, arguments, build)
    command = [compiler, *arguments]
    directory = os.getcwd()
    call = ParsedCall(name, arguments)
    is_inner = arguments[:1] in (["-cc1"], ["-cc1as"])  # clang calling itself
    is_passed = is_inner or call.is_configuration_check(directory)
    is_asked = call.sources or call.headers or call.links or (call.assembler and (build.is_counted or build.is_placed or build.is_plain))
    if is_passed or not (is_asked or (build.is_plain and call.partial)):
        os.environ["PATH"] = path
        os.execv(compiler, command)
    put_probes(call, build)
    added = _additions(call, compiler, path, build)
    words = added.words if added else []

    def compile_() -> Outcome:
        return added.run(command, path) if added else (wait(start(command, path)), {}, {})

    step = recording(call, name, compiler, directory) if build.is_plain else None
    reuse, noted = Reuse(call, compiler, directory, build, words), None
    status, dropped, plain = reuse.run(compile_, path)
    if step is not None:
        step.stop()
    if status == 0 and call.links and not build.is_plain:
        record(os.path.join(build.folder, "linked"), {"directory": directory, "arguments": call.arguments})
    if (call.sources and call.compiles) or any(is_inside(file, build.tree) for file in plain):
        sources = [{"file": os.path.join(directory, file), "language": language} for file, language in call.sources]
        content = {"directory": directory, "name": name, "compiler": compiler, "arguments": call.arguments, "sources": sources}
        named = {os.path.join(directory, file): says for file, says in plain.items()}
        outcome = {"output": call.output, "status": status, "dropped": dropped, "uncounted": named}
        noted = record(os.path.join(build.folder, "calls"), {**content, **outcome})
    if status == 0 and step is not None:
        text = reuse.text(path)
        files = included(text, directory, build.tree) if text else []
        own = [*(file for file, _ in call.sources), *call.headers, *(word for word in call.others if not word.startswith("-"))]
        more = reads_more(text, call.assembler, has_modules=any(language == "c++" for _, language in call.sources))
        step.write(build, own, text=reuse.digest, files=files, reads_more=more, call=noted)
    return status


def _bare(name: str) -> str:
    """Return a tool's name without its version."""
    return name.rstrip("0123456789.").rstrip("-")


def _additions(call: ParsedCall, compiler: str, path: str, build: Build) -> Additions | Placing | None:
    """Return what a build adds to a call, None of a plain one."""
    if build.is_plain:
        return None
    return Placing(call, compiler, path, build) if build.is_placed else Additions(call, compiler, path, build)
