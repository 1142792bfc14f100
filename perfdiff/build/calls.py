"""What a compiler call is asked to do, and what a build does with all of them."""

# Part of the masquerade, which starts once per compiler call: importing pathlib or enum would take longer than all the rest.
# ruff: noqa: PTH113, PTH118, PTH119, PTH122, PTH123

from __future__ import annotations

import os
import sys

from perfdiff.languages.c.driver import takes_value

_C_SUFFIXES = frozenset((".c", ".i"))
_CPLUSPLUS_SUFFIXES = frozenset((".cc", ".cp", ".cxx", ".cpp", ".CPP", ".c++", ".C", ".ii", ".ixx", ".cppm"))
_HEADER_SUFFIXES = frozenset((".h", ".hh", ".hpp", ".HPP", ".hxx", ".h++", ".H", ".hp", ".tcc"))
_LANGUAGES = {"c": "c", "cpp-output": "c", "c++": "c++", "c++-cpp-output": "c++", "c-header": "header", "c++-header": "header"}
_CHECK_PLACES = ("/CMakeFiles/CMakeTmp", "/CMakeFiles/CMakeScratch", "/meson-private/", "/CompilerIdC", "/.conf_check_", "/config.tests/")
_CHECK_NAMES = ("conftest", "CMakeCCompilerId", "CMakeCXXCompilerId", "sanitycheckc", "testCCompiler", "testCXXCompiler")
_ASSEMBLER_SUFFIXES = frozenset((".s", ".S", ".sx"))
_BARE = frozenset(("-nostdlib", "-nodefaultlibs", "-nostartfiles", "-nolibc"))
_INCLUDE_DEPTH = 16  # response files in response files; deeper ones include themselves

PLAIN, PROBED, SURVEYED, COUNTED = "plain", "probed", "surveyed", "counted"
PLACED, PLACED_IN_THREADS, UNTOUCHED = "placed", "placed in threads", "untouched"
# What a call makes; a header is precompiled, and the assembler's is the text of `-S`.
COMPILE, LINK, PARTIAL, ARCHIVE, HEADER, ASSEMBLER = "compile", "link", "partial", "archive", "header", "assembler"


class Build:
    """What all compiler calls of a build share: `kind` is what it adds to them, `header` and `runtime` are empty in a plain one.

    A placed one has no header, nor has one of units that stay `untouched` in a variant.
    """

    def __init__(self, folder: str, tree: str, header: str, runtime: str, kind: str) -> None:
        self.folder = folder
        self.tree = tree
        self.header = header
        self.runtime = runtime
        self.is_plain = kind == PLAIN
        self.is_counted = kind == COUNTED
        self.is_surveyed = kind == SURVEYED
        self.calls_probes = kind in (SURVEYED, COUNTED)
        self.is_placed = kind in (PLACED, PLACED_IN_THREADS)
        self.has_threads = kind == PLACED_IN_THREADS


class ParsedCall:
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
            elif takes_value(word):
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
    def is_bare(self) -> bool:
        """Return whether what is linked may come without a C library, which the runtime needs, or without what starts programs."""
        return self.links and not _BARE.isdisjoint(self.arguments)

    @property
    def compiles(self) -> bool:
        """Return whether sources are turned into machine code."""
        return self.stop in ("compile", "link") and bool(self.sources)

    def is_configuration_check(self, directory: str) -> bool:
        """Return whether the call belongs to a build system that tries the compiler out."""
        return tries_tools_out(directory, [*(path for path, _ in self.sources), *self.others])


def tries_tools_out(directory: str, names: list[str]) -> bool:
    """Return whether the files of a call, or its directory, are those by which build systems try tools out."""
    return any(
        os.path.basename(path).startswith(_CHECK_NAMES) or any(place in path for place in _CHECK_PLACES)
        for path in [*(os.path.join(directory, name) for name in names), directory + "/"]
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
