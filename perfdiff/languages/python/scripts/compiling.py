"""Byte-compile all modules below some folders; print as JSON which cannot be: file, line and what is wrong, and the files that are new.

The compiled files are held against time and size of their sources, whatever `SOURCE_DATE_EPOCH` says, as that costs a start the least.
"""

from __future__ import annotations

import importlib.util
import json
import os
import py_compile
import sys
import warnings
from pathlib import Path

_LEFT_OUT = {".git", "__pycache__", "node_modules", ".tox", ".nox", ".eggs"}
_MOST_ALONE = 100  # files; fewer are compiled before further processes have started


def _modules(root: str) -> list[str]:
    """Return the modules below a folder."""
    modules: list[str] = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in _LEFT_OUT and not Path(folder, name, "pyvenv.cfg").exists()]
        modules.extend(str(Path(folder, name)) for name in names if name.endswith(".py"))
    return modules


def _compiled(file: str) -> list[object] | None:
    """Compile a module; return file, line and error where it cannot be."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            py_compile.compile(file, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
    except py_compile.PyCompileError as error:
        return [
            file,
            getattr(error.exc_value, "lineno", None),
            f"{error.exc_type_name}: {getattr(error.exc_value, 'msg', error.exc_value)}",
        ]
    except (OSError, RecursionError, ValueError) as error:
        return [file, None, str(error)]
    return None


def main() -> None:
    """Compile all modules below the folders that the command line names, on all processors if they are many."""
    files = [file for root in sys.argv[1:] for file in _modules(root)]
    missing = [place for place in map(importlib.util.cache_from_source, files) if not os.path.lexists(place)]
    if len(files) <= _MOST_ALONE:
        failed = [_compiled(file) for file in files]
    else:
        import multiprocessing  # takes as long as compiling a dozen modules

        with multiprocessing.Pool(len(os.sched_getaffinity(0))) as pool:
            failed = pool.map(_compiled, files, chunksize=20)
    sys.stdout.write(json.dumps([[failure for failure in failed if failure], [*filter(os.path.lexists, missing)]]))


if __name__ == "__main__":
    main()
