"""Parsing a recorded compile command with libclang, as nearly as it can be to what the recorded compiler saw."""

from __future__ import annotations

import functools
import itertools
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clang import cindex

from perfdiff.languages.c.driver import takes_value
from perfdiff.languages.protocol import CompileCommand

# Long spellings of options that matter here, whose values stand behind `=` or in the next argument.
_LONG = {
    "--define-macro": "-D",
    "--undefine-macro": "-U",
    "--include-directory": "-I",
    "--include-directory-after": "-idirafter",
    "--include": "-include",
    "--imacros": "-imacros",
    "--include-prefix": "-iprefix",
    "--include-with-prefix": "-iwithprefix",
    "--include-with-prefix-after": "-iwithprefix",
    "--include-with-prefix-before": "-iwithprefixbefore",
    "--language": "-x",
    "--output": "-o",
    "--std": "-std=",
}
# Those without a value, or with one behind `=` alone.
_LONG_ALONE = {"--optimize": "-O", "--machine": "-m", "--ansi": "-ansi", "--no-standard-includes": "-nostdinc"}
# What shapes the parse. Everything else (warnings, debug information, linking, tuning) is unknown to libclang or does not matter.
_KEPT = re.compile(
    r"-[IDU]|-include|-imacros|-isystem|-iquote|-idirafter|-isysroot|--sysroot|-std(?:lib)?=|-ansi$|-nostdinc|-pthread$|-fopenmp$|-O|-m"
    r"|-f(?:no-)?(?:exceptions|rtti|signed-char|unsigned-char|short-enums|short-wchar|ms-extensions|plan9-extensions|char8_t|builtin"
    r"|fast-math|freestanding|hosted|gnu89-inline|pack-struct.*|wrapv|strict-aliasing|blocks)(?:$|=)"
)
_MACHINE = re.compile(r"-m|-f")
_CODE_FLAG = re.compile(r"-[ODUfm]|-std(?:lib)?=|-ansi$")
# Position independence of the same source is decided per object by libtool and the like; dependencies and colours never reach the code.
_NOT_CODE = re.compile(r"-f(?:PIC|pic|PIE|pie|diagnostics|message-length|max-errors|macro-prefix-map|file-prefix-map|debug)|-DPIC$")
# The moment of a build: the compiler's own macros, and namesakes whose value is a text, a date of eight digits or seconds since the epoch.
_MOMENT = re.compile(r"""-D(?:__(?:DATE|TIME|TIMESTAMP)__|_*(?:DATE|TIME|TIMESTAMP)_*=(?:\\?["']|\d{8,}$))""")
# Flags that set the same thing, of which compilers heed the last: each pattern's groups name what is set. Others add to one another.
_SETTINGS = tuple(
    re.compile(pattern)
    for pattern in (
        r"(-O)",
        r"(-)(?:std=|ansi$)",
        r"(-stdlib=)",
        r"(-m(?:arch|tune|cpu|abi|fpu|float-abi|cmodel|fpmath|stack-protector-guard|prefer-vector-width)=)",
        r"(-f(?:lto|inline-limit|vect-cost-model|simd-cost-model|fp-contract|stack-protector|visibility|cf-protection)=)",
        r"(-[fm])(?:no-)?([\w-]+)$",
        r"-[DU](\w+)",
    )
)

_HEADERS = Path(__file__).parent / "headers"  # in place of those of gcc that libclang cannot read
_SEARCH_LIST = re.compile(r"#include <\.\.\.> search starts here:\n(.*?)End of search list\.", re.DOTALL)
_TARGET = re.compile(r"^Target: (\S+)$", re.MULTILINE)
_KEEP_GOING = 0x200  # CXTranslationUnit_KeepGoing, not named by the bindings
_OPTIONS = cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD | _KEEP_GOING
# Precompiled: declarations alone, so that no unit instantiates what they call.
_HEADER_OPTIONS = _OPTIONS | cindex.TranslationUnit.PARSE_INCOMPLETE | cindex.TranslationUnit.PARSE_SKIP_FUNCTION_BODIES


_FOLDERS = ("-I", "-iquote", "-isystem", "-idirafter")
_MISSING = re.compile(r"'(.+)' file not found")


@dataclass(frozen=True, slots=True)
class Unit:
    """A translation unit ready to parse: the file, where it is compiled, and libclang's arguments with and without machine flags."""

    file: Path
    directory: Path
    arguments: tuple[str, ...]
    plain_arguments: tuple[str, ...]


def options(arguments: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the options of a compiler call in short spelling, each with its value where the value stands apart, without input files."""
    rest = _shortened(arguments)
    while rest:
        argument = rest.pop(0)
        if takes_value(argument) and rest:
            yield argument, rest.pop(0)
        elif argument.startswith("-"):
            yield (argument,)


def _shortened(arguments: Sequence[str]) -> list[str]:
    """Return the arguments in short spelling, what is passed to the preprocessor behind all others, where gcc reads it."""
    words, passed = list[str](), list[str]()
    rest = iter(arguments)
    for word in rest:
        name, _, value = word.partition("=")
        if word.startswith("-Wp,"):
            passed += word.split(",")[1:]
        elif word == "-Xpreprocessor":
            passed.append(next(rest, ""))
        elif name in _LONG:
            value = value if name != word else next(rest, "")
            words += [_LONG[name] + value] if _LONG[name].endswith("=") else [_LONG[name], value]
        elif name in _LONG_ALONE:
            words.append(_LONG_ALONE[name] + value)
        elif takes_value(word):
            words += [word, *itertools.islice(rest, 1)]
        else:
            words.append(word)
    return words + passed


def code_flags(command: CompileCommand, tree: Path) -> tuple[str, ...]:
    """Return the flags that decide what code is made: -O, -f, -m, -D, -U, -std and -stdlib, as far as no later one overrides them.

    The tree's own path is written as `.`; the moment of the build is left out.
    """
    joined = ("".join(option) for option in options(command.arguments))
    flags = (flag for flag in joined if _CODE_FLAG.match(flag) and not (_NOT_CODE.match(flag) or _MOMENT.match(flag)))
    heeded = {_set_by(flag): flag for flag in flags}
    return tuple(sorted({flag.replace(str(tree.resolve()), ".").replace(str(tree), ".") for flag in heeded.values()}))


def _set_by(flag: str) -> tuple[str, ...]:
    """Return what a flag sets."""
    setting = next((match for pattern in _SETTINGS if (match := pattern.match(flag))), None)
    return (flag,) if setting is None else setting.groups()


def unit(command: CompileCommand) -> Unit:
    """Return the source and arguments with which libclang parses what `command` compiles."""
    relevant = [option for option in options(command.arguments) if _KEPT.match(option[0]) and not _NOT_CODE.match("".join(option))]
    machine = tuple(option[0] for option in relevant if option[0] in ("-m32", "-m64", "-mx32", "-nostdinc", "-nostdinc++"))
    root = tuple(word for option in relevant if "sysroot" in option[0] or option[0].startswith("-stdlib=") for word in option)
    target, folders = toolchain(command.compiler, command.cplusplus, machine + root)
    head = [*(("-x", "c++") if command.cplusplus else ("-x", "c")), "-w", "-ferror-limit=0", f"-working-directory={command.directory}"]
    if target is not None:
        head.append(f"--target={target}")
    folders = (*_stand_ins(folders, command.cplusplus), *folders)
    tail = ["-nostdinc", *(word for folder in folders for word in ("-isystem", folder))] if folders else []

    def arguments(chosen: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        return (*head, *(word for option in chosen for word in option), *tail)

    plain = [option for option in relevant if not _MACHINE.match(option[0]) or option[0] in machine]
    return Unit(command.file, command.directory, arguments(relevant), arguments(plain))


def _stand_ins(folders: Sequence[str], cplusplus: bool) -> Iterator[str]:
    """Yield the folders with what stands in for headers of gcc that libclang cannot read, where a compiler's own `folders` have these."""
    if folders and not cplusplus:
        yield str(_HEADERS)
    if any("/gcc/" in folder and Path(folder, "emmintrin.h").is_file() for folder in folders):
        yield str(_HEADERS / "intrinsics")


@functools.cache
def toolchain(compiler: str, cplusplus: bool, flags: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """Return a compiler's target and its system include folders, in order; nothing of either where it does not answer as gcc does."""
    language = "c++" if cplusplus else "c"
    call = ["env", "LC_ALL=C", compiler, *flags, "-E", "-v", "-x", language, "/dev/null"]
    try:
        answer = subprocess.run(call, capture_output=True, text=True, errors="replace", timeout=60, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None, ()
    listed, target = _SEARCH_LIST.search(answer), _TARGET.search(answer)
    folders = tuple(line.strip() for line in listed.group(1).splitlines()) if listed else ()
    return (target.group(1) if target else None), folders


def parse(unit: Unit) -> Any:
    """Return the parsed `clang.cindex.TranslationUnit`; raise `TranslationUnitLoadError` where libclang cannot make one at all."""
    try:
        parsed = _parse(unit, unit.arguments)
    except cindex.TranslationUnitLoadError:
        return _parse(unit, unit.plain_arguments)
    if any(problem.severity >= cindex.Diagnostic.Error and problem.location.file is None for problem in parsed.diagnostics):
        # The driver refused a flag of the recorded compiler, such as a -march it does not know.
        return _parse(unit, unit.plain_arguments)
    return parsed


def parse_headers(file: Path, unit: Unit) -> Any:
    """Return a parsed file of `#include`s, ready to be saved, with the arguments of a unit that is to use them."""
    return cindex.Index.create().parse(str(file), args=list(unit.arguments), options=_HEADER_OPTIONS)


def parse_with(precompiled: Path, unit: Unit) -> Any:
    """Return a unit parsed behind precompiled headers, without the declarations of these; raise as `parse` does."""
    arguments = [*unit.arguments, "-include-pch", str(precompiled)]
    return cindex.Index.create(excludeDecls=True).parse(str(unit.file), args=arguments, options=_OPTIONS)


def _parse(unit: Unit, arguments: tuple[str, ...]) -> Any:
    return cindex.Index.create().parse(str(unit.file), args=list(arguments), options=_OPTIONS)


def folders(unit: Unit, options: Sequence[str] = _FOLDERS) -> Iterator[Path]:
    """Yield the folders that a unit's headers are looked for in, as far as `options` name them."""
    for word, following in zip(unit.arguments, (*unit.arguments[1:], ""), strict=True):
        for option in options:
            if word.startswith(option):
                yield unit.directory / (word[len(option) :] or following)


def missing_headers(parsed: Any) -> tuple[str, ...]:
    """Return the headers that a unit names and libclang does not find."""
    errors = (problem.spelling for problem in parsed.diagnostics if problem.severity >= cindex.Diagnostic.Error)
    return tuple(sorted({match[1] for error in errors if (match := _MISSING.match(error))}))


def first_error(parsed: Any, tree: Path) -> str | None:
    """Return the first error of a parse that touches the program: one in a file of the tree, or one that ended the parse."""
    for problem in parsed.diagnostics:
        if problem.severity < cindex.Diagnostic.Error:
            continue
        file = problem.location.file
        inside = file is not None and Path(file.name).resolve().is_relative_to(tree.resolve())
        if inside or problem.severity >= cindex.Diagnostic.Fatal:
            where = f"{Path(file.name).name}:{problem.location.line}: " if file is not None else ""
            return f"read only in part: {where}{problem.spelling}"
    return None
