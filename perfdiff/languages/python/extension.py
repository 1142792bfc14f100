"""The extension modules that probe Python functions and count lines: compiled for one interpreter, and kept by content."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perfdiff.errors import BuildError
from perfdiff.languages import compiled
from perfdiff.languages.c.runtime_library import over
from perfdiff.languages.interpreter_parts import sources
from perfdiff.languages.python import interpreters
from perfdiff.languages.python.interpreters import Interpreter

MODULE = "_perfdiff.so"


def build(python: Path, runtime: Path, compiler: str, cache: Path) -> Path:
    """Return the extension module that probes calls for the interpreter `python`, compiling it at the first call.

    `runtime` is the folder of the runtime library, which the module finds there when it is loaded.
    Raises BuildError where the interpreter cannot be run or is none that can be probed, where its headers are missing and where the
    compiler fails; StoreError where `cache` cannot be written.
    """
    return _built(python, ("runtime",), over(runtime), compiler, cache)


def build_counting(python: Path, runtime: Path, compiler: str, cache: Path) -> Path:
    """Return the extension module that probes calls and counts what they do, as `build` does."""
    return _built(python, ("runtime", "counting", "lines"), ("-DPD_PER_CALL", *over(runtime)), compiler, cache)


def build_lines(python: Path, compiler: str, cache: Path) -> Path:
    """Return the extension module that counts lines for the interpreter `python`, as `build` does; it needs no runtime library."""
    # Never unloaded, as it stands in the list of what a fork calls.
    return _built(python, ("lines",), ("-lpthread", "-Wl,-z,nodelete"), compiler, cache)


def headers(python: Path) -> Path:
    """Return the folder with the headers of an interpreter; raise BuildError where it has none, or cannot be measured."""
    return _headers(interpreters.described(str(python)))


def _headers(interpreter: Interpreter) -> Path:
    folder = interpreter.headers
    if folder is None:
        major, minor, _ = interpreter.version
        raise BuildError(
            f"the headers of {interpreter.executable} (Python {interpreter.release}) are not in {interpreter.include[0]}; install them"
            f" (Debian and Ubuntu: python3-dev or python{major}.{minor}-dev, Fedora: python3-devel), or name an interpreter that has its"
            " own, as those of pyenv, uv and conda have, as `interpreter` under [python]",
            slug="no-python-headers",
        )
    return folder


def _built(python: Path, parts: Sequence[str], options: Sequence[str], compiler: str, cache: Path) -> Path:
    interpreter, driver = interpreters.described(str(python)), compiled.c_driver(compiler)
    _headers(interpreter)
    files = list(sources(Path(__file__).parent, parts))
    words = (interpreter.says, interpreter.version, interpreter.include, options, compiled.MODULE_FLAGS)
    name = f"python-{compiled.fingerprint(driver, words, files)}"
    includes = [argument for folder in interpreter.include for argument in ("-isystem", str(folder))]
    compiling = (driver, *compiled.MODULE_FLAGS, *includes)
    return compiled.kept(cache, name, lambda target: compiled.compile_module(compiling, files, options, target / MODULE)) / MODULE
