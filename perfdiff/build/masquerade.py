"""A folder of stand-ins for compilers, to be first on PATH during a build."""

from __future__ import annotations

import importlib.util
import marshal
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfdiff.build import compilers, wrapper


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

    @property
    def links(self) -> Path:
        """Return the folder of what is known of links, one JSON file each; empty but in a plain build."""
        return self.folder / "links"


def set_up_masquerade(folder: Path, tree: Path, environment: Mapping[str, str], probes: ProbeFlags | None = None) -> Masquerade:
    """Write a stand-in for every compiler on PATH to `folder`/bin and return the environment to build `tree` with."""
    stand_ins = folder / "bin"
    stand_ins.mkdir(parents=True)
    for records in ("calls", "links"):
        (folder / records).mkdir()
    compiled = folder / "wrapper.pyc"
    compiled.write_bytes(_compiled_wrapper())
    for name in compilers.on_path(environment):
        words = [sys.executable, "-I", "-S", compiled, name, folder, tree.resolve()]
        words += [probes.header, probes.runtime, "counted" if probes.counted else ""] if probes else ["", "", ""]
        stand_in = stand_ins / name
        stand_in.write_text(f'#!/bin/sh\nexec {shlex.join(str(word) for word in words)} "$@"\n')
        stand_in.chmod(0o755)
    path = os.pathsep.join([str(stand_ins), *filter(None, [environment.get("PATH", "")])])
    chosen = {name: _by_name(environment[name], stand_ins) for name in compilers.VARIABLES if environment.get(name)}
    return Masquerade(folder, {**environment, **chosen, "PATH": path})


def _compiled_wrapper() -> bytes:
    """Return the wrapper as a `.pyc` file (PEP 552) that is never checked against its source; `py_compile` writes a part to a full disk."""
    code = compile(Path(wrapper.__file__).read_bytes(), wrapper.__file__, "exec", dont_inherit=True)
    unchecked_digest = (0b01).to_bytes(4, "little") + bytes(8)
    return importlib.util.MAGIC_NUMBER + unchecked_digest + marshal.dumps(code)


def _by_name(command: str, stand_ins: Path) -> str:
    """Return a command whose compilers are called by name, so that they are looked for on PATH."""
    return shlex.join(Path(word).name if (stand_ins / Path(word).name).exists() else word for word in compilers.words(command))
