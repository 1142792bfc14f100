"""Sets of installed packages: made once for an interpreter and a list of requirements, shared by all environments that ask for them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from perfdiff import locks, seals
from perfdiff.errors import BuildError, store_errors
from perfdiff.languages.python import bytecode, distributions, layout, pip
from perfdiff.languages.python.interpreters import Interpreter
from perfdiff.languages.python.layout import Layout
from perfdiff.languages.python.requirements import Requirements

_ENVIRONMENT, _LINES, _CONSTRAINTS, _LOG, _FINISHED = "venv", "requirements.txt", "constraints.txt", "pip.log", "finished"
_LEFT_OUT = "left-out.txt"
# That an attempt to install optional requirements may take, and all of them together: what is compiled for longer is not waited for.
_OPTIONAL_S = 300.0
# Variables of pip that decide which files it finds.
_KEYED = (
    "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_CONSTRAINT", "PIP_PRE", "PIP_NO_BINARY",
    "PIP_ONLY_BINARY",
)  # fmt: skip


def obtain(wanted: Requirements, interpreter: Interpreter, environment: Mapping[str, str], cache: Path) -> Layout:
    """Return an environment with what is wanted and all that it requires, made at the first call; what is optional may be missing.

    It is not made again while it is kept, so that both revisions of a comparison run with the same versions. BuildError
    (`python-dependency`) with what pip says; StoreError.
    """
    folder = cache / _key(wanted, interpreter, environment)
    venv = Layout(folder / _ENVIRONMENT, folder / _ENVIRONMENT / interpreter.site_packages)
    with store_errors(cache), _alone(folder):
        if not is_whole(folder):
            shutil.rmtree(folder, ignore_errors=True)
            _make(folder, wanted, interpreter, environment, cache)
    return venv


def left_out(shared: Layout) -> tuple[str, ...]:
    """Return the optional requirements that could not be installed into a kept set."""
    file = shared.folder.parent / _LEFT_OUT
    return tuple(file.read_text().splitlines()) if file.is_file() else ()


def is_whole(folder: Path) -> bool:
    """Return whether a kept set of packages is complete and undamaged; if so, it counts as used now."""
    if not (folder / _FINISHED).is_file() or seals.broken(folder) is not None:
        return False
    with contextlib.suppress(OSError):  # only `prune` asks for its age
        os.utime(folder)
    return True


def _key(wanted: Requirements, interpreter: Interpreter, environment: Mapping[str, str]) -> str:
    asked = "\0".join(f"{name}={environment[name]}" for name in _KEYED if environment.get(name))
    parts = (interpreter.identity, "\n".join(sorted(wanted.lines)), "\n".join(sorted(wanted.constraints)), asked, wanted.but)
    optional = ["\n".join(sorted(wanted.optional))] if wanted.optional else []
    return hashlib.sha256("\1".join([*parts, *optional]).encode(errors="surrogateescape")).hexdigest()[:24]


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes from making the same set."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locks.opened(folder.with_suffix(".lock")) as lock:
        locks.take(lock, alone=True)
        yield


def _make(folder: Path, wanted: Requirements, interpreter: Interpreter, environment: Mapping[str, str], cache: Path) -> None:
    venv = layout.make(folder / _ENVIRONMENT, interpreter)
    pip.provide(venv, interpreter, cache)
    (folder / _CONSTRAINTS).write_text("".join(f"{line}\n" for line in wanted.constraints))

    def install(lines: Sequence[str], timeout_s: float = pip.TIMEOUT_S) -> None:
        (folder / _LINES).write_text("".join(f"{line}\n" for line in lines))
        arguments = ["install", "--requirement", str(folder / _LINES), "--constraint", str(folder / _CONSTRAINTS)]
        _run(venv, arguments, folder, environment, cache, timeout_s=timeout_s)

    if wanted.optional:
        missing = _install_all(install, wanted)
        (folder / _LEFT_OUT).write_text("".join(f"{line}\n" for line in missing))
    else:
        install(wanted.lines)
    if wanted.but in distributions.versions([venv.site_packages], folder, folder):
        _run(venv, ["uninstall", "--yes", wanted.but], folder, environment, cache)
    bytecode.compile_modules(venv, [venv.site_packages])
    seals.close(folder)
    (folder / _FINISHED).touch()


def _install_all(install: Callable[..., None], wanted: Requirements) -> list[str]:
    """Install what is wanted, and of what is optional all that can be; return what cannot. Raises BuildError where that is wanted.

    Where not all of it can, halves are tried, and halves of these: one that fails among many costs few attempts.
    """
    until = time.monotonic() + _OPTIONAL_S
    try:
        install([*wanted.lines, *wanted.optional], _OPTIONAL_S)
    except BuildError:
        if wanted.lines:
            install(wanted.lines)
    else:
        return []
    installed, missing, parts = list(wanted.lines), list[str](), _halves(wanted.optional)
    while parts:
        part, *parts = parts
        try:
            install([*installed, *part], until - time.monotonic())
        except BuildError:
            if len(part) == 1 or time.monotonic() > until:
                missing += part
            else:
                parts = [*_halves(part), *parts]
        else:
            installed += part
    return missing


def _halves(lines: Sequence[str]) -> list[list[str]]:
    middle = len(lines) // 2
    return [part for part in (list(lines[:middle]), list(lines[middle:])) if part]


def _run(  # noqa: PLR0913 (how long it may take is said of one of its uses)
    venv: Layout,
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    cache: Path,
    *,
    timeout_s: float = pip.TIMEOUT_S,
) -> None:
    failed = pip.run(venv, arguments, folder, {**environment, **pip.variables(cache)}, folder / _LOG, timeout_s=timeout_s)
    if failed is not None:
        said = [line.removeprefix("ERROR: ") for line in failed.splitlines() if line.startswith("ERROR: ")]
        raise BuildError(
            f"packages that are required cannot be installed: {said[-1] if said else 'pip failed'}; see that the index can be "
            "reached and has them for this interpreter, or name others in [python] requirements",
            slug="python-dependency",
            detail=failed,
        )
