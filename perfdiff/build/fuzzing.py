"""Fuzz targets of a tree, linked with a main of perfdiff's own and what their project's build made, once that has ended.

Runs on its own with FOLDER TARGET…, in the project's folder and the build's environment: FOLDER is that of the masquerade, a TARGET the
source of a fuzz target with its seeds, as words of the shell. No target fails the build: what came of each stands in `LINKED`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from perfdiff.build.calls import ParsedCall
from perfdiff.build.compiling import reason
from perfdiff.languages.c import suites
from perfdiff.languages.c.driver import OUTPUTS, takes_value
from perfdiff.languages.c.suites import seeds
from perfdiff.languages.c.suites.checkout import SOURCES, nearness
from perfdiff.languages.c.suites.fuzz import FOLDER, LINKED, FuzzTarget, is_libfuzzer, linked_to, written

_COMPILER = re.compile(r"(?P<target>.*-)?(?P<kind>gcc|g\+\+|clang\+\+|clang|c\+\+|cc|c89|c99)(?P<version>-[\d.]+)?")
_OF_CPLUSPLUS = {"gcc": "g++", "clang": "clang++", "cc": "c++", "c89": "c++", "c99": "c++"}
_OF_C = {"g++": "gcc", "clang++": "clang", "c++": "cc"}
_NOT_COMPILING = ("-l", "-L", "-o", "-x", "-Wl,", "-MF", "-MT", "-MQ", "-fsanitize-coverage", "-Werror")
_NOT_COMPILING_ALONE = frozenset(
    ("-c", "-S", "-E", "-M", "-MM", "-MD", "-MMD", "-MP", "-MG", "-shared", "-static", "-r", "-pie", "-rdynamic")
)
_VALUES_OF_OTHERS = OUTPUTS | {"-l", "-L", "-x", "-Xlinker", "-T", "-u", "-z", "-e", "-rpath", "-soname", "-h"}
_BOTH = ("-m", "-f", "-O", "-g", "-pthread", "-stdlib", "--target", "-target", "--sysroot")  # flags that compiling and linking share
_USUAL_FOLDERS = (".", "include", "src", "lib")  # of headers that no recorded call names
_MAIN = Path(suites.__file__).with_name("fuzz_main.c")
_LARGEST_SEED = 64 << 20  # bytes
_UNSAFE = re.compile(r"[^\w.-]")
_LONGEST_NAME = 64
_UNDEFINED = re.compile(r"undefined (?:reference to|symbol:?) .*")
_MISSING = re.compile(r"fatal error: '?(?P<header>[^':\n]+)'?(?: file not found|: No such file or directory)")  # clang's words, and gcc's
_ENTRY = re.compile(rb"\b(?:LLVMFuzzerTestOneInput|main)\s*\(")


@dataclass(frozen=True, slots=True)
class CompilerCall:
    """A call of a compiler that made an object, or compiled what it linked."""

    name: str
    directory: Path
    call: ParsedCall
    sources: tuple[tuple[Path, str], ...]  # with their languages

    @property
    def objects(self) -> list[Path]:
        """Return the object files that the call made and that still exist."""
        if self.call.stop != "compile":
            return []
        names = [self.call.output] if self.call.output else [f"{source.stem}.o" for source, _ in self.sources]
        return [path for name in names if (path := self.directory / name).is_file()]

    @property
    def flags(self) -> list[str]:
        """Return the compiler's flags alone, without sources, outputs and other actions."""
        flags, words = list[str](), iter(self.call.arguments)
        for word in words:
            if word in _VALUES_OF_OTHERS:
                next(words, None)
            elif takes_value(word):
                flags += [word, next(words, "")]
            elif word.startswith("-fsanitize="):
                checks = [check for check in word.partition("=")[2].split(",") if not check.startswith("fuzzer")]
                flags += [f"-fsanitize={','.join(checks)}"] if checks else []
            elif word.startswith("-") and word not in _NOT_COMPILING_ALONE and not word.startswith(_NOT_COMPILING):
                flags.append(word)
        return flags

    def spoken(self, language: str) -> list[str]:
        """Return the flags as they are for a source in a language, which may be another."""
        return self.flags if self.sources[0][1] == language else [word for word in self.flags if not word.startswith("-std=")]


class _FailedError(Exception):
    """A fuzz target cannot be linked, with the reason in a line."""


class _MissingHeaderError(_FailedError):
    """A `header` was not found where the compiler looks."""

    def __init__(self, says: str, header: str) -> None:
        super().__init__(says)
        self.header = header


def compiled(folder: Path) -> tuple[CompilerCall, ...]:
    """Return the calls that a build recorded in a folder, in their order."""
    calls = []
    for file in sorted(folder.glob("*.json")):
        record = json.loads(file.read_text(encoding="utf-8"))
        if record["status"] == 0 and record["sources"]:
            own = tuple((Path(source["file"]), source["language"]) for source in record["sources"])
            calls.append(CompilerCall(record["name"], Path(record["directory"]), ParsedCall(record["name"], record["arguments"]), own))
    return tuple(calls)


def libraries(folder: Path) -> list[str]:
    """Return the words by which the links of a build name libraries, and where these are found."""
    words: dict[str, None] = {}
    for file in sorted([*(folder / "links").glob("*.json"), *(folder / "linked").glob("*.json")]):
        record = json.loads(file.read_text(encoding="utf-8"))
        directory, arguments = Path(record["directory"]), iter(record["arguments"])
        for first in arguments:
            word = first + next(arguments, "") if first in ("-l", "-L") else first
            if word.startswith("-L"):
                words[f"-L{directory / word[2:]}"] = None
            elif word.startswith(("-l", "-Wl,-rpath,")) or word in ("-no-pie", "-pthread", "-fopenmp"):
                words[word] = None
            elif ".so" in Path(word).name and not word.startswith("-"):
                words[str(directory / word)] = None
            elif takes_value(word):
                next(arguments, None)
    return list(words)


@dataclass(frozen=True, slots=True)
class TargetLinker:
    """Links fuzz targets with what a build made: `archives` and `libraries`."""

    calls: Sequence[CompilerCall]
    archives: Sequence[Path]
    libraries: Sequence[str]

    def link(self, source: Path, output: Path) -> None:
        """Link a target to a program, whose objects stay beside it; raise _FailedError."""
        like, language = self._like(source), _language(source)
        objects = [output.with_name(f"{output.name}-main.o"), output.with_name(f"{output.name}.o")]
        both = [word for word in like.spoken("c") if word.startswith(_BOTH)]
        _run([_compiler(like.name, "c"), *both, "-w", "-c", str(_MAIN), "-o", str(objects[0])], like.directory)
        self._compile(source, like, objects[1])
        languages = {language, *(kind for call in self.calls for _, kind in call.sources)}
        linker = _compiler(like.name, "c++" if "c++" in languages else "c")

        def linking(archives: Sequence[Path]) -> list[str]:
            whole = ["-Wl,--start-group", *map(str, archives), "-Wl,--end-group", "-Wl,--as-needed", *self.libraries, "-lm"]
            # Members of an archive that have a main of their own come behind ours.
            return [linker, *both, *map(str, objects), "-Wl,-z,muldefs", *whole, "-o", str(output)]

        try:
            _run(linking(self.archives), Path.cwd())
        except _FailedError:
            helpers = self._helpers(source, like, output)
            if not helpers:
                raise
            beside = output.with_name(f"{output.name}.a")
            _run(["ar", "qc", str(beside), *map(str, helpers)], Path.cwd())
            _run(linking([beside, *self.archives]), Path.cwd())

    def _compile(self, source: Path, like: CompilerCall, output: Path) -> None:
        """Compile a source to an object; headers that are not found are taken from the nearest folder of the tree that has them."""
        language = _language(source)
        compiling = [_compiler(like.name, language), *like.spoken(language), *_headers_of_fuzzing(source), "-w", "-c", str(source)]
        folders = [str(Path(name).absolute()) for name in _USUAL_FOLDERS]
        while True:
            headers = [word for folder in folders for word in ("-idirafter", folder)]
            try:
                _run([*compiling, *headers, "-o", str(output)], like.directory)
            except _MissingHeaderError as error:
                folder = _folder_of(error.header, source)
                if folder is None or folder in folders:
                    raise
                folders.append(folder)
            else:
                return

    def _helpers(self, source: Path, like: CompilerCall, output: Path) -> list[Path]:
        """Compile what lies beside a target and is neither a target nor a program; return the objects of what compiles."""
        objects = []
        for beside in sorted(source.parent.iterdir()):
            if beside.suffix in SOURCES and beside.is_file() and not _ENTRY.search(beside.read_bytes()):
                objects.append(output.with_name(f"{output.name}-{beside.name}.o"))
                try:
                    self._compile(beside, like, objects[-1])
                except _FailedError:
                    objects.pop()
        return objects

    def _like(self, source: Path) -> CompilerCall:
        """Return the call whose flags a target takes: its own, else that of the nearest source, in its language where there is one."""
        if not self.calls:
            raise _FailedError("the build compiled nothing")

        def likeness(call: CompilerCall) -> tuple[bool, bool, int]:
            files = [file.resolve() for file, _ in call.sources]
            return source in files, call.sources[0][1] == _language(source), max(nearness(file, source) for file in files)

        return max(self.calls, key=likeness)


def archives(calls: Sequence[CompilerCall], folder: Path) -> list[Path]:
    """Return the archives that a build made, and one in `folder` of all objects that it compiled: what a linker takes what it needs from.

    What was compiled and linked by one call is compiled once more, to objects.
    """
    own = sorted((path.absolute() for path in Path().rglob("*.a") if path.is_file()), key=lambda path: (len(path.parts), path))
    objects = list(dict.fromkeys(path for call in calls for path in call.objects))
    apart = [(call, source) for call in calls if call.call.stop == "link" for source, _ in call.sources]
    for number, (call, source) in enumerate(apart):
        output = folder / f"object-{number}.o"
        with contextlib.suppress(_FailedError):
            _run([call.name, *call.flags, "-w", "-c", str(source), "-o", str(output)], call.directory)
            objects.append(output)
    if not objects:
        return own
    names = folder / "objects.txt"
    names.write_text("\n".join(shlex.quote(str(path)) for path in objects), encoding="utf-8")
    archive = folder / "objects.a"
    _run(["ar", "qcT", str(archive), f"@{names}"], Path.cwd())  # a thin one: it names objects, which may be large
    return [*own, archive]


def built(linker: TargetLinker, words: Sequence[str]) -> FuzzTarget:
    """Link a target, and return what came of it, with its seeds by their paths."""
    source = Path(words[0])
    is_source = source.suffix in SOURCES
    if not source.is_file():
        return FuzzTarget(words[0], failure="this revision does not have it" if is_source else "the build makes no such program")
    output = linked_to(source).absolute()
    try:
        own = _seeds(words[1:], output)
        if is_source:
            linker.link(source.resolve(), output)
    except _FailedError as error:
        program = _own_program(source) if is_source else None
        return (
            FuzzTarget(words[0], str(program), tuple(words[1:]), takes_calls=False) if program else FuzzTarget(words[0], failure=str(error))
        )
    return FuzzTarget(words[0], output.relative_to(Path.cwd()).as_posix() if is_source else words[0], own, takes_calls=is_source)


def _own_program(source: Path) -> Path | None:
    """Return a program that the build linked with libFuzzer for a target, by its name: objects that count branches for it need it."""
    named = (path for path in sorted(Path().rglob(source.stem)) if path.is_file())
    return next((path for path in named if is_libfuzzer(path)), None)


def _seeds(words: Sequence[str], output: Path) -> tuple[str, ...]:
    """Return seeds, those in a zip after taking them out of it; raise _FailedError."""
    own = [Path(word) for word in words]
    if [path.suffix for path in own] != [".zip"]:
        return tuple(words)
    folder = output.with_name(f"{output.name}-seeds")
    folder.mkdir(exist_ok=True)
    try:
        with zipfile.ZipFile(own[0]) as archive:
            sizes = {info.filename: info.file_size for info in archive.infolist() if not info.is_dir() and info.file_size <= _LARGEST_SEED}
            taken = {
                name: folder / _UNSAFE.sub("_", f"{number:02}-{Path(name).name}")[:_LONGEST_NAME]
                for number, name in enumerate(seeds.spread(sizes))
            }
            for name, path in taken.items():
                with archive.open(name) as content:
                    path.write_bytes(content.read(_LARGEST_SEED))
    except (
        OSError,
        zipfile.BadZipFile,
        RuntimeError,
        NotImplementedError,
        zlib.error,
        EOFError,
    ) as error:  # RuntimeError: it has a password
        raise _FailedError(f"{own[0]} cannot be read: {error}") from error
    return tuple(path.relative_to(Path.cwd()).as_posix() for path in taken.values())


def _folder_of(header: str, source: Path) -> str | None:
    """Return the folder of the tree, nearest to a source, that a header is found from, None where the tree has none."""
    parts = Path(header).parts
    places = [path for path in Path.cwd().rglob(parts[-1]) if path.is_file() and path.parts[-len(parts) :] == parts]
    return str(max(places, key=lambda path: nearness(path, source)).parents[len(parts) - 1]) if places else None


def _language(source: Path) -> str:
    return "c" if source.suffix == ".c" else "c++"


def _compiler(name: str, language: str) -> str:
    """Return the compiler of a language beside one of the same kind and version, where there is one, else the usual one."""
    match = _COMPILER.fullmatch(name)
    assert match is not None, "only what is known for a compiler is recorded"
    names = _OF_CPLUSPLUS if language == "c++" else _OF_C
    beside = f"{match['target'] or ''}{names.get(match['kind'], match['kind'])}{match['version'] or ''}"
    return beside if shutil.which(beside) else "c++" if language == "c++" else "cc"


def _headers_of_fuzzing(source: Path) -> list[str]:
    """Return the words by which a target finds headers that come with libFuzzer, where it asks for any and clang is there."""
    if b"<fuzzer/" not in source.read_bytes() or not shutil.which("clang"):
        return []
    resources = subprocess.run(["clang", "-print-resource-dir"], capture_output=True, text=True, check=False).stdout.strip()
    return ["-idirafter", f"{resources}/include"] if resources else []


def _run(command: Sequence[str], directory: Path) -> None:
    """Run a compiler or linker; raise _FailedError with what it says first."""
    try:
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise _FailedError(f"{command[0]}: {error.strerror}") from error
    if done.returncode:
        undefined, missing = _UNDEFINED.search(done.stderr), _MISSING.search(done.stderr)
        if missing:
            raise _MissingHeaderError(f"it does not compile: {reason(done.stderr)}", missing["header"])
        raise _FailedError(f"it does not link: {undefined[0]}" if undefined else f"it does not compile: {reason(done.stderr)}")


def main(words: Sequence[str]) -> None:
    """Link the targets of a project, and write down what came of them."""
    masquerade, *texts = words
    folder = FOLDER.absolute()
    folder.mkdir(exist_ok=True)
    calls = compiled(Path(masquerade) / "calls")
    try:
        linker = TargetLinker(calls, archives(calls, folder), libraries(Path(masquerade)))
        with ThreadPoolExecutor(os.cpu_count()) as workers:
            targets = list(workers.map(lambda text: built(linker, shlex.split(text)), texts))
    except _FailedError as error:
        targets = [FuzzTarget(shlex.split(text)[0], failure=str(error)) for text in texts]
    LINKED.write_text(written(targets), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
