"""The compiler masquerade: stands in for `cc`, `g++`, … on PATH, runs the real one, and records what was compiled and linked.

Runs on its own by `python -I -S wrapper NAME FOLDER TREE HEADER RUNTIME COUNTED ARGUMENTS…`, once per compiler call, so it imports
nothing that is slow to start. HEADER and RUNTIME are empty in a plain build; COUNTED is empty but in a counted one. Writes one JSON file a
compile to FOLDER/calls, and in a plain build one a link to FOLDER/links; FOLDER/bin is the masquerade itself.
"""

# Importing pathlib would take longer than all the rest.
# ruff: noqa: PTH100, PTH104, PTH109, PTH113, PTH118, PTH119, PTH122, PTH123

from __future__ import annotations

import os
import sys
import time

# fmt: off
WITH_VALUE = frozenset((
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
_ASSEMBLER_SUFFIXES = frozenset((".s", ".S", ".sx"))
_INCLUDE_DEPTH = 16  # response files in response files; deeper ones include themselves
_LINKING_VARIABLES = ("LD_RUN_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX")  # what decides a link beside its arguments
_PIECE = 1 << 20  # bytes read at once
_ATTEMPTS = 12  # clang stops at 20 errors, so one attempt can name 20 probes; a unit with more than 220 bad ones loses all its probes

# Where a loop lies within a line of the instruction cache makes 10 to 80 % of its time: functions, loops and what is reached by jumps alone
# begin at places of their own in it, so that what stands before them in head alone does not show. Other labels would have to be aligned by
# instructions that run. Before the project's own options, which prevail.
_ALIGNED_GCC = ("-falign-functions=64", "-falign-loops=64", "-falign-jumps=32")
_ALIGNED_CLANG = ("-falign-functions=64", "-falign-loops=64", "-Wno-ignored-optimization-argument")  # loops since clang 13

# What a counted build compiles with: every memory access and every basic block calls the runtime. The options go to the compiler proper
# (`counted.specs` has gcc's), as the drivers would link runtimes of their own for them.
_LINES = ("-g1", "-DPD_COUNTED")  # line tables name what is counted
_COUNTED_GCC = ("-Wno-tsan", "-U__SANITIZE_THREAD__")  # it is no data race detector, which programs would treat in their own way
_COUNTED_CLANG = (
    *("-Xclang", "-fsanitize=thread", "-mllvm", "-tsan-instrument-func-entry-exit=0"),
    *("-Xclang", "-fsanitize-coverage-type=2", "-Xclang", "-fsanitize-coverage-trace-pc", "-Xclang", "-fsanitize-coverage-no-prune"),
)
# Sanitizers whose own instrumentation cannot stand beside it; a linked leak detector can, and undefined behaviour's checks.
_OWN_SANITIZERS = frozenset(
    ("address", "kernel-address", "hwaddress", "kernel-hwaddress", "thread", "memory", "kernel-memory", "dataflow", "fuzzer", "memtag")
)
# Functions that must not call: naked ones have no frame (gcc would call from them), resolvers run before the program is ready.
_NO_CALLS = {
    b"naked": "it has naked functions",
    b"ifunc": "it chooses implementations while the program is being linked (ifunc)",
}
_ATTRIBUTE = rb"(?:__attribute|\[\[|__declspec)[^;{}]{0,200}?(?<![a-z0-9])_*(naked|ifunc)(?![a-z0-9])"


class Build:
    """What all compiler calls of a build share; `header` and `runtime` are empty in a plain one, `counted` but in a counted one."""

    def __init__(self, folder: str, tree: str, header: str, runtime: str, counted: str) -> None:
        self.folder = folder
        self.tree = tree
        self.header = header
        self.runtime = runtime
        self.is_counted = bool(counted)


class Call:
    """What one compiler call is asked to do: `sources` are pairs of path and language (`c` or `c++`)."""

    def __init__(self, name: str, arguments: list[str]) -> None:
        self.arguments = expand(arguments, 0)
        self.sources: list[tuple[str, str]] = []
        self.others: list[str] = []  # objects, archives, assembler files, libraries
        self.assembler: list[str] = []  # of the others
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
            elif word in WITH_VALUE:
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
        if language.startswith("assembler") or (not language and suffix in _ASSEMBLER_SUFFIXES):
            self.assembler.append(path)
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


def run_probed(command: list[str], additions: list[str], links: list[str], path: str) -> tuple[int, dict[str, str], str]:
    """Compile with probes, without those that do not compile; return the status, the dropped ones with reasons, and the messages."""
    dropped: dict[str, str] = {}
    for _ in range(_ATTEMPTS):
        without = [f"-DPD_NO_{probe}" for probe in dropped]
        status, errors = run_captured([command[0], *additions, *without, *command[1:], *links], path)
        new = {str(probe) for probe in guilty_probes(errors)} - dropped.keys() if status else set()
        if not new:
            break
        dropped.update(dict.fromkeys(sorted(new, key=int), reason(errors)))
    return status, dropped, errors


def run_instrumented(command: list[str], added: Additions, path: str) -> tuple[int, dict[str, str], str | None]:
    """Compile with probes and counting, as far as the compiler takes them.

    Returns the status, the dropped probes with reasons (`all` for all), and why nothing is counted in the objects, None if it is or nobody
    asked. Only the last attempt's messages are shown. Where the unit does not compile without probes either, the fault is the project's.
    """
    uncounted = added.uncounted
    status, dropped, errors = run_probed(command, [*added.counting, *added.probing], added.links, path)
    if status and added.counting:
        uncounted = f"it does not compile when it is to be counted: {reason(errors)}"
        status, dropped, errors = run_probed(command, added.probing, added.links, path)
    if status:
        dropped = {"all": reason(errors)}
        status, errors = run_captured([command[0], *added.probing, "-DPD_NONE", *command[1:], *added.links], path)
    sys.stderr.buffer.write(errors.encode("utf-8", "surrogateescape"))
    sys.stderr.flush()
    return status, dropped if status == 0 else {}, uncounted


class Additions:
    """What a probed build adds to a call: words for probes and for counting, which come first, and words for linking, which come last.

    `uncounted` says why a counted build counts nothing in the objects of this call; None where it does, and in other builds.
    """

    def __init__(self, call: Call, compiler: str, path: str, build: Build) -> None:
        self.probing = ["-include", build.header, "-isystem", build.runtime] if call.sources or call.headers else []
        self.counting: list[str] = []
        self.links: list[str] = []
        self.uncounted: str | None = None
        is_clang = bool(self.probing or build.is_counted) and names_clang(compiler, path)
        if self.probing:
            aligned = _ALIGNED_CLANG if is_clang else _ALIGNED_GCC
            self.probing = [*(_LINES if build.is_counted else aligned), *self.probing]
        if self.probing and call.stop in ("preprocess", "check"):
            self.probing.append("-DPD_NONE")  # the probes' names stand in the source, and must mean something
        if build.is_counted and call.stop in ("compile", "link"):
            self.uncounted = uncountable(call, is_clang=is_clang)
            if self.uncounted is None and not is_clang:  # the link too: with `-flto` it compiles
                self.counting = [f"-specs={os.path.join(build.runtime, 'counted.specs')}", *_COUNTED_GCC]
                if self.probing and "-masm=intel" not in call.arguments:  # it is assembler text in AT&T's syntax
                    self.counting += ["-include", os.path.join(build.runtime, "perfdiff_inline.h")]
            elif self.uncounted is None and self.probing:
                self.counting = [*_COUNTED_CLANG]
        if call.links:
            name = "perfdiff_counted" if build.is_counted else "perfdiff"
            # `-x` would give a path a language
            library = [f"-l:lib{name}.a"] if call.static else [f"-Wl,-rpath,{build.runtime}", f"-l{name}"]
            bound = ["-Wl,-z,now"] if build.is_counted else []  # calls of libraries are counted where they are bound from the start
            self.links = [f"-L{build.runtime}", *library, "-lpthread", "-ldl", *bound]


def names_clang(compiler: str, path: str) -> bool:
    """Return whether a compiler is clang, by the name of its file, else by what it says of itself, run with PATH `path`."""
    name = os.path.basename(os.path.realpath(compiler))
    if "clang" in name or "gcc" in name or "g++" in name:
        return "clang" in name
    reading, writing = os.pipe()
    output = [(os.POSIX_SPAWN_DUP2, writing, 1), (os.POSIX_SPAWN_CLOSE, writing)]
    process = os.posix_spawn(compiler, [compiler, "--version"], {**os.environ, "PATH": path}, file_actions=output)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8", errors="replace") as stream:
        version = stream.read()
    wait(process)
    return "clang" in version


def uncountable(call: Call, *, is_clang: bool) -> str | None:
    """Return why what a call compiles cannot be counted, as far as its words and sources tell, or None."""
    own = {part for word in call.arguments if word.startswith("-fsanitize=") for part in word.partition("=")[2].split(",")}
    if found := sorted(own & _OWN_SANITIZERS):
        return f"its own -fsanitize={found[0]} stands in the way"
    if any(word.startswith("-fsanitize-coverage") for word in call.arguments):
        return "its own -fsanitize-coverage stands in the way"
    for file, _ in call.sources:
        try:
            with open(file, "rb") as source:
                text = source.read().lower()
        except OSError:
            continue  # the compiler says more about it
        for attribute in _attributes(text):
            if not (is_clang and attribute == b"naked"):
                return _NO_CALLS[attribute]
    return None


def _attributes(text: bytes) -> list[bytes]:
    """Return the attributes of `_NO_CALLS` that a source in small letters gives to functions."""
    if not any(word in text for word in _NO_CALLS):
        return []
    import re  # its loading would cost each of the other compiler calls some milliseconds

    return re.findall(_ATTRIBUTE, text)


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
    if is_passed or not (call.sources or call.headers or call.links or (build.is_counted and call.assembler)):
        os.environ["PATH"] = path
        os.execv(compiler, command)
    added = Additions(call, compiler, path, build) if build.header else None
    dropped: dict[str, str] = {}
    uncounted = added.uncounted if added else None
    if added and added.probing and call.stop in ("compile", "link"):
        status, dropped, uncounted = run_instrumented(command, added, path)
    else:
        words = [*added.counting, *added.probing, *arguments, *added.links] if added else arguments
        status = wait(start([compiler, *words], path))
    if status == 0 and call.links and not build.header:
        record_link(call, name, compiler, directory, build)
    plain = uncounted_files(call, uncounted) if build.is_counted else {}
    if any(is_inside(file, build.tree) for file in [*(file for file, _ in call.sources if call.compiles), *plain]):
        sources = [{"file": os.path.join(directory, file), "language": language} for file, language in call.sources]
        content = {"directory": directory, "name": name, "compiler": compiler, "arguments": call.arguments, "sources": sources}
        named = {os.path.join(directory, file): says for file, says in plain.items()}
        outcome = {"output": call.output, "status": status, "dropped": dropped, "uncounted": named}
        record(os.path.join(build.folder, "calls"), {**content, **outcome})
    return status


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


def uncounted_files(call: Call, reason: str | None) -> dict[str, str]:
    """Return the files of a call in which a counted build counts nothing, or not all, with reasons; `reason` is that of its sources."""
    files: dict[str, str] = {}
    if reason is not None:
        files.update((file, reason) for file, _ in call.sources)
    if call.stop in ("compile", "link"):
        files.update((file, "it is written in assembler") for file in call.assembler)
    if call.links and call.static:
        files[call.output or "a.out"] = "it is linked statically: what the C library does with memory is not counted"
    return files


def is_inside(file: str, tree: str) -> bool:
    """Return whether a file lies in the tree."""
    return os.path.realpath(file).startswith(tree + os.sep)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1], Build(*sys.argv[2:7]), sys.argv[7:]))
