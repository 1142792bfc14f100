"""Says which lines of Python files are counted, and in which functions: run by the interpreter that runs the files, from 3.10 on.

Called with the root of a tree; standard input has paths in it, a JSON list. Prints a JSON object: for each file that can be compiled, its
codes as lists of the first line, the interpreter's name, the function's name within its module, and the lines. What belongs to a function
without being one, as comprehensions and class bodies do, goes by the function's name.
"""

import dis
import json
import sys
import warnings
from pathlib import Path
from types import CodeType

_FUNCTION = 0x1  # CO_OPTIMIZED: of codes, those of functions have it, class bodies and modules not
_PARTS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
_SCOPES = "<generic parameters of "  # of functions and classes with type parameters, from 3.12 on
_MODULE = "<module>"
# What stands on a function's first line in each call, and is no line that begins.
_PROLOGUE = frozenset(
    dis.opmap[name]
    for name in ("RESUME", "COPY_FREE_VARS", "MAKE_CELL", "RETURN_GENERATOR", "GEN_START", "POP_TOP", "NOP", "CACHE", "EXTENDED_ARG")
    if name in dis.opmap
)
# What ends a generator that an exception leaves, from 3.12 on.
_EPILOGUE = frozenset(dis.opmap[name] for name in ("CALL_INTRINSIC_1", "RERAISE") if name in dis.opmap)


def codes(code: CodeType, scope: str, function: str) -> list[tuple[int, str, str, list[int]]]:
    """Return a code and those in it; `scope` is the name before a nested function's own, `function` what its lines belong to."""
    described = [(code.co_firstlineno, code.co_name, function, _lines(code))]
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            is_part = inner.co_name in _PARTS or inner.co_name.startswith(_SCOPES)
            name = scope if is_part else f"{scope}.{inner.co_name}".lstrip(".")
            is_function = inner.co_flags & _FUNCTION and not is_part
            described += codes(inner, name, name if is_function else function)
    return described


def _lines(code: CodeType) -> list[int]:
    lines = {line for _, _, line in code.co_lines() if line}
    if code.co_flags & _FUNCTION and not _begins(code, code.co_firstlineno):
        lines.discard(code.co_firstlineno)
    return sorted(lines)


def _begins(code: CodeType, line: int) -> bool:
    """Return whether a line has more than what makes a function begin and end."""
    text = code.co_code
    opcodes = {opcode for start, end, number in code.co_lines() if number == line for opcode in text[start:end:2]}
    return not opcodes <= _PROLOGUE | _EPILOGUE


def main() -> None:
    """Describe the files that standard input names."""
    warnings.simplefilter("ignore")  # of invalid escapes, which the program's own run may tell
    tree, described = Path(sys.argv[1]), {}
    for file in json.load(sys.stdin):
        try:
            code = compile((tree / file).read_bytes(), file, "exec", dont_inherit=True)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # nothing of it can be imported
        described[file] = codes(code, "", _MODULE)
    json.dump(described, sys.stdout)


if __name__ == "__main__":
    main()
