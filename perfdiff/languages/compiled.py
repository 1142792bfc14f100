"""What perfdiff compiles for a target, once, and keeps by content."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from perfdiff import seals, temporary
from perfdiff.errors import BuildError, StoreError

_C_DRIVERS = (("clang++", "clang"), ("g++", "gcc"), ("c++", "cc"))
_TIMEOUT_S = 120.0
FLAGS = ("-D_GNU_SOURCE", "-O2", "-g", "-fPIC", "-fvisibility=hidden", "-fno-omit-frame-pointer", "-Wall", "-Wextra")
MODULE_FLAGS = ("-std=gnu11", *FLAGS, "-Wno-missing-field-initializers")  # of what engines of other languages load


def kept(cache: Path, name: str, make: Callable[[Path], object]) -> Path:
    """Return the folder `name` of the cache; at the first call `make` fills it.

    Equal requests share it, from two processes at once too. One that is not as it was made is made again.
    Raises StoreError where `cache` cannot be written, and what `make` raises.
    """
    folder = cache / name
    if folder.is_dir() and seals.broken(folder) is None:
        with contextlib.suppress(OSError):  # its age is the time since it was used
            os.utime(folder)
        return folder
    try:
        if folder.is_dir():
            shutil.rmtree(folder)
        cache.mkdir(parents=True, exist_ok=True)
        with temporary.folder(f"{name}-", within=cache) as room:
            draft = room / "made"
            draft.mkdir()
            make(draft)
            seals.close(draft)
            _keep(draft, folder)
    except OSError as error:
        raise StoreError.about(cache, error) from error
    return folder


def c_driver(compiler: str) -> str:
    """Return the C driver beside a C++ one; a compiler without a known sibling compiles C by `-x c`."""
    path = Path(shutil.which(compiler) or compiler)
    for cplusplus, c in _C_DRIVERS:
        if cplusplus in path.name:
            sibling = path.with_name(path.name.replace(cplusplus, c))
            return str(sibling) if sibling.exists() else str(path)
    return str(path)


def fingerprint(driver: str | None, words: object, sources: Iterable[Path]) -> str:
    """Return a digest of what a compiler is told, in `words`, and of the files that it is given; raise BuildError where it does not run."""
    digest = hashlib.sha256(identity(driver) if driver else b"")
    digest.update(repr(words).encode())
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:24]


def identity(driver: str) -> bytes:
    """Return what tells a compiler from others, whichever of its names it is called by."""
    version = run([driver, "--version"]).partition(b" ")[2]  # behind the name that it was called by
    return os.fsencode(Path(driver).resolve()) + b"\0" + version


def compile_module(compiling: Sequence[str], sources: Iterable[Path], options: Sequence[str], module: Path) -> None:
    """Make a module of the C files among `sources`; `options` stand behind the files, as libraries must."""
    with temporary.folder("objects-", within=module.parent) as room:
        objects = {source: str(room / f"{number}.o") for number, source in enumerate(sources) if source.suffix == ".c"}
        compile_each([*compiling, *options], objects)
        run([*compiling, "-shared", *objects.values(), "-o", str(module), *options])


def compile_each(compiling: Sequence[str], objects: Mapping[Path, str]) -> None:
    """Compile C files to their objects, on all cores; `compiling` is the compiler with its options."""
    commands = ([*compiling, "-c", str(source), "-o", target] for source, target in objects.items())
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(run, commands))


def run(command: Sequence[str]) -> bytes:
    """Return the output of a compiler or one of its tools; raise BuildError if it fails, OSError if the disk is full."""
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


def _keep(draft: Path, folder: Path) -> None:
    try:
        draft.rename(folder)
    except OSError:
        if not folder.is_dir():  # else another process was first, with the same content
            raise
