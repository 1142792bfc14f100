"""A folder of stand-ins for compilers, to be first on PATH during a build."""

from __future__ import annotations

import importlib.util
import marshal
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfdiff.build import wrapper

# With a target before it or a version behind it: `x86_64-linux-gnu-gcc`, `clang++-14`.
_COMPILER = re.compile(r"(?:[\w.+-]+-)?(?:cc|c89|c99|gcc|g\+\+|c\+\+|clang|clang\+\+)(?:-[\d.]+)?")
_CHOICES = ("CC", "CXX")


@dataclass(frozen=True, slots=True)
class ProbeFlags:
    """What compile and link commands of a probed build get: the header with the probes and the folder of the runtime.

    In a `counted` build every memory access and basic block calls the runtime, too.
    """

    header: Path
    runtime: Path
    counted: bool = False


@dataclass(frozen=True, slots=True)
class Masquerade:
    """The stand-ins of one build, and the environment in which they are found first."""

    folder: Path
    environment: Mapping[str, str]

    @property
    def calls(self) -> Path:
        """Return the folder of the records, one JSON file a compile."""
        return self.folder / "calls"


def set_up_masquerade(folder: Path, tree: Path, environment: Mapping[str, str], probes: ProbeFlags | None = None) -> Masquerade:
    """Write a stand-in for every compiler on PATH to `folder`/bin and return the environment to build `tree` with."""
    stand_ins = folder / "bin"
    stand_ins.mkdir(parents=True)
    (folder / "calls").mkdir()
    compiled = folder / "wrapper.pyc"
    compiled.write_bytes(_compiled_wrapper())
    for name in compilers_on_path(environment):
        words = [sys.executable, "-I", "-S", compiled, name, folder, tree.resolve()]
        words += [probes.header, probes.runtime, "counted" if probes.counted else ""] if probes else ["", "", ""]
        stand_in = stand_ins / name
        stand_in.write_text(f'#!/bin/sh\nexec {shlex.join(str(word) for word in words)} "$@"\n')
        stand_in.chmod(0o755)
    path = os.pathsep.join([str(stand_ins), *filter(None, [environment.get("PATH", "")])])
    chosen = {name: _by_name(environment[name], stand_ins) for name in _CHOICES if environment.get(name)}
    return Masquerade(folder, {**environment, **chosen, "PATH": path})


def _compiled_wrapper() -> bytes:
    """Return the wrapper as a `.pyc` file (PEP 552) that is never checked against its source; `py_compile` writes a part to a full disk."""
    code = compile(Path(wrapper.__file__).read_bytes(), wrapper.__file__, "exec", dont_inherit=True)
    unchecked_digest = (0b01).to_bytes(4, "little") + bytes(8)
    return importlib.util.MAGIC_NUMBER + unchecked_digest + marshal.dumps(code)


def compilers_on_path(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of all C and C++ compilers on PATH."""
    names: set[str] = set()
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        if Path(folder or ".").is_dir():
            names.update(entry.name for entry in os.scandir(folder or ".") if _COMPILER.fullmatch(entry.name) and os.access(entry, os.X_OK))
    return tuple(sorted(names))


def chosen_compilers(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the real C and C++ compilers that a build in this environment takes unless it is told otherwise."""
    path = environment.get("PATH", os.defpath)
    wanted = [_program(environment.get(choice, "")) or fallback for choice, fallback in zip(_CHOICES, ("cc", "c++"), strict=True)]
    found = [shutil.which(program, path=path) for program in wanted]
    return tuple(Path(program) for program in found if program)


def _program(command: str) -> str:
    """Return the compiler's part of a command such as `ccache clang -m32`."""
    return next((word for word in _words(command) if _COMPILER.fullmatch(Path(word).name)), "")


def _by_name(command: str, stand_ins: Path) -> str:
    """Return a command whose compilers are called by name, so that they are looked for on PATH."""
    words = (Path(word).name if (stand_ins / Path(word).name).exists() else word for word in _words(command))
    return shlex.join(words)


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # an open quote: no compiler has such a name
        return [command]
