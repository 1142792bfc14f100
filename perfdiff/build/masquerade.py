"""A folder of stand-ins for compilers, to be first on PATH during a build."""

from __future__ import annotations

import importlib.util
import marshal
import os
import shlex
import shutil
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import perfdiff
from perfdiff.build import calls, compilers

# Runs the wrapper in a bare interpreter, from the folder that stands first among its arguments.
_START = """\
import sys
sys.path.insert(0, sys.argv[2])
from perfdiff.build.calls import Build
from perfdiff.build.wrapper import main
sys.exit(main(sys.argv[1], Build(*sys.argv[2:7]), sys.argv[7:]))
"""
# Tools that read what was compiled, so that a build may make something of it: which files these were is written down.
_READERS = ("nm", "objcopy", "objdump", "readelf", "strings", "size", "xxd", "od", "hexdump", "base64")
_LOOK = """\
#!/bin/sh
{{ printf 'in %s\\n' "$PWD"; printf '%s\\n' "$@"; readlink /proc/self/fd/0; }} >> {looks}-$$ 2> /dev/null
exec {real} "$@"
"""
# The wrapper, and what it imports.
_BUILD = (f"build/{name}" for name in ("wrapper", "calls", "compiling", "additions", "made", "placing", "recording", "reuse"))
_MODULES = (*_BUILD, "languages/c/driver")


class FlagKind(StrEnum):
    """What a build adds to compile and link commands."""

    PROBED = calls.PROBED
    SURVEYED = calls.SURVEYED  # probes are calls, and none is inline
    COUNTED = calls.COUNTED  # the same; every memory access and basic block calls the runtime, too
    PLACED = calls.PLACED  # the compilers' own counters of lines, and no probes
    PLACED_IN_THREADS = calls.PLACED_IN_THREADS  # the same, where several threads may count at once


@dataclass(frozen=True, slots=True)
class Plain:
    """The plain builds, whose objects serve where nothing is added to a unit: the masquerade's folders of this side's and the other's.

    Where there is no `other`, all units are compiled. `line_files` are the names of the files whose lines a placed build counts, None for
    all. `used` are the files of this side's tree that runs use of all that was built, none where that is not known. `probed` are the files
    of either side that carry probes.
    """

    folder: Path
    other: Path | None
    line_files: Collection[str] | None = None
    used: frozenset[str] = frozenset()
    probed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Flags:
    """What compile and link commands get in a build that is not plain: the header with the probes, if any, and the runtime's folder.

    Objects of the `plain` builds serve where they are what compiling would give.
    """

    header: Path | None
    runtime: Path
    kind: FlagKind = FlagKind.PROBED
    plain: Plain | None = None


@dataclass(frozen=True, slots=True)
class Partner:
    """The build of the other side, which may be there, or not yet: its masquerade's folder.

    `claims` is a folder of locks where both are made at the same time.
    """

    folder: Path
    claims: Path | None = None


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

    @property
    def began(self) -> Path:
        """Return the file that is written when a build begins, with checksums of its environment."""
        return self.folder / "environment"


def set_up_masquerade(  # noqa: PLR0913, PLR0917 (what a build is made in, and of)
    folder: Path,
    tree: Path,
    environment: Mapping[str, str],
    flags: Flags | None = None,
    partner: Partner | None = None,
    earlier: Iterable[Path] | None = None,
) -> Masquerade:
    """Write a stand-in for every compiler on PATH to `folder`/bin and return the environment to build `tree` with.

    Objects of the `partner`, and of builds whose masquerades are `earlier` ones, serve where they are what compiling would give. Where
    neither is given, and no list of earlier ones, this build's serve no other.
    """
    stand_ins = folder / "bin"
    stand_ins.mkdir(parents=True)
    for records in ("calls", "links", "linked", "steps", "looks"):
        (folder / records).mkdir()
    if partner is not None:
        (folder / "partner").write_bytes(os.fsencode(f"{partner.folder.resolve()}\n{partner.claims or ''}\n"))
    if earlier is not None:
        (folder / "earlier").write_bytes(os.fsencode("".join(f"{place.resolve()}\n" for place in earlier)))
    if flags is not None and flags.plain is not None and flags.plain.other is not None:
        _write_plain(folder, flags.plain.folder, flags.plain.other, flags.plain.line_files)
    for module in _MODULES:
        _lay_out(module, folder)
    added = (str(flags.header or ""), str(flags.runtime), flags.kind) if flags else ("", "", calls.PLAIN)
    for name in (*compilers.on_path(environment), *compilers.archivers_on_path(environment)):
        stand_in = stand_ins / name
        stand_in.write_bytes(os.fsencode(f'#!/bin/sh\nexec {shlex.join(_standing_in(name, folder, tree, *added))} "$@"\n'))
        stand_in.chmod(0o755)
    for name in _READERS:
        if real := shutil.which(name, path=environment.get("PATH", os.defpath)):
            (stand_ins / name).write_bytes(os.fsencode(_LOOK.format(looks=shlex.quote(f"{folder}/looks/{name}"), real=shlex.quote(real))))
            (stand_ins / name).chmod(0o755)
    path = os.pathsep.join([str(stand_ins), *filter(None, [environment.get("PATH", "")])])
    chosen = {name: _by_name(environment[name], stand_ins) for name in compilers.VARIABLES if environment.get(name)}
    return Masquerade(folder, {**environment, **chosen, "PATH": path})


def untouched(name: str, folder: Path, tree: Path) -> list[str]:
    """Return the words that stand in for a compiler where a unit of a variant is compiled with nothing but an alignment added to it."""
    return _standing_in(name, folder, tree, "", "", calls.UNTOUCHED)


def _standing_in(name: str, folder: Path, tree: Path, *added: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", _START, name, str(folder), str(tree.resolve()), *added]


def _write_plain(folder: Path, plain: Path, other: Path, line_files: Collection[str] | None) -> None:
    (folder / "plain").write_bytes(os.fsencode(f"{plain.resolve()}\n{other.resolve()}\n"))
    if line_files is not None:
        (folder / "line-files").write_bytes(os.fsencode("\n".join(sorted(line_files))))


def _lay_out(module: str, folder: Path) -> None:
    """Write a module as a `.pyc` file (PEP 552) that is never checked against its source; `py_compile` writes a part to a full disk."""
    source = Path(perfdiff.__file__).parent / f"{module}.py"
    compiled = folder / "perfdiff" / f"{module}.pyc"
    compiled.parent.mkdir(parents=True, exist_ok=True)
    code = compile(source.read_bytes(), str(source), "exec", dont_inherit=True)
    unchecked_digest = (0b01).to_bytes(4, "little") + bytes(8)
    compiled.write_bytes(importlib.util.MAGIC_NUMBER + unchecked_digest + marshal.dumps(code))


def _by_name(command: str, stand_ins: Path) -> str:
    """Return a command whose compilers are called by name, so that they are looked for on PATH."""
    return shlex.join(Path(word).name if (stand_ins / Path(word).name).exists() else word for word in compilers.words(command))
