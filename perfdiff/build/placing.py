"""What placed builds add to compiler calls: the compilers' own coverage counters, one of each stretch of code."""

# Part of the masquerade: importing pathlib would take longer than all the rest.
# ruff: noqa: PTH118

from __future__ import annotations

import os

from perfdiff.build.additions import UNTRACKED_GCC, link_alone, runtime_path
from perfdiff.build.calls import Build, ParsedCall
from perfdiff.build.compiling import names_clang, reason, run_captured, show

# Behind the project's own options, and prevailing. A function that is inlined before the counters are put in has none of its own, so
# that is done afterwards. Warnings are the plain build's to tell; optimisers give others of code with counters, which -Werror would heed.
_COUNTED_GCC = ("-fprofile-arcs", "-ftest-coverage", "-fprofile-abs-path", "-fno-early-inlining", "-w")
_SINGLE_GCC, _ATOMIC_GCC = "-fprofile-update=single", "-fprofile-update=prefer-atomic"
_LINKED_GCC = ("-fprofile-arcs",)
_COUNTED_CLANG = ("-fno-profile-instr-use", "-fprofile-instr-generate", "-fcoverage-mapping", "-w")
_ATOMIC_CLANG = ("-mllvm", "-instrprof-atomic-counter-update-all")
_LINKED_CLANG = ("-fno-profile-instr-use", "-fprofile-instr-generate", "-Wl,--build-id=sha1")  # counts name their program by its build id
# Where the C library stands among the project's own words or not at all, clang's runtime comes behind it, and lacks what is in its archive.
_WITHOUT_LIBRARIES = frozenset(("-nostdlib", "-nodefaultlibs"))
_LIBRARY_CLANG = ("-Wl,-u,atexit", "-lc")
_FREE_STANDING = frozenset(("-ffreestanding", "-mkernel", "-fapple-kext"))
_WRAPPED = ("-Wl,--wrap=_exit", "-Wl,--wrap=_Exit")  # where nothing can stand before the C library


class Placing:
    """What is added to one call: `compiling` and `linking` come behind its own words.

    `uncounted` says why no line is counted in the objects of this call, None where all are.
    """

    def __init__(self, call: ParsedCall, compiler: str, path: str, build: Build) -> None:
        self._call = call
        is_clang = names_clang(compiler, path)
        self.compiling: list[str] = []
        self.linking: list[str] = []
        self.uncounted = uncountable(call)
        if call.stop in ("compile", "link") and (call.sources or call.headers) and self.uncounted is None:
            self.compiling = _clang_words(build) if is_clang else _gcc_words(build)
        if call.links:
            self.linking = _linking(call, build, is_clang=is_clang)

    @property
    def words(self) -> list[str]:
        """Return the words by which a unit is compiled otherwise than in a plain build."""
        return self.compiling

    def run(self, command: list[str], path: str) -> tuple[int, dict[str, str], dict[str, str]]:
        """Run the call with what is added to it, without counters where they do not compile or link.

        Returns its status, no dropped probes, and the files whose lines are not counted, with reasons. Only the last attempt's messages are
        shown.
        """
        uncounted = self.uncounted
        status, errors = run_captured([*command, *self.compiling, *self.linking], path)
        if status and self.compiling:
            uncounted = f"it does not compile with counters: {reason(errors)}"
            status, errors = run_captured([*command, *self.linking], path)
        if status and self.linking:
            uncounted = f"it does not link with counters: {reason(errors)}"
            status, errors = link_alone(self._call, command, path)
        show(errors)
        return status, {}, _uncounted_files(self._call, uncounted)


def uncountable(call: ParsedCall) -> str | None:
    """Return why the lines of what a call compiles cannot be counted, as far as its words tell, or None."""
    if not _FREE_STANDING.isdisjoint(call.arguments):
        return "it is compiled to run without a C library"
    return None


def _gcc_words(build: Build) -> list[str]:
    return [*_COUNTED_GCC, *UNTRACKED_GCC, _ATOMIC_GCC if build.has_threads else _SINGLE_GCC]


def _clang_words(build: Build) -> list[str]:
    return [*_COUNTED_CLANG, *(_ATOMIC_CLANG if build.has_threads else ())]


def _linking(call: ParsedCall, build: Build, *, is_clang: bool) -> list[str]:
    counters = os.path.join(build.runtime, "places-clang.o" if is_clang else "places-gcc.o")
    library = ["-l:libperfdiff_places.a", *_WRAPPED] if call.static else [*runtime_path(build), "-lperfdiff_places"]
    own: tuple[str, ...] = _LINKED_CLANG if is_clang else _LINKED_GCC
    if is_clang and not _WITHOUT_LIBRARIES.isdisjoint(call.arguments):
        own = (*own, *_LIBRARY_CLANG)
    return [*own, "-x", "none", counters, f"-L{build.runtime}", *library, "-lpthread", "-ldl"]


def _uncounted_files(call: ParsedCall, reason: str | None) -> dict[str, str]:
    """Return the files of a call whose lines are not counted, with reasons; `reason` is that of its sources, or of what it links."""
    files: dict[str, str] = {}
    if call.stop in ("compile", "link"):
        files.update((file, "it is written in assembler") for file in call.assembler)
        if reason is not None:
            files.update((file, reason) for file in [file for file, _ in call.sources] or [call.output or "a.out"])
    return files
