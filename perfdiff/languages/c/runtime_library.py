"""The runtime library, compiled with the target's compiler and kept by content."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from perfdiff.errors import BuildError, StoreError

SOURCES = Path(__file__).parent / "runtime"
HEADER = "perfdiff_probe.h"

_FLAGS = (
    "-x",
    "c",
    "-std=c11",
    "-D_GNU_SOURCE",
    "-O2",
    "-g",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-omit-frame-pointer",
    "-Wall",
    "-Wextra",
)
# Never unloaded: the signal handlers and thread destructors outlive a library that is closed.
_LINK_FLAGS = ("-Wl,-soname,libperfdiff.so", "-Wl,-z,nodelete")
_C_DRIVERS = (("clang++", "clang"), ("g++", "gcc"), ("c++", "cc"))
_TIMEOUT_S = 120.0


def build(compiler: str, cache: Path) -> Path:
    """Return the folder with `perfdiff_probe.h`, `libperfdiff.so` and `libperfdiff.a`, compiling them at the first call.

    The folder is named by the sources and the compiler's version, so equal requests share it, from two processes at once too.
    Raises BuildError where the compiler fails, StoreError where `cache` cannot be written.
    """
    driver = _c_driver(compiler)
    folder = cache / f"runtime-{_fingerprint(driver)}"
    if folder.is_dir():
        with contextlib.suppress(OSError):  # its age is the time since it was used
            os.utime(folder)
        return folder
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix="runtime-") as temporary:
            made = Path(temporary) / "made"
            made.mkdir()
            _compile(driver, made)
            shutil.copy(SOURCES / HEADER, made)
            _keep(made, folder)
    except OSError as error:
        raise StoreError.about(cache, error) from error
    return folder


def _c_driver(compiler: str) -> str:
    """Return the C driver beside a C++ one; a compiler without a known sibling compiles C by `-x c`."""
    path = Path(shutil.which(compiler) or compiler)
    for cplusplus, c in _C_DRIVERS:
        if cplusplus in path.name:
            sibling = path.with_name(path.name.replace(cplusplus, c))
            return str(sibling) if sibling.exists() else str(path)
    return str(path)


def _sources() -> Iterator[Path]:
    return (path for path in sorted(SOURCES.iterdir()) if path.suffix in (".c", ".h"))


def _fingerprint(driver: str) -> str:
    digest = hashlib.sha256(_run([driver, "--version"]))
    digest.update("\0".join((driver, *_FLAGS, *_LINK_FLAGS)).encode())
    for source in _sources():
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:24]


def _compile(driver: str, made: Path) -> None:
    """Compile the shared library, and the archive for static links, whose runtime interposes nothing."""
    sources = [str(path) for path in _sources() if path.suffix == ".c"]
    _run([driver, *_FLAGS, "-shared", *_LINK_FLAGS, *sources, "-o", str(made / "libperfdiff.so"), "-ldl", "-lpthread"])
    joined = str(made / "perfdiff.o")
    objects = []
    for source in sources:
        objects.append(str(made / (Path(source).stem + ".o")))
        _run([driver, *_FLAGS, "-DPD_STATIC", "-c", source, "-o", objects[-1]])
    # One object, so that linking any part of the archive links its constructor too.
    _run([driver, "-r", "-nostdlib", *objects, "-o", joined])
    _run([_archiver(driver), "rcs", str(made / "libperfdiff.a"), joined])
    for built in (*objects, joined):
        Path(built).unlink()


def _archiver(driver: str) -> str:
    named = _run([driver, "-print-prog-name=ar"]).decode().strip()
    return named or "ar"


def _keep(made: Path, folder: Path) -> None:
    try:
        made.rename(folder)
    except OSError:
        if not folder.is_dir():  # else another process was first, with the same content
            raise


def _run(command: Sequence[str]) -> bytes:
    try:
        ended = subprocess.run(command, capture_output=True, check=False, timeout=_TIMEOUT_S)
    except OSError as error:
        raise BuildError(f"'{command[0]}' cannot be run: {error.strerror}", slug="compiler-not-found") from error
    except subprocess.TimeoutExpired as error:
        raise BuildError(f"'{command[0]}' did not end within {_TIMEOUT_S:.0f} s", slug="runtime-build-failed") from error
    if b"No space left on device" in ended.stderr:
        raise OSError(errno.ENOSPC, "No space left on device")
    if ended.returncode != 0:
        raise BuildError(
            f"'{command[0]}' exited {ended.returncode} while compiling perfdiff's runtime library",
            slug="runtime-build-failed",
            detail=ended.stderr.decode(errors="replace"),
        )
    return ended.stdout
