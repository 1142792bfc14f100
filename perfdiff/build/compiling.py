"""The real compilers: which one a name stands for, what it is, and how it is run."""

# Part of the masquerade: importing pathlib or subprocess would take longer than all the rest.
# ruff: noqa: PTH100, PTH113, PTH118, PTH119

from __future__ import annotations

import os
import sys

_CACHES = frozenset(("ccache", "distcc", "icecc", "sccache", "colorgcc"))


def real_compiler(name: str, masquerade: str) -> tuple[str, str]:
    """Return the compiler of this name behind the masquerade on PATH, and that PATH; compiler caches are passed over."""
    folders = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.realpath(folder or ".") != masquerade]
    for folder in folders:
        path = os.path.join(os.path.abspath(folder or "."), name)
        if os.access(path, os.X_OK) and os.path.isfile(path) and os.path.basename(os.path.realpath(path)) not in _CACHES:
            return path, os.pathsep.join(folders)
    sys.stderr.write(f"{name}: not found\n")
    raise SystemExit(127)


def reason(errors: str) -> str:
    """Return the first error that the compiler told."""
    lines = [line for line in errors.splitlines() if line.strip()]
    return next((line.partition("error:")[2].strip() for line in lines if "error:" in line), lines[0] if lines else "no message")


def start(command: list[str], path: str, errors: int | None = None) -> int:
    """Start the real compiler with PATH `path`, its standard error on the descriptor `errors`; return its process id."""
    actions = [] if errors is None else [(os.POSIX_SPAWN_DUP2, errors, 2), (os.POSIX_SPAWN_CLOSE, errors)]
    return os.posix_spawn(command[0], command, {**os.environ, "PATH": path}, file_actions=actions)


def wait(process: int) -> int:
    """Wait for a compiler and return its status as a shell tells it: 128 and the signal where it was killed."""
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return status if status >= 0 else 128 - status


def run_captured(command: list[str], path: str) -> tuple[int, str]:
    """Run the real compiler and return its status and what it wrote to standard error."""
    reading, writing = os.pipe()
    process = start(command, path, writing)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8", errors="surrogateescape") as stream:
        errors = stream.read()
    return wait(process), errors


def names_clang(compiler: str, path: str) -> bool:
    """Return whether a compiler is clang, by the name of its file, else by what it says of itself, run with PATH `path`."""
    name = os.path.basename(os.path.realpath(compiler))
    if "clang" in name or "gcc" in name or "g++" in name:
        return "clang" in name
    reading, writing = os.pipe()
    output = [(os.POSIX_SPAWN_DUP2, writing, 1), (os.POSIX_SPAWN_CLOSE, writing)]
    process = os.posix_spawn(compiler, [compiler, "--version"], {**os.environ, "PATH": path}, file_actions=output)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8", errors="replace") as stream:
        version = stream.read()
    wait(process)
    return "clang" in version


def show(errors: str) -> None:
    """Write what a compiler wrote to its standard error to ours."""
    sys.stderr.buffer.write(errors.encode("utf-8", "surrogateescape"))
    sys.stderr.flush()
