"""Says in what files of byte code differ, positions aside: run by the interpreter that runs them, from 3.10 on. Nothing of them is run.

Standard input is a JSON list of names, each with two paths. Prints a JSON object: by name the functions in which two files differ, as lists
of the interpreter's name and both first lines, where all that is seen without calling these is the same; an empty list where nothing
differs; null where something else does, or a file is none that this interpreter loads.
"""

import json
import struct
import sys
from importlib.util import MAGIC_NUMBER
from marshal import loads
from pathlib import Path
from types import CodeType

_HEADER_BYTES = 16  # the interpreter's number, how the source is checked, when that changed and its size, or its digest
_CHECKED = slice(4, 8)
_FUNCTION, _VARIABLE, _KEYWORDS, _DOCUMENTED = 0x1, 0x4, 0x8, 0x4000000  # CO_OPTIMIZED, CO_VARARGS, CO_VARKEYWORDS, CO_HAS_DOCSTRING
# All that a code is but for its constants and for where it was written.
_OWN = (
    "co_argcount",
    "co_posonlyargcount",
    "co_kwonlyargcount",
    "co_nlocals",
    "co_stacksize",
    "co_flags",
    "co_code",
    "co_names",
    "co_varnames",
    "co_freevars",
    "co_cellvars",
    "co_name",
    *(name for name in ("co_qualname", "co_exceptiontable") if hasattr(CodeType, name)),
)
_SEEN = ("co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_flags", "co_freevars", "co_name", "co_qualname")

Differing = list[tuple[str, int, int]]


class UnlikeError(Exception):
    """Two codes differ in more than the bodies of functions."""


def differing(first: CodeType, second: CodeType) -> Differing:
    """Return the functions in which two codes differ; raise UnlikeError where they differ in anything else."""
    if any(getattr(first, name) != getattr(second, name) for name in _OWN) or len(first.co_consts) != len(second.co_consts):
        raise UnlikeError
    functions: Differing = []
    for constant, other in zip(first.co_consts, second.co_consts, strict=True):
        if isinstance(constant, CodeType) and isinstance(other, CodeType):
            functions += _differing_inside(constant, other)
        elif _exactly(constant) != _exactly(other):
            raise UnlikeError
    return functions


def _differing_inside(first: CodeType, second: CodeType) -> Differing:
    try:
        return differing(first, second)
    except UnlikeError:
        if not first.co_flags & _FUNCTION or _seen(first) != _seen(second):  # else it runs where it stands, as class bodies do
            raise
    return [(first.co_name, first.co_firstlineno, second.co_firstlineno)]


def _seen(code: CodeType) -> tuple[object, ...]:
    """Return what is seen of a function without calling it."""
    arguments = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & _VARIABLE) + bool(code.co_flags & _KEYWORDS)
    is_documented = code.co_flags & _DOCUMENTED if sys.version_info >= (3, 13) else code.co_consts and isinstance(code.co_consts[0], str)
    documentation = code.co_consts[0] if is_documented else None
    return (*(getattr(code, name, None) for name in _SEEN), code.co_varnames[:arguments], documentation)


def _exactly(value: object) -> object:
    """Return a constant such that only those equal it which a program cannot tell from it: 1 is not True, and 0.0 is not -0.0."""
    if isinstance(value, float):
        return float, struct.pack("<d", value)
    if isinstance(value, complex):
        return complex, struct.pack("<dd", value.real, value.imag)
    if isinstance(value, (tuple, frozenset)):
        return type(value), [_exactly(element) for element in value]  # sets as they are walked through
    if isinstance(value, slice):
        return slice, [_exactly(bound) for bound in (value.start, value.stop, value.step)]
    if value is None or value is Ellipsis or isinstance(value, (bool, int, str, bytes)):
        return type(value), value
    raise UnlikeError


def _read(path: str) -> tuple[bytes, CodeType]:
    content = Path(path).read_bytes()
    code = loads(content[_HEADER_BYTES:]) if content.startswith(MAGIC_NUMBER) else None
    if not isinstance(code, CodeType):
        raise UnlikeError
    return content[_CHECKED], code


def _compared(base: str, head: str) -> Differing | None:
    try:
        (checked, before), (is_checked_so, after) = _read(base), _read(head)
        return differing(before, after) if checked == is_checked_so else None
    except (UnlikeError, OSError, ValueError, EOFError, TypeError, RecursionError, MemoryError):
        return None


def main() -> None:
    """Compare the files that standard input names."""
    json.dump({name: _compared(base, head) for name, base, head in json.load(sys.stdin)}, sys.stdout)


if __name__ == "__main__":
    main()
