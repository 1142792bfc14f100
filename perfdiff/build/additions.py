"""What builds with probes and with counters add to compiler calls, and how they compile what does not take it."""

# Part of the masquerade: importing pathlib would take longer than all the rest.
# ruff: noqa: PTH118, PTH123

from __future__ import annotations

import os

from perfdiff.build.calls import Build, ParsedCall
from perfdiff.build.compiling import names_clang, reason, run_captured, show, start, wait

_ATTEMPTS = 12  # clang stops at 20 errors, so one attempt can name 20 probes; a unit with more than 220 bad ones loses all its probes

# Where a loop lies within a line of the instruction cache makes 10 to 80 % of its time: functions, loops and what is reached by jumps alone
# begin at places of their own in it, so that what stands before them in head alone does not show. Other labels would have to be aligned by
# instructions that run. Before the project's own options, which prevail.
_ALIGNED_GCC = ("-falign-functions=64", "-falign-loops=64", "-falign-jumps=32")
# Where each variable is at each instruction is asked of no build with probes, and following it through all that is inlined is a tenth to a
# fifth of compiling; the code is the same without it. Also before the project's own options.
UNTRACKED_GCC = ("-fno-var-tracking", "-fno-var-tracking-assignments")
_ALIGNED_CLANG = ("-falign-functions=64", "-falign-loops=64", "-Wno-ignored-optimization-argument")  # loops since clang 13
# Probes are static functions, which clang warns of where they stand in an inline function that other files may call.
_STATIC_CLANG = ("-Wno-static-in-inline",)
# Behind the project's own options: errors show the text that they are about, by which probes are told.
_CARET_GCC, _CARET_CLANG = "-fdiagnostics-show-caret", "-fcaret-diagnostics"

# What a counted build compiles with: every memory access and every basic block calls the runtime. The options go to the compiler proper
# (`counted.specs` has gcc's), as the drivers would link runtimes of their own for them.
_LINES = ("-g1",)  # line tables name what is counted
_CALLED = ("-DPD_CALLED",)  # probes are calls of the library
# Where all functions have probes, what pointers may point to is most of compiling: 174 of 276 s of an interpreter's unit (43 s as it is).
_SURVEYED_GCC = ("-fno-tree-pta",)
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

# What objects ask of the runtimes, as linkers tell that they lack it.
_ASKED = tuple(f"{mark}{name}" for mark in ("`", "'", ": ") for name in ("pd_", "__sanitizer_", "__tsan_", "__gcov_", "__llvm_profile_"))
_UNRESOLVED = "-Wl,--unresolved-symbols=ignore-all"


def runtime_path(build: Build) -> tuple[str, ...]:
    """Return the words by which a program finds the runtime library where it lies; a comma in its path would end a word of `-Wl`."""
    return "-Xlinker", "-rpath", "-Xlinker", build.runtime


def link_alone(call: ParsedCall, command: list[str], path: str) -> tuple[int, str]:
    """Link without the runtime; return the status and the messages.

    Of what may have no C library, probes and counters in objects are at 0 then: it crashes if it is run, but the build goes on.
    """
    status, errors = run_captured(command, path)
    if status and call.is_bare and any(name in errors for name in _ASKED):
        status, errors = run_captured([*command, _UNRESOLVED], path)
    return status, errors


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


def run_probed(command: list[str], additions: list[str], links: list[str], path: str) -> tuple[int, dict[str, str], str]:
    """Compile with probes, without those that do not compile; return the status, the dropped ones with reasons, and the messages.

    `additions` come ahead of the call's own words, `links` behind them.
    """
    dropped: dict[str, str] = {}
    for _ in range(_ATTEMPTS):
        without = [f"-DPD_NO_{probe}" for probe in dropped]
        status, errors = run_captured([command[0], *additions, *without, *command[1:], *links], path)
        new = {str(probe) for probe in guilty_probes(errors)} - dropped.keys() if status else set()
        if not new:
            break
        dropped.update(dict.fromkeys(sorted(new, key=int), reason(errors)))
    return status, dropped, errors


class Additions:
    """What a probed build adds to a call: words for probes and for counting, which come first, and words for linking, which come last.

    `uncounted` says why a counted build counts nothing in the objects of this call; None where it does, and in other builds.
    """

    def __init__(self, call: ParsedCall, compiler: str, path: str, build: Build) -> None:
        self.probing = ["-include", build.header, "-isystem", build.runtime] if call.sources or call.headers else []
        self.counting: list[str] = []
        self.links: list[str] = []
        self.uncounted: str | None = None
        is_clang = bool(self.probing or build.is_counted) and names_clang(compiler, path)
        aligned = _ALIGNED_CLANG if is_clang else _ALIGNED_GCC
        if self.probing and not build.header:
            self.probing = [*aligned]
        elif self.probing:
            others = _STATIC_CLANG if is_clang else (*UNTRACKED_GCC, *(_SURVEYED_GCC if build.is_surveyed else ()))
            called = _CALLED if build.calls_probes else ()
            self.probing = [*(_LINES if build.is_counted else aligned), *called, *others, *self.probing]
        self._call, self._is_counted = call, build.is_counted
        self._caret = _CARET_CLANG if is_clang else _CARET_GCC
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
            library = [f"-l:lib{name}.a"] if call.static else [*runtime_path(build), f"-l{name}"]
            bound = ["-Wl,-z,now"] if build.is_counted else []  # calls of libraries are counted where they are bound from the start
            self.links = [f"-L{build.runtime}", *library, "-lpthread", "-ldl", *bound]

    @property
    def words(self) -> list[str]:
        """Return the words by which a unit is compiled otherwise than in a plain build."""
        return [*self.counting, *self.probing]

    def run(self, command: list[str], path: str) -> tuple[int, dict[str, str], dict[str, str]]:
        """Run the call with what is added to it; return its status, the dropped probes, and the uncounted files, both with reasons."""
        lost: dict[str, str] = {}
        if self.probing and self._call.stop in ("compile", "link"):
            status, dropped, uncounted = self._compile(command, path)
        else:
            words = [command[0], *self.counting, *self.probing, *command[1:], *self.links]
            status, lost = self._link(words, command, path) if self._call.is_bare else (wait(start(words, path)), {})
            dropped, uncounted = {}, self.uncounted
        return status, dropped, {**uncounted_files(self._call, uncounted), **lost} if self._is_counted else {}

    def _link(self, words: list[str], command: list[str], path: str) -> tuple[int, dict[str, str]]:
        """Link what may have no C library, without the runtime where it does not take it; return the status, and why it has none."""
        status, errors = run_captured(words, path)
        lost = {}
        if status:
            lost = {self._call.output or "a.out": f"it does not link with counters: {reason(errors)}"}
            status, errors = link_alone(self._call, command, path)
        show(errors)
        return status, lost

    def _compile(self, command: list[str], path: str) -> tuple[int, dict[str, str], str | None]:
        """Compile with probes and counting, as far as the compiler takes them.

        Returns the status, the dropped probes with reasons (`all` for all), and why nothing is counted in the objects, None if it is or
        nobody asked. Only the last attempt's messages are shown. Where the unit does not compile without probes either, the fault is the
        project's.
        """
        uncounted, behind = self.uncounted, [*self.links, self._caret]
        status, dropped, errors = run_probed(command, [*self.counting, *self.probing], behind, path)
        if status and self.counting:
            uncounted = f"it does not compile when it is to be counted: {reason(errors)}"
            status, dropped, errors = run_probed(command, self.probing, behind, path)
        if status:
            dropped = {"all": reason(errors)}
            status, errors = run_captured([command[0], *self.probing, "-DPD_NONE", *command[1:], *self.links], path)
        show(errors)
        return status, dropped if status == 0 else {}, uncounted


def uncountable(call: ParsedCall, *, is_clang: bool) -> str | None:
    """Return why what a call compiles cannot be counted, as far as its words and sources tell, or None."""
    own = {part for word in call.arguments if word.startswith("-fsanitize=") for part in word.partition("=")[2].split(",")}
    if sanitizers := sorted(own & _OWN_SANITIZERS):
        return f"its own -fsanitize={sanitizers[0]} stands in the way"
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


def uncounted_files(call: ParsedCall, reason: str | None) -> dict[str, str]:
    """Return the files of a call in which a counted build counts nothing, or not all, with reasons; `reason` is that of its sources."""
    files: dict[str, str] = {}
    if reason is not None:
        files.update((file, reason) for file, _ in call.sources)
    if call.stop in ("compile", "link"):
        files.update((file, "it is written in assembler") for file in call.assembler)
    if call.links and call.static:
        files[call.output or "a.out"] = "it is linked statically: what the C library does with memory is not counted"
    return files
