"""The compiler masquerade: stands in for `cc`, `g++`, … on PATH, runs the real one, and records what was compiled.

Runs on its own by `python -I -S wrapper NAME FOLDER TREE HEADER RUNTIME ARGUMENTS…`, once per compiler call, so it imports nothing
that is slow to start. HEADER and RUNTIME are empty in a plain build. Writes one JSON file a compile to FOLDER/calls; FOLDER/bin is the
masquerade itself.
"""

# Importing pathlib would take longer than all the rest.
# ruff: noqa: PTH100, PTH104, PTH109, PTH113, PTH118, PTH119, PTH122, PTH123

from __future__ import annotations

import os
import sys
import time

# fmt: off
_WITH_VALUE = frozenset((
    "-o", "-x", "-I", "-D", "-U", "-L", "-l", "-F", "-B", "-T", "-u", "-z", "-e", "-A", "-G", "-MF", "-MT", "-MQ", "-include",
    "-imacros", "-isystem", "-idirafter", "-iquote", "-iprefix", "-iwithprefix", "-iwithprefixbefore", "-isysroot", "-iframework",
    "-framework", "-imultilib", "-Xlinker", "-Xassembler", "-Xpreprocessor", "-Xclang", "-Xarch_host", "-mllvm", "-aux-info", "--param",
    "-target", "--sysroot", "--output", "-arch", "-dumpbase", "-dumpbase-ext", "-dumpdir", "-wrapper", "-V", "-b", "-include-pch",
    "-gcc-toolchain", "-undefined", "-install_name", "-soname", "-h", "-rpath",
))
# fmt: on
_C_SUFFIXES = frozenset((".c", ".i"))
_CPLUSPLUS_SUFFIXES = frozenset((".cc", ".cp", ".cxx", ".cpp", ".CPP", ".c++", ".C", ".ii", ".ixx", ".cppm"))
_HEADER_SUFFIXES = frozenset((".h", ".hh", ".hpp", ".HPP", ".hxx", ".h++", ".H", ".hp", ".tcc"))
_LANGUAGES = {"c": "c", "cpp-output": "c", "c++": "c++", "c++-cpp-output": "c++", "c-header": "header", "c++-header": "header"}
_CACHES = frozenset(("ccache", "distcc", "icecc", "sccache", "colorgcc"))
_CHECK_PLACES = ("/CMakeFiles/CMakeTmp", "/CMakeFiles/CMakeScratch", "/meson-private/", "/CompilerIdC", "/.conf_check_", "/config.tests/")
_CHECK_NAMES = ("conftest", "CMakeCCompilerId", "CMakeCXXCompilerId", "sanitycheckc", "testCCompiler", "testCXXCompiler")
_INCLUDE_DEPTH = 16  # response files in response files; deeper ones include themselves
_ATTEMPTS = 12  # clang stops at 20 errors, so one attempt can name 20 probes; a unit with more than 220 bad ones loses all its probes


class Call:
    """What one compiler call is asked to do: `sources` are pairs of path and language (`c` or `c++`)."""

    def __init__(self, name: str, arguments: list[str]) -> None:
        self.arguments = expand(arguments, 0)
        self.sources: list[tuple[str, str]] = []
        self.others: list[str] = []  # objects, archives, assembler files, libraries
        self.headers: list[str] = []  # to be precompiled
        self.output: str | None = None
        self.stop = "link"  # "preprocess", "check", "compile" or "link"
        self.partial = False  # `-r`: links objects to an object
        self.static = False
        self._read(cplusplus="++" in name)

    def _read(self, *, cplusplus: bool) -> None:
        language = ""
        words = iter(self.arguments)
        for word in words:
            if word == "-" or not word.startswith("-"):
                self._add_input(word, language, cplusplus=cplusplus)
            elif word == "-x" or (word.startswith("-x") and len(word) > 2):
                language = word[2:] or next(words, "")
                language = "" if language == "none" else language
            elif word in ("-o", "--output"):
                self.output = next(words, None)
            elif word == "-l":
                self.others.append(next(words, ""))
            elif word in _WITH_VALUE:
                next(words, None)
            else:
                self._read_option(word)

    def _read_option(self, word: str) -> None:
        if word in ("-E", "-M", "-MM", "--preprocess", "-###"):
            self.stop = "preprocess"
        elif word in ("-fsyntax-only", "--analyze") and self.stop != "preprocess":
            self.stop = "check"
        elif word in ("-c", "-S", "--compile", "--assemble") and self.stop == "link":
            self.stop = "compile"
        elif word.startswith("-o"):
            self.output = word[2:]
        elif word.startswith("-l"):
            self.others.append(word)
        elif word in ("-r", "-Wl,-r", "-Wl,--relocatable"):
            self.partial = True
        elif word in ("-static", "--static", "-static-pie"):
            self.static = True

    def _add_input(self, path: str, language: str, *, cplusplus: bool) -> None:
        suffix = os.path.splitext(path)[1]
        if path == "-":
            self.others.append(path)
        elif language in _LANGUAGES or (not language and suffix in _HEADER_SUFFIXES):
            kind = _LANGUAGES.get(language, "header")
            if kind == "header":
                self.headers.append(path)
            else:
                self.sources.append((path, kind))
        elif not language and suffix in _CPLUSPLUS_SUFFIXES:
            self.sources.append((path, "c++"))
        elif not language and suffix in _C_SUFFIXES:
            self.sources.append((path, "c++" if cplusplus else "c"))
        else:
            self.others.append(path)

    @property
    def links(self) -> bool:
        """Return whether a program or a shared library comes out."""
        return self.stop == "link" and bool(self.sources or self.others) and not self.partial and not self.headers

    @property
    def compiles(self) -> bool:
        """Return whether sources are turned into machine code."""
        return self.stop in ("compile", "link") and bool(self.sources)

    def is_configuration_check(self, directory: str) -> bool:
        """Return whether the call belongs to a build system that tries the compiler out."""
        paths = [os.path.join(directory, path) for path, _ in self.sources] + [os.path.join(directory, path) for path in self.others]
        return any(
            os.path.basename(path).startswith(_CHECK_NAMES) or any(place in path for place in _CHECK_PLACES)
            for path in [*paths, directory + "/"]
        )


def expand(arguments: list[str], depth: int) -> list[str]:
    """Return the arguments with response files (`@file`) replaced by what they hold."""
    expanded: list[str] = []
    for argument in arguments:
        if argument.startswith("@") and depth < _INCLUDE_DEPTH and os.path.isfile(argument[1:]):
            with open(argument[1:], encoding=sys.getfilesystemencoding(), errors="surrogateescape") as file:
                expanded += expand(split(file.read()), depth + 1)
        else:
            expanded.append(argument)
    return expanded


def split(text: str) -> list[str]:
    """Split the text of a response file as gcc does: white space parts, quotes join, a backslash takes the next character."""
    words: list[str] = []
    word: str | None = None
    quote = ""
    characters = iter(text)
    for character in characters:
        if character == "\\":
            word = (word or "") + next(characters, "")
        elif quote:
            if character == quote:
                quote = ""
            else:
                word = (word or "") + character
        elif character in "'\"":
            quote, word = character, word or ""
        elif character.isspace():
            if word is not None:
                words.append(word)
            word = None
        else:
            word = (word or "") + character
    return [*words, word] if word is not None else words


def real_compiler(name: str, masquerade: str) -> tuple[str, str]:
    """Return the compiler of this name behind the masquerade on PATH, and that PATH; compiler caches are passed over."""
    folders = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.realpath(folder or ".") != masquerade]
    for folder in folders:
        path = os.path.join(os.path.abspath(folder or "."), name)
        if os.access(path, os.X_OK) and os.path.isfile(path) and os.path.basename(os.path.realpath(path)) not in _CACHES:
            return path, os.pathsep.join(folders)
    sys.stderr.write(f"{name}: not found\n")
    raise SystemExit(127)


def guilty_probes(errors: str) -> set[int]:
    """Return the probes that the compiler's errors name; warnings name innocent ones."""
    import re

    lines = errors.splitlines()
    told_apart = any("error:" in line for line in lines)  # not so in other languages
    probes: set[int] = set()
    is_error = not told_apart
    for line in lines:
        if told_apart and ("error:" in line or "warning:" in line):
            is_error = "error:" in line
        if is_error:
            probes.update(int(number) for number in re.findall(r"\bPD(?:_B)?_(\d+)", line))
    return probes


def reason(errors: str) -> str:
    """Return the first error that the compiler told."""
    lines = [line for line in errors.splitlines() if line.strip()]
    return next((line.partition("error:")[2].strip() for line in lines if "error:" in line), lines[0] if lines else "no message")


def start(command: list[str], path: str, errors: int | None = None) -> int:
    """Start the real compiler with PATH `path`, its standard error on the descriptor `errors`; return its process id."""
    actions = [] if errors is None else [(os.POSIX_SPAWN_DUP2, errors, 2), (os.POSIX_SPAWN_CLOSE, errors)]
    return os.posix_spawn(command[0], command, {**os.environ, "PATH": path}, file_actions=actions)


def wait(process: int) -> int:
    """Wait for a compiler and return its status as a shell tells it: 128 and the signal where it was killed."""
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return status if status >= 0 else 128 - status


def run_captured(command: list[str], path: str) -> tuple[int, str]:
    """Run the real compiler and return its status and what it wrote to standard error."""
    reading, writing = os.pipe()
    process = start(command, path, writing)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8", errors="surrogateescape") as stream:
        errors = stream.read()
    return wait(process), errors


def run_probed(command: list[str], additions: list[str], links: list[str], path: str) -> tuple[int, dict[str, str]]:
    """Compile with probes, without those that do not compile; return the status and the dropped ones with reasons (`all` for all).

    Only the last attempt's messages are shown. Where the unit does not compile without probes either, the fault is the project's.
    """
    dropped: dict[str, str] = {}
    for _ in range(_ATTEMPTS):
        without = [f"-DPD_NO_{probe}" for probe in dropped]
        status, errors = run_captured([command[0], *additions, *without, *command[1:], *links], path)
        new = {str(probe) for probe in guilty_probes(errors)} - dropped.keys() if status else set()
        if not new:
            break
        dropped.update(dict.fromkeys(sorted(new, key=int), reason(errors)))
    if status:
        dropped = {"all": reason(errors)}
        status, errors = run_captured([command[0], *additions, "-DPD_NONE", *command[1:], *links], path)
    sys.stderr.buffer.write(errors.encode("utf-8", "surrogateescape"))
    sys.stderr.flush()
    return status, dropped if status == 0 else {}


def additions_for(call: Call, header: str, runtime: str) -> tuple[list[str], list[str]]:
    """Return what a probed build adds to a call: words for compiling, which come first, and words for linking, which come last."""
    additions = ["-include", header, "-isystem", runtime] if call.sources or call.headers else []
    if additions and call.stop in ("preprocess", "check"):
        additions.append("-DPD_NONE")  # the probes' names stand in the source, and must mean something
    if not call.links:
        return additions, []
    library = ["-l:libperfdiff.a"] if call.static else [f"-Wl,-rpath,{runtime}", "-lperfdiff"]  # `-x` would give a path a language
    return additions, [f"-L{runtime}", *library, "-lpthread", "-ldl"]


def record(folder: str, content: dict[str, object]) -> None:
    """Write one JSON file under a name of its own; complete or not at all."""
    import json

    name = os.path.join(folder, "calls", f"{time.time_ns():020d}-{os.getpid()}")
    with open(name + ".part", "w", encoding="utf-8") as file:
        json.dump(content, file)
    os.rename(name + ".part", name + ".json")


def main(name: str, folder: str, tree: str, header: str, runtime: str, *arguments: str) -> int:
    """Run one compiler call; return its exit status."""
    compiler, path = real_compiler(name, os.path.realpath(os.path.join(folder, "bin")))
    command = [compiler, *arguments]
    directory = os.getcwd()
    call = Call(name, list(arguments))
    is_inner = arguments[:1] in (("-cc1",), ("-cc1as",))  # clang calling itself
    if is_inner or call.is_configuration_check(directory) or not (call.sources or call.headers or call.links):
        os.environ["PATH"] = path
        os.execv(compiler, command)
    additions, links = additions_for(call, header, runtime) if header else ([], [])
    dropped: dict[str, str] = {}
    if additions and call.stop in ("compile", "link"):
        status, dropped = run_probed(command, additions, links, path)
    else:
        status = wait(start([compiler, *additions, *arguments, *links], path))
    if call.compiles and any(is_inside(file, tree) for file, _ in call.sources):
        sources = [{"file": os.path.join(directory, file), "language": language} for file, language in call.sources]
        content = {"directory": directory, "name": name, "compiler": compiler, "arguments": call.arguments, "sources": sources}
        record(folder, {**content, "output": call.output, "status": status, "dropped": dropped})
    return status


def is_inside(file: str, tree: str) -> bool:
    """Return whether a file lies in the tree."""
    return os.path.realpath(file).startswith(tree + os.sep)


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
