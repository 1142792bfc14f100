"""Small C and C++ trees for the tests of the index and of matching."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perfdiff.languages.c.index import index
from perfdiff.languages.protocol import CompileCommand, FunctionDefinition, Program

CPLUSPLUS = {".cc", ".cpp", ".cxx"}


def program(tree: Path, sources: dict[str, str], flags: Sequence[str] = (), *, compiled: Sequence[str] | None = None) -> Program:
    """Write `sources` below `tree` and index every C and C++ file among them, or those named in `compiled`."""
    for name, text in sources.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    files = [tree / name for name in (compiled or sources) if Path(name).suffix in CPLUSPLUS | {".c"}]
    return index(tree, [command(file, flags) for file in files], depth=3, workers=1)


def command(file: Path, flags: Sequence[str] = ()) -> CompileCommand:
    """Return the recorded compile command of a file."""
    cplusplus = file.suffix in CPLUSPLUS
    arguments = ("-Wall", "-I.", *flags, "-c", str(file), "-o", f"{file.stem}.o")
    return CompileCommand(file, file.parent, "g++" if cplusplus else "gcc", arguments, cplusplus)


def function(program: Program, name: str, file: str | None = None) -> FunctionDefinition:
    """Return the only function of this name."""
    found = [one for one in program.functions.values() if name in one.names and file in (None, one.file)]
    assert len(found) == 1, f"{name}: {[one.key for one in found]} of {sorted(one.name for one in program.functions.values())}"
    return found[0]


def callees(program: Program, name: str) -> set[str]:
    """Return the names of the functions that a function calls."""
    return {program.functions[key].name for key in function(program, name).calls}


def uses(program: Program, name: str) -> set[str]:
    """Return what a function depends on, in words, compile flags left out."""
    return {str(program.declarations[key].entity) for key in function(program, name).uses if not key.startswith("flags:")}
