"""What kind of machine this is for builds: all that a build depends on besides its key, so that another machine's can be run here.

Built trees name their own paths and the compilers and libraries that were found, and some are made for one processor (`-march=native`). So
two machines are of one kind only where all of that is the same, and what cannot be known to be the same counts as different.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import perfdiff
from perfdiff.build import compilers
from perfdiff.build.variants import build_environment
from perfdiff.errors import BuildError
from perfdiff.languages.kept_files import is_kept

Kind = dict[str, str]  # digests by what they are of, in words; variables are among them by their names

_CPUINFO, _RELEASE = Path("/proc/cpuinfo"), Path("/etc/os-release")
# Of a processor of x86 and of one of ARM; clock rates and caches are no part of it.
_PROCESSOR: tuple[str, ...] = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags")
_PROCESSOR += ("Features", "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision")
_HEADERS = ("/usr/include", "/usr/local/include")
_LIBRARIES = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64", "/usr/share/pkgconfig", "/lib", "/lib64")
# What a link or a configuration reads there; other files, such as caches that each installation makes anew, are no part of a build.
_LINKED = re.compile(r"\.(?:so|a|o|h|hh|hpp|pc|cmake|la|specs?)(?:\.|$)")
# Of the session and of the machine's name, not of what is built.
# fmt: off
_OF_SESSION = frozenset((
    "_", "SHLVL", "HOSTNAME", "HOST", "TERM", "COLUMNS", "LINES", "DISPLAY", "LS_COLORS", "TMPDIR", "INVOCATION_ID", "JOURNAL_STREAM",
    "SYSTEMD_EXEC_PID", "DBUS_SESSION_BUS_ADDRESS", "WINDOWID", "STY", "TMUX", "TMUX_PANE",
))
# fmt: on
_OF_SESSION_PREFIXES = ("SSH_", "XDG_SESSION_", "XDG_RUNTIME_", "SLURM_", "DASK_", "__DASK_")


def kind(cache: Path, environment: Mapping[str, str]) -> Kind:
    """Return the kind of this machine for builds in a cache folder and an environment; raise BuildError where there is no compiler."""
    build = build_environment(environment)
    path = build.get("PATH", os.defpath).split(os.pathsep)
    return {
        "perfdiff": _digest([perfdiff.__version__, platform.python_version(), sys.executable, str(Path(sys.executable).resolve())]),
        "cache folder": _digest([str(cache), str(cache.resolve())]),
        "processor": _digest([platform.machine(), *_processor()]),
        "system": _digest([platform.release(), *platform.libc_ver(), _text(_RELEASE)]),
        "compilers": _digest([compilers.identity(build)]),
        "programs": _digest(entry for folder in path for entry in _entries(folder or ".", below=False)),
        "headers": _digest(entry for folder in _HEADERS for entry in _entries(folder)),
        "libraries": _digest(entry for folder in _LIBRARIES for entry in _entries(folder, only=_LINKED)),
        **{name: _digest([value]) for name, value in sorted(build.items()) if not _is_of_session(name)},
    }


def kind_of(cache: Path, environment: Mapping[str, str]) -> Kind | None:
    """Return the kind of this machine, None where nothing can be built."""
    try:
        return kind(cache, environment)
    except BuildError:
        return None


def differences(kind: Kind, other: Kind) -> tuple[str, ...]:
    """Return the differences between two kinds, in words."""
    return tuple(name for name in kind | other if kind.get(name) != other.get(name))


def _is_of_session(name: str) -> bool:
    return name in _OF_SESSION or name.startswith(_OF_SESSION_PREFIXES)


def _processor() -> Iterator[str]:
    """Yield what the kernel tells of the processors, once each: programs can be built for their instructions."""
    yield from dict.fromkeys(line for line in _text(_CPUINFO).splitlines() if line.partition(":")[0].strip() in _PROCESSOR)


def _entries(folder: str, *, only: re.Pattern[str] | None = None, below: bool = True) -> Iterator[str]:
    """Yield the files of a folder: links with where they lead, others with size and time, which an installed package's files share."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        try:
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                content = str(Path(entry.path).readlink())
            else:
                content = f"{status.st_size} {status.st_mtime_ns} {status.st_mode}"
        except OSError:
            continue
        if entry.is_dir(follow_symlinks=False):
            if below and not is_kept(entry.name):
                yield from _entries(entry.path, only=only)
        elif only is None or only.search(entry.name):
            yield f"{entry.path} {content}"


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _digest(parts: Iterable[str]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        encoded = part.encode(errors="surrogateescape")
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()
