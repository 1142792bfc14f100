"""Whether a built tree may run several threads."""

from __future__ import annotations

import re
from pathlib import Path

from perfdiff.languages.c.built_files import look_through

# What starts threads, in C, C++ and OpenMP, and what libraries call it that do; symbols stand in files as they are.
_STARTS = re.compile(
    rb"pthread_create|thrd_create|_ZNSt6thread|_ZNSt3__16thread|\bGOMP_|__kmpc_|\bomp_get_|__cilkrts_|uv_thread_create|uv_queue_work|g_thread_"
    rb"|SDL_CreateThread|_ZNK?3tbb"
)
_INTERPRETER = b"/ld-"  # of a dynamically linked program
_SYMBOLS = b".symtab"
_EXECUTABLE = 2  # ET_EXEC
_MOST_BYTES = 1 << 30  # of one file


def has_threads(tree: Path) -> bool:
    """Return whether anything that was built in `tree` names what starts threads; True as well where that is not known.

    That is where code is still to be compiled, a program is linked statically and stripped, and where there is no program: a library may
    run in threads of whoever loads it.
    """
    files = look_through(tree)
    contents = [_content(tree / name) for name in files.programs]
    if files.bitcode or not any(content and (_INTERPRETER in content or content[16] == _EXECUTABLE) for content in contents):
        return True
    contents += [_content(tree / name) for name in (*files.objects, *files.archives)]
    return any(content is None or _STARTS.search(content) is not None or _hides_names(content) for content in contents)


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.stat().st_size <= _MOST_BYTES else None
    except OSError:
        return None


def _hides_names(content: bytes) -> bool:
    """Return whether a program is linked statically and stripped."""
    return content[16:17] == b"\2" and _INTERPRETER not in content and _SYMBOLS not in content
