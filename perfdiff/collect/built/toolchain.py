"""What the measured programs are made of: the flags that they were compiled with, and the libraries that they load."""

from __future__ import annotations

import platform
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from perfdiff.build.built import Built
from perfdiff.config import WorkloadConfig, program
from perfdiff.languages.matching import FLAGS
from perfdiff.languages.protocol import Program
from perfdiff.records.schema import Side

_MOST_SETS = 3  # of flags, by how many files have them; a project has one or two
_ELF = b"\x7fELF"
_LOADED = re.compile(r"^\s*(\S+) => (/\S+) \(", re.MULTILINE)
_LDD_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Toolchain:
    """Flags that decide what code is made, the most frequent first, and the shared libraries of the workloads' programs."""

    flags: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()


def look(
    programs: Mapping[Side, Program], built: Mapping[Side, Built], workloads: Iterable[WorkloadConfig], environment: Mapping[str, str]
) -> Toolchain:
    """Return the compilers, flags and libraries of the sides; the libraries are those of the last side."""
    by_side = {side: tuple(_flags(program)) for side, program in programs.items()}
    alike = len(set(by_side.values())) == 1
    flags = [said if alike else f"{side}: {said}" for side, flags_of_side in by_side.items() for said in flags_of_side]
    last = built[list(built)[-1]]
    return Toolchain(tuple(dict.fromkeys(flags)), tuple(sorted(set(_libraries(_programs(last.folder, workloads), environment)))))


def _flags(program: Program) -> Iterator[str]:
    files = Counter(declaration.summary for key, declaration in program.declarations.items() if key.startswith(FLAGS))
    for summary, count in files.most_common(_MOST_SETS):
        yield f"{summary} ({count:,} {'file' if count == 1 else 'files'})"
    if len(files) > _MOST_SETS:
        yield f"and {len(files) - _MOST_SETS:,} other sets of flags"


def _programs(folder: Path, workloads: Iterable[WorkloadConfig]) -> Iterator[Path]:
    """Yield the workloads' own programs, as far as they are programs and no scripts."""
    for workload in workloads:
        try:
            path = folder / program(workload.command)
        except ValueError:  # the shell may read it all the same
            continue
        if path.is_file() and is_elf(path):
            yield path


def is_elf(path: Path) -> bool:
    """Return whether a file is a program or a library of ELF; raise OSError where it cannot be read."""
    with path.open("rb") as opened:
        return opened.read(len(_ELF)) == _ELF


def _libraries(programs: Iterable[Path], environment: Mapping[str, str]) -> Iterator[str]:
    """Yield each library with the file behind its name, which often tells the version."""
    for path in set(programs):
        try:
            answer = subprocess.run(
                ["ldd", str(path)],
                env={**environment, "LC_ALL": "C"},
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_LDD_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        for name, target in _LOADED.findall(answer.stdout):
            file = Path(target).resolve().name
            version = " ".join(platform.libc_ver()).strip() if name.startswith("libc.so") else file
            yield name if version in ("", name) else f"{name} ({version})"
