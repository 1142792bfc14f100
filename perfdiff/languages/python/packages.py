"""Sets of installed packages: made once for an interpreter and a list of requirements, shared by all environments that ask for them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from perfdiff import locks, seals
from perfdiff.errors import BuildError, store_errors
from perfdiff.languages.python import bytecode, distributions, layout, pip
from perfdiff.languages.python.interpreters import Interpreter
from perfdiff.languages.python.layout import Layout
from perfdiff.languages.python.requirements import Requirements

_ENVIRONMENT, _LINES, _CONSTRAINTS, _LOG, _FINISHED = "venv", "requirements.txt", "constraints.txt", "pip.log", "finished"
# Variables of pip that decide which files it finds.
_KEYED = (
    "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_CONSTRAINT", "PIP_PRE", "PIP_NO_BINARY",
    "PIP_ONLY_BINARY",
)  # fmt: skip


def obtain(wanted: Requirements, interpreter: Interpreter, environment: Mapping[str, str], cache: Path) -> Layout:
    """Return an environment with what is wanted and all that it requires, made at the first call.

    It is not made again while it is kept, so that both revisions of a comparison run with the same versions. BuildError
    (`python-dependency`) with what pip says; StoreError.
    """
    folder = cache / _key(wanted, interpreter, environment)
    made = Layout(folder / _ENVIRONMENT, folder / _ENVIRONMENT / interpreter.site_packages)
    with store_errors(cache), _alone(folder):
        if not is_whole(folder):
            shutil.rmtree(folder, ignore_errors=True)
            _make(folder, wanted, interpreter, environment, cache)
    return made


def is_whole(folder: Path) -> bool:
    """Return whether a kept set is there as it was made; it counts as used now."""
    if not (folder / _FINISHED).is_file() or seals.broken(folder) is not None:
        return False
    with contextlib.suppress(OSError):  # only `prune` asks for its age
        os.utime(folder)
    return True


def _key(wanted: Requirements, interpreter: Interpreter, environment: Mapping[str, str]) -> str:
    asked = "\0".join(f"{name}={environment[name]}" for name in _KEYED if environment.get(name))
    parts = (interpreter.identity, "\n".join(sorted(wanted.lines)), "\n".join(sorted(wanted.constraints)), asked, wanted.but)
    return hashlib.sha256("\1".join(parts).encode(errors="surrogateescape")).hexdigest()[:24]


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes from making the same set."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locks.opened(folder.with_suffix(".lock")) as lock:
        locks.take(lock, alone=True)
        yield


def _make(folder: Path, wanted: Requirements, interpreter: Interpreter, environment: Mapping[str, str], cache: Path) -> None:
    made = layout.make(folder / _ENVIRONMENT, interpreter)
    pip.provide(made, interpreter, cache)
    (folder / _LINES).write_text("".join(f"{line}\n" for line in wanted.lines))
    (folder / _CONSTRAINTS).write_text("".join(f"{line}\n" for line in wanted.constraints))
    arguments = ["install", "--requirement", str(folder / _LINES), "--constraint", str(folder / _CONSTRAINTS)]
    _run(made, arguments, folder, environment, cache)
    if wanted.but in distributions.versions([made.site_packages], folder, folder):
        _run(made, ["uninstall", "--yes", wanted.but], folder, environment, cache)
    bytecode.compile_modules(made, [made.site_packages])
    seals.close(folder)
    (folder / _FINISHED).touch()


def _run(made: Layout, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], cache: Path) -> None:
    failed = pip.run(made, arguments, folder, {**environment, **pip.variables(cache)}, folder / _LOG)
    if failed is not None:
        said = [line.removeprefix("ERROR: ") for line in failed.splitlines() if line.startswith("ERROR: ")]
        raise BuildError(
            f"packages that are required cannot be installed: {said[-1] if said else 'pip failed'}; see that the index can be "
            "reached and has them for this interpreter, or name others in [python] requirements",
            slug="python-dependency",
            detail=failed,
        )
