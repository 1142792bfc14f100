"""Objects of other builds: where their compiler was given the same text and the same words, what came out serves here as well.

Most units of two revisions are the same after preprocessing, in every variant. `FOLDER/objects` has a JSON file for each object that can
serve another build. Folders of builds whose objects may serve stand in three files, one a line: in `FOLDER/partner` the other side's, and a
folder of locks where both are made at the same time; in `FOLDER/earlier` those that the cache keeps; in `FOLDER/plain`, of a variant that
is built anew, this side's plain build and the other's, from which units to which nothing is added have their objects.
"""

# Part of the masquerade: importing pathlib or subprocess would take longer than all the rest.
# ruff: noqa: PTH103, PTH104, PTH110, PTH116, PTH118, PTH119, PTH120, PTH122, PTH123

from __future__ import annotations

import os
import zlib
from collections.abc import Callable

from perfdiff.build.calls import Build, ParsedCall

# Options by which a compiler writes or reads more than its text tells, or hides paths in what it writes.
_OTHERWISE = (
    *("-save-temps", "--save-temps", "-fplugin", "-fprofile", "-fauto-profile", "-fbranch", "-ftest-coverage", "--coverage", "-fcoverage"),
    *(
        "-gsplit-dwarf",
        "-gz",
        "-flto",
        "-fmodule",
        "-fprebuilt-module",
        "-fdump",
        "-fstack-usage",
        "-fcallgraph-info",
        "-fopt-info",
        "-frecord",
        "-ftime-",
    ),
    *(
        "-grecord-command",
        "-Wp,",
        "-Wa,",
        "-Xpreprocessor",
        "-Xassembler",
        "-Xclang",
        "-specs",
        "-wrapper",
        "-aux-info",
        "-MJ",
        "-MG",
        "-d",
    ),
    *("-B", "-include-pch", "-fpch", "-fsanitize-", "-fxray", "-foffload", "-g3", "-ggdb3", "-fembed", "-fthin", "-M", "-S", "-E", "-emit"),
)
_DEPENDENCIES = ("-MD", "-MMD", "-MP", "-MF", "-MT", "-MQ")  # of `-M…`, what is understood
_NAMING = frozenset(("-MF", "-MT", "-MQ"))
_READING = (b".incbin", b".include", b"#embed")  # what reads files when the text is compiled
_EMBEDDING = (b".incbin", b"#embed")  # of which, what reads files that need be no source
_MODULES = (b"import", b"module", b"export")  # of which what follows is not in the text
_DECLARED = rb"(?:^|[;{}@/])[ \t]*_*(?:import|module|export)\b"  # clang 14 takes such a declaration behind others of its line, too
_MARKER = rb'^# \d+ ".*$'  # says where the lines that follow come from, be it an `export.h`
_VARIABLES = ("COMPILER_PATH", "GCC_EXEC_PREFIX", "SOURCE_DATE_EPOCH")
_NOTES = "-ftest-coverage"  # by which gcc writes notes beside an object
_ALIGNMENT = (
    64  # bytes: as functions are aligned in units with probes, so that both sides have them at the same place of a line of the cache
)
_WINDOW = 4  # bytes of a path that an instruction may hold by themselves
_DIGEST_BYTES = 20

Outcome = tuple[int, dict[str, str], dict[str, str]]  # a call's status, dropped probes and uncounted files


class Reuse:
    """What one call of a build has to do with objects of other builds; `added` are the words that the build adds ahead of its own."""

    def __init__(self, call: ParsedCall, compiler: str, directory: str, build: Build, added: list[str]) -> None:
        self._call, self._compiler, self._directory, self._build, self._added = call, compiler, directory, build, added
        self._partner, self._claims = (*_lines(os.path.join(build.folder, "partner")), "", "")[:2]
        self._earlier = _lines(os.path.join(build.folder, "earlier"))
        self._output = call.output or os.path.splitext(os.path.basename((call.sources or [("", "")])[0][0]))[0] + ".o"
        self._objects = os.path.join(build.folder, "objects")
        self._plain_text: bytes | None = None
        self.digest: str | None = None  # of a unit as it is compiled here, where builds may share what comes out

    @property
    def _notes(self) -> list[str]:
        """Return what comes out beside the object: of gcc's counters of lines what tells where these stand."""
        return [os.path.splitext(self._output)[0] + ".gcno"] if self._build.is_placed else []

    def run(self, compile_: Callable[[], Outcome], path: str) -> Outcome:
        """Take the object of another build if one fits, else compile; note the object for the other side."""
        if not self._is_possible():
            return compile_()
        taken = self._untouched(path)
        if taken is None and self._may_share():
            text = self._preprocessed(path, self._added)
            self._plain_text = text if self._build.is_plain else None
            self.digest = self._digest(text, self._added)
        digest = self.digest
        if digest is None:
            return taken or compile_()
        claim = self._claim(digest)  # held until this process ends
        try:
            others = [folder for folder in (self._partner, *self._earlier) if os.path.exists(os.path.join(folder, "objects", digest))]
            taken = next((outcome for folder in others if (outcome := self._take(digest, folder, self._added, self._notes))), None)
            if taken is not None:
                self._leave(digest, taken)
                return taken
            outcome = compile_()
            if outcome[0] == 0:
                self._leave(digest, outcome)
            return outcome
        finally:
            if claim is not None:
                os.close(claim)

    def text(self, path: str) -> bytes | None:
        """Return the text of the sources of a plain build's call, None where it has none that the preprocessor takes."""
        if self._plain_text is None and self._call.sources:
            self._plain_text = self._preprocessed(path, [])
        return self._plain_text

    def _is_possible(self) -> bool:
        """Return whether an object comes out of one source, and nothing that its text does not tell."""
        call = self._call
        if call.stop != "compile" or "-c" not in call.arguments:
            return False
        if len(call.sources) != 1 or call.headers or call.assembler or call.others:
            return False
        odd = (word for word in call.arguments if word.startswith(_OTHERWISE) and not word.startswith(_DEPENDENCIES))
        paths = [os.path.realpath(os.path.join(self._directory, name)) for name in (call.sources[0][0], self._output)]
        return next(odd, None) is None and all(file.startswith(self._build.tree + os.sep) for file in paths)

    def _may_share(self) -> bool:
        """Return whether builds may share what comes out; clang's objects with counters of lines hold compressed paths."""
        is_asked = self._partner or os.path.exists(os.path.join(self._build.folder, "earlier"))
        return bool(is_asked) and (not self._build.is_placed or _NOTES in self._added)

    def _untouched(self, path: str) -> Outcome | None:
        """Take the object of this side's plain build where nothing is added to the unit, and both sides have it; None where one does not.

        Its functions are at places of the cache's lines that what stands before them does not shift.
        """
        plain = _lines(os.path.join(self._build.folder, "plain"))
        if not plain or self._build.is_counted:
            return None
        text = self._preprocessed(path, [])
        digest = None if text is None or self._counts_lines(text) else self._digest(text, [])
        if digest is None or not os.path.exists(os.path.join(plain[1], "objects", digest)):
            return None
        taken = self._take(digest, plain[0], [], [])
        return taken if taken and (self._build.is_placed or is_aligned(self._output, path)) else None

    def _counts_lines(self, text: bytes) -> bool:
        """Return whether lines of a unit are counted: all are where no files are named, else units that have text of a file so named."""
        if not self._build.is_placed:
            return False
        try:
            with open(os.path.join(self._build.folder, "line-files"), "rb") as file:
                names = file.read().split(b"\n")
        except OSError:
            return True
        return any(name + b'"' in text for name in names)

    def _digest(self, text: bytes | None, added: list[str]) -> str | None:
        """Return what the text, the words, the compiler and the folder come to, without where the tree lies; None where it cannot tell."""
        from _blake2 import blake2b  # hashlib would load OpenSSL

        if text is None or any(word in text for word in _READING) or _has_modules(text):
            return None
        status = os.stat(os.path.realpath(self._compiler))
        place = os.path.relpath(os.path.realpath(self._directory), self._build.tree)
        words = [self._compiler, str(status.st_size), str(status.st_mtime_ns), place, *added, "", *self._call.arguments]
        words += [os.environ.get(variable, "") for variable in _VARIABLES]
        tree = os.fsencode(self._build.tree)
        digest = blake2b(digest_size=_DIGEST_BYTES)
        for part in (*map(os.fsencode, words), text):
            piece = part.replace(tree, b"\0")
            digest.update(len(piece).to_bytes(8, "little") + piece)
        return digest.hexdigest()

    def _preprocessed(self, path: str, added: list[str]) -> bytes | None:
        """Return the text that is compiled with what is added, None where the preprocessor fails."""
        words, arguments = iter(self._call.arguments), []
        for word in words:
            if word in ("-o", "--output", *_NAMING):
                next(words, None)
            elif word != "-c" and not word.startswith(("-o", *_DEPENDENCIES)):
                arguments.append(word)
        reading, writing = os.pipe()
        silent = os.open(os.devnull, os.O_WRONLY)
        actions = [(os.POSIX_SPAWN_DUP2, writing, 1), (os.POSIX_SPAWN_DUP2, silent, 2)]  # pipes of Python's close at exec
        command = [self._compiler, *added, *arguments, "-E"]
        process = os.posix_spawn(self._compiler, command, {**os.environ, "PATH": path}, file_actions=actions)
        os.close(writing)
        os.close(silent)
        with os.fdopen(reading, "rb") as stream:
            text = stream.read()
        return text if os.waitpid(process, 0)[1] == 0 else None

    def _claim(self, digest: str) -> int | None:
        """Wait for the other side where it compiles the same at this moment; return the lock, None where it is not being built."""
        if not self._claims:
            return None
        import fcntl

        lock = os.open(os.path.join(self._claims, digest), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        return lock

    def _take(self, digest: str, folder: str, added: list[str], beside: list[str]) -> Outcome | None:
        """Put the object of the build in `folder`, and what lies beside it, in this one's place.

        Returns what it was compiled with, None where there is none that serves.
        """
        tree = os.path.join(os.path.dirname(folder), os.path.basename(self._build.tree))
        try:
            with open(os.path.join(folder, "objects", digest), encoding="utf-8") as file:
                import json

                note = json.load(file)
            words = [*added, *self._call.arguments]
            contents = [moved(*file, tree=tree, to=self._build.tree, words=words) for file in note["made"]]
        except (OSError, ValueError):
            return None
        target, dependencies = self._dependencies(), note["dependencies"]
        if None in contents or (target is None) != (dependencies is None):
            return None
        for name, content in zip([self._output, *beside], contents, strict=True):
            with open(name, "wb") as output:
                output.write(content or b"")
        if target is not None:
            with open(target, "w", encoding="utf-8", errors="surrogateescape") as output_:
                output_.write(dependencies.replace(tree, self._build.tree))
        return 0, note["dropped"], {file.replace(tree, self._build.tree): says for file, says in note["uncounted"].items()}

    def _dependencies(self) -> str | None:
        """Return the file of dependencies that this call writes, if any."""
        arguments = self._call.arguments
        if not any(word in ("-MD", "-MMD") for word in arguments):
            return None
        named = [word[3:] or arguments[at + 1] for at, word in enumerate(arguments) if word.startswith("-MF")]
        return named[-1] if named else os.path.splitext(self._output)[0] + ".d"

    def _leave(self, digest: str, outcome: Outcome) -> None:
        """Write down for the other side what has come out."""
        import json

        draft = os.path.join(self._objects, f"{digest}.{os.getpid()}")
        try:
            dependencies, text = self._dependencies(), None
            outputs = [_described(os.path.join(self._directory, name)) for name in (self._output, *self._notes)]
            if dependencies is not None:  # as a text: automake's are moved away
                with open(dependencies, encoding="utf-8", errors="surrogateescape") as listing:
                    text = listing.read()
            left = {"made": outputs, "dependencies": text}
            os.makedirs(self._objects, exist_ok=True)
            with open(draft, "w", encoding="utf-8") as note:
                json.dump({**left, "dropped": outcome[1], "uncounted": outcome[2]}, note)
            os.rename(draft, os.path.join(self._objects, digest))
        except OSError:  # the compiler has written elsewhere, or the disk is full: the other side compiles for itself
            return


def moved(file: str, size: int, checksum: int, *, tree: str, to: str, words: list[str]) -> bytes | None:  # noqa: PLR0913
    """Return what `file`, which a build made in `tree`, would hold had it been made in `to`; None where that cannot be known.

    `size` and `checksum` (CRC-32) are those that the file had when it was made, `words` the arguments of the compiler that made it.
    """
    with open(file, "rb") as source:
        content = source.read()
    if (len(content), zlib.crc32(content)) != (size, checksum):
        return None
    theirs, ours = os.fsencode(tree), os.fsencode(to)
    # Debugging information names the tree; where it does not, it is compressed.
    is_hidden = theirs not in content and any(word.startswith("-g") and word != "-g0" for word in words)
    if is_hidden or b".gnu.lto_" in content or len(theirs) != len(ours):
        return None
    bare = content.replace(theirs, b"")
    own = os.path.basename(os.path.dirname(tree)).encode()  # the part that is the other build's alone
    if any(own[at : at + _WINDOW] in bare for at in range(len(own) - _WINDOW + 1)):
        return None
    return content.replace(theirs, ours)


def is_aligned(output: str, path: str) -> bool:
    """Return whether the code of an object that was taken could be given an alignment of its own."""
    command = ["objcopy", "--set-section-alignment", f".text*={_ALIGNMENT}", output]
    silent = os.open(os.devnull, os.O_WRONLY)
    try:
        process = os.posix_spawnp(
            command[0], command, {**os.environ, "PATH": path}, file_actions=[(os.POSIX_SPAWN_DUP2, silent, at) for at in (1, 2)]
        )
    except OSError:
        return False
    finally:
        os.close(silent)
    return os.waitpid(process, 0)[1] == 0


def reads_more(text: bytes | None, assembler: list[str], *, has_modules: bool) -> bool:
    """Return whether what is compiled may bring in files that its text does not have, or modules, in a language that `has_modules`."""
    texts = [text or b""]
    for name in assembler:
        try:
            with open(name, "rb") as source:
                texts.append(source.read())
        except OSError:
            return True
    return any(word in source_text for source_text in texts for word in _EMBEDDING) or (has_modules and _has_modules(texts[0]))


def _has_modules(text: bytes) -> bool:
    """Return whether a text may have declarations of C++ modules, which bring in code that it does not have."""
    if not any(word in text for word in _MODULES):
        return False
    import re  # its loading would cost each of the other compiler calls some milliseconds

    code = re.sub(_MARKER, b"", text, flags=re.MULTILINE)
    return re.search(_DECLARED, code, re.MULTILINE) is not None


def _described(file: str) -> tuple[str, int, int]:
    """Return a file's name, size and CRC-32."""
    with open(file, "rb") as stream:
        content = stream.read()
    return file, len(content), zlib.crc32(content)


def _lines(file: str) -> list[str]:
    """Return the lines of a file, none where there is none."""
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as stream:
            return stream.read().splitlines()
    except OSError:
        return []
