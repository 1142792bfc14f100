"""What can be measured on this machine, what is missing, and what to do about it."""

from __future__ import annotations

import itertools
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath

from perfdiff import units
from perfdiff.build import compilers
from perfdiff.build.cache import claim
from perfdiff.collect.hosts import counters, machine, servicehost
from perfdiff.collect.hosts.counters import Library
from perfdiff.collect.hosts.machine import Pmu
from perfdiff.config import ASSIGNMENT, Config
from perfdiff.errors import RevisionError, StoreError
from perfdiff.languages.check import Check, refused
from perfdiff.languages.installed import installed, loaded
from perfdiff.revisions.repository import find_repository

# A build tree, its probed copies and the recordings of a middle-sized project; less room rarely lasts for one comparison.
_FREE_BYTES = 2e9
# Other processes on more than this share of the cores stretch times; interleaving helps, but more runs are needed.
_BUSY_SHARE = 0.5
_CHECKOUT = "checkout"


def examine(cache: Path, variables: Mapping[str, str], project: Path, config: Config | None = None) -> tuple[Check, ...]:
    """Look at this machine; `variables` are the user's, for PATH and CC. Nothing is changed but the cache folder, which is made.

    `config` is that of the folder `project`, which tells what the programs there are written in.
    """
    library = counters.library()
    return (
        Check("python", needed=True, found=True, says=f"{sys.version.split()[0]} at {sys.executable}"),
        _git(variables),
        *_compilers(variables),
        *_build_tools(variables),
        _cache_writable(cache),
        *(_checkout(project) if config else ()),
        *_languages(config, project, cache, variables),
        *servicehost.examine(config, project, cache, variables),
        *(_workloads(config, project, variables) if config else ()),
        _cache_room(cache),
        _clock(),
        _counters(),
        _papi(library),
        _sde(library),
        _software_pmu(variables),
        _cores(),
        _load(),
        _governor(),
    )


def can_compare(checks: tuple[Check, ...]) -> bool:
    """Return whether all that is needed is there."""
    return all(check.found for check in checks if check.needed)


def has_checkout(checks: tuple[Check, ...]) -> bool:
    """Return whether the folder that was looked at is one to compare revisions in."""
    return all(check.found for check in checks if check.name == _CHECKOUT)


def _checkout(project: Path) -> Iterator[Check]:
    try:
        repository = find_repository(project)
    except RevisionError as error:
        if error.slug != "no-git":  # which is told by itself
            yield refused(_CHECKOUT, error, "", is_needed=False)
        return
    yield Check(_CHECKOUT, needed=False, found=True, says=str(repository.top or repository.git_dir))


def _workloads(config: Config, project: Path, variables: Mapping[str, str]) -> Iterator[Check]:
    """Yield whether what commands of workloads start is there, as far as that shows before anything is built.

    That is a program on PATH, with the script behind it. One of a path may be what the build makes.
    """
    for workload in config.workloads:
        words = _words(workload.command) if not (workload.suite or workload.requests) else []
        if not words or "/" in words[0]:
            continue
        script = next((word for word in words[1:2] if PurePath(word).suffix and "{" not in word and not word.startswith("-")), None)
        is_on_path = subprocess.run(["/bin/sh", "-c", 'command -v "$1"', "sh", words[0]], env=variables, capture_output=True, check=False)
        lacking = words[0] if is_on_path.returncode else script if script and not (project / script).exists() else None
        says = f"`{workload.command}`" if lacking is None else f"`{workload.command}`: there is no {lacking}"
        remedy = "correct the command of the workload, unless the build makes what is missing"
        yield Check(f"workload {workload.name}", needed=False, found=lacking is None, says=says, remedy=remedy)


def _words(command: str) -> list[str]:
    """Return the words of a command behind variables that it sets; none where a quotation is not closed, as the shell will say."""
    try:
        return [*itertools.dropwhile(ASSIGNMENT.match, shlex.split(command))]
    except ValueError:
        return []


def _git(variables: Mapping[str, str]) -> Check:
    path = shutil.which("git", path=variables.get("PATH"))
    return Check("git", needed=True, found=path is not None, says=path or "not on PATH", remedy="install git (Debian: apt-get install git)")


def _compilers(variables: Mapping[str, str]) -> Iterator[Check]:
    for_c = "install gcc or clang (Debian: apt-get install gcc libc6-dev), or set CC to one on PATH"
    for_cplusplus = "for C++ projects install g++ or clang++, or set CXX to one on PATH"
    for language, needed, remedy in (("c", True, for_c), ("c++", False, for_cplusplus)):
        compiler = compilers.chosen(variables, language=language)
        says = f"{compilers.version(compiler, variables)} at {compiler}" if compiler else "none on PATH"
        yield Check(f"{language.upper()} compiler", needed=needed, found=compiler is not None, says=says, remedy=remedy)


def _languages(config: Config | None, project: Path, cache: Path, variables: Mapping[str, str]) -> Iterator[Check]:
    """Yield what the programs of each language need; nothing of it is needed where the project has none in that language."""
    for traits in installed():
        if traits.host is not None:
            yield from loaded(traits.host)(config.languages.get(traits.name) if config else None, project, cache, variables)


def _build_tools(variables: Mapping[str, str]) -> Iterator[Check]:
    for name in ("make", "cmake", "ninja", "meson", "autoconf", *(tool for traits in installed() for tool in traits.building.tools)):
        path = shutil.which(name, path=variables.get("PATH"))
        remedy = f"install {name} if a project is built with it"
        yield Check(name, needed=False, found=path is not None, says=path or "not on PATH", remedy=remedy)


def _cache_writable(cache: Path) -> Check:
    try:
        claim(cache)
        writable = os.access(cache, os.W_OK | os.X_OK)
        says = str(cache) if writable else f"{cache} is read-only"
    except OSError as error:
        writable, says = False, f"{cache} cannot be made: {error.strerror}"
    except StoreError as error:
        writable, says = False, str(error)
    return Check("cache", needed=True, found=writable, says=says, remedy="choose another folder with --cache or PERFDIFF_CACHE")


def _cache_room(cache: Path) -> Check:
    folder = next(folder for folder in (cache, *cache.parents) if folder.exists())
    free = shutil.disk_usage(folder).free
    remedy = "free some space, run `perfdiff cache prune`, or choose another folder with --cache"
    return Check("free space", needed=False, found=free >= _FREE_BYTES, says=f"{units.size(free)} at {folder}", remedy=remedy)


def _clock() -> Check:
    invariant = machine.has_invariant_counter()
    remedy = "times are taken from clock_gettime, which costs more a call; short functions are sampled more thinly"
    return Check("clock", needed=False, found=invariant, says=machine.clock(), remedy=remedy)


def _counters() -> Check:
    match machine.pmu():
        case Pmu.PRESENT:
            return Check("hardware counters", needed=False, found=True, says="instructions can be counted")
        case Pmu.FORBIDDEN:
            says, remedy = "perf_event_open is not permitted", counters.PERMIT
        case Pmu.ABSENT:
            says, remedy = "this machine has no PMU", counters.NO_PMU
    return Check("hardware counters", needed=False, found=False, says=says, remedy=remedy)


def _papi(library: Library) -> Check:
    says = f"PAPI {library.version}; `perfdiff counters` tries its events" if library.version else library.trouble
    remedy = f"only for counters of hardware and of the program itself: {counters.INSTALL_PAPI}"
    return Check("libpapi", needed=False, found=library.version is not None, says=says, remedy=remedy)


def _sde(library: Library) -> Check:
    remedy = f"only for counters of the program itself: {counters.INSTALL_SDE}"
    return Check("libsde", needed=False, found=library.sde, says="loads" if library.sde else "not installed", remedy=remedy)


def _software_pmu(variables: Mapping[str, str]) -> Check:
    compiler = compilers.chosen(variables)
    is_able = compiler is not None and machine.counts_in_software(compiler)
    says = "the compiler can build for it" if is_able else f"no compiler builds with {' '.join(machine.SOFTWARE_PMU_FLAGS)}"
    remedy = "for exact counts without hardware install gcc 12 or clang 14, or a later one"
    return Check("software PMU", needed=False, found=is_able, says=says, remedy=remedy)


def _cores() -> Check:
    cores = len(os.sched_getaffinity(0))
    remedy = "with one core everything else on the machine disturbs the runs; expect wide intervals"
    return Check("cores", needed=False, found=cores > 1, says=f"{cores}, {machine.cpu()}", remedy=remedy)


def _load() -> Check:
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    remedy = "stop other work, or give perfdiff more time (measure.budget_s)"
    return Check("load", needed=False, found=load <= _BUSY_SHARE * cores, says=f"{load:.2f} over the last minute", remedy=remedy)


def _governor() -> Check:
    governor = machine.governor()
    says = governor or "not told by the kernel, as in most virtual machines"
    remedy = "cpupower frequency-set -g performance as root steadies the clock of the cores"
    return Check("governor", needed=False, found=governor in (None, "performance"), says=says, remedy=remedy)
