"""The extension modules that probe Python functions and count lines: compiled for one interpreter, and kept by content."""

from __future__ import annotations

import functools
import hashlib
import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from perfdiff.errors import BuildError
from perfdiff.languages import compiled
from perfdiff.languages.interpreter_modules import over, sources
from perfdiff.languages.python.interpreters import SUPPORTED

MODULE = "_perfdiff.so"

_FLAGS = ("-std=gnu11", *compiled.FLAGS, "-Wno-missing-field-initializers")
_TIMEOUT_S = 60.0  # an interpreter starts within 50 ms; on a network disk, not yet cached, within seconds
_QUESTION = """\
import json, sys, sysconfig
print(json.dumps([
    sys.implementation.name, list(sys.version_info[:3]), sys.version, sysconfig.get_path("include"), sysconfig.get_path("platinclude"),
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
]))
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """What an interpreter says of itself, as far as an extension module depends on it."""

    implementation: str
    version: tuple[int, int, int]
    build: str
    include: tuple[Path, ...]  # folders of its headers
    is_free_threaded: bool

    @property
    def headers(self) -> Path | None:
        """Return the folder where its headers are, None where they are not installed."""
        return next((folder for folder in self.include if (folder / "Python.h").is_file()), None)


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
    interpreter = ask(python)
    _check(python, interpreter)
    assert interpreter.headers is not None, "it was checked"
    return interpreter.headers


def _built(python: Path, parts: Sequence[str], options: Sequence[str], compiler: str, cache: Path) -> Path:
    interpreter = ask(python)
    _check(python, interpreter)
    driver = compiled.c_driver(compiler)
    name = f"python-{_fingerprint(interpreter, parts, options, driver)}"
    return compiled.kept(cache, name, partial(_compile, interpreter, parts, options, driver)) / MODULE


@functools.lru_cache
def ask(python: Path) -> Interpreter:
    """Return what an interpreter says of itself; raise BuildError where it does not run."""
    try:
        ended = subprocess.run([python, "-I", "-S", "-c", _QUESTION], capture_output=True, check=True, timeout=_TIMEOUT_S)
        implementation, version, build, include, platform_include, is_free_threaded = json.loads(ended.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise BuildError(f"{python} does not run as a Python interpreter: {error}", slug="no-interpreter") from error
    folders = dict.fromkeys((Path(include), Path(platform_include)))
    return Interpreter(implementation, tuple(version), build, tuple(folders), is_free_threaded)


def _check(python: Path, interpreter: Interpreter) -> None:
    version, (first, last) = ".".join(map(str, interpreter.version)), SUPPORTED
    if interpreter.implementation != "cpython" or interpreter.is_free_threaded or not first <= interpreter.version[:2] <= last:
        kind = "free-threaded " if interpreter.is_free_threaded else ""
        raise BuildError(
            f"{python} is {kind}{interpreter.implementation} {version}, whose calls cannot be measured yet: name a CPython from"
            f" {first[0]}.{first[1]} to {last[0]}.{last[1]} as `interpreter` under [python]",
            slug="python-unsupported",
        )
    if not interpreter.headers:
        raise BuildError(
            f"the headers of {python} (Python {version}) are not in {interpreter.include[0]}; install them (Debian and Ubuntu:"
            f" python3-dev or python{interpreter.version[0]}.{interpreter.version[1]}-dev, Fedora: python3-devel), or name an"
            " interpreter that has its own, as those of pyenv, uv and conda have, as `interpreter` under [python]",
            slug="no-python-headers",
        )


def _fingerprint(interpreter: Interpreter, parts: Sequence[str], options: Sequence[str], driver: str) -> str:
    digest = hashlib.sha256(compiled.identity(driver))
    digest.update(repr((interpreter, options, _FLAGS)).encode())
    for source in sources(Path(__file__).parent, parts):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:24]


def _compile(interpreter: Interpreter, parts: Sequence[str], options: Sequence[str], driver: str, made: Path) -> None:
    headers = [argument for include in interpreter.include for argument in ("-isystem", str(include))]
    files = [str(source) for source in sources(Path(__file__).parent, parts) if source.suffix == ".c"]
    compiled.run([driver, "-shared", *_FLAGS, *headers, *files, "-o", str(made / MODULE), *options])
