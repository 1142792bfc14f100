"""What a build is asked for: a revision, a variant, and what is inserted for it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import perfdiff
from perfdiff.build.masquerade import FlagKind, Partner, Plain
from perfdiff.config import BuildConfig
from perfdiff.languages.installed import installed
from perfdiff.languages.protocol import Workplace
from perfdiff.records.schema import Phase, Side
from perfdiff.revisions.overlay import overlay_digest
from perfdiff.revisions.pins import Pin

# Left by a caller's make, git or loader; a build must not inherit them. PERFDIFF_* steers probed programs.
_DISTURBING = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES", "LD_PRELOAD", "PWD", "OLDPWD")
_DISTURBING_PREFIXES = ("GIT_", "PERFDIFF_")
# A compiler cache would answer without compiling, and would keep objects with probes for the user's own builds.
_SETTINGS = {
    "LC_ALL": "C",
    "CCACHE_DISABLE": "1",
    "SCCACHE_RECACHE": "1",
    "DISTCC_HOSTS": "localhost",
    "SOURCE_DATE_EPOCH": "315532800",  # `__DATE__` is the same on both sides: 1980-01-01, the first day that zip files know
}
# What changes the result of a build; PATH does not count, the compilers found on it do.
# fmt: off
_KEYED = (
    "CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "LDLIBS", "LIBS", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH",
    "LIBRARY_PATH", "PKG_CONFIG_PATH", "CMAKE_PREFIX_PATH", "CMAKE_GENERATOR", "CMAKE_BUILD_TYPE", "SOURCE_DATE_EPOCH",
    *(name for traits in installed() for name in traits.building.variables),
)
# fmt: on


@dataclass(frozen=True, slots=True)
class Instrumentation:
    """The changes that make another variant of the plain build.

    `insert` writes the probes into the sources of a fresh tree (its root is given) and returns the header that is included ahead of
    every translation unit; it is None where nothing is inserted. `digest` stands for the text it will insert. `runtime` is a folder with
    the libraries and `perfdiff_probe.h`. `kind` is what compile and link commands get. Units to which nothing is added are taken from the
    `plain` builds.
    """

    digest: str
    insert: Callable[[Path], Path] | None
    runtime: Path
    kind: FlagKind = FlagKind.PROBED
    plain: Plain | None = None


_BEFORE_CHOICE = frozenset((Phase.PLAIN, Phase.SURVEY))  # builds in which cases are listed, and calls are counted to choose among them


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """One variant of one side. `environment` is the user's; `instrumentation` is None for the plain variant alone.

    `workplace` is laid beside the tree before the command runs; where there is none, something must be compiled. `partner` is the other
    side's build, whose objects may serve, as may those of builds in the folders of `earlier` masquerades.
    """

    pin: Pin
    side: Side
    variant: Phase
    config: BuildConfig
    environment: Mapping[str, str]
    instrumentation: Instrumentation | None = None
    workplace: Workplace | None = None
    partner: Partner | None = None
    earlier: tuple[Path, ...] = ()

    @property
    def fuzz_targets(self) -> tuple[str, ...]:
        """Return the fuzz targets that the build links: all of them while targets are still being chosen."""
        chosen = self.config.chosen_targets
        return self.config.fuzz_targets if chosen is None or self.variant in _BEFORE_CHOICE else chosen


def build_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment that builds run in: the user's, without what would disturb or be different on each call."""
    own = {name: value for name, value in environment.items() if name not in _DISTURBING and not name.startswith(_DISTURBING_PREFIXES)}
    return {**own, **_SETTINGS, "SOURCE_DATE_EPOCH": environment.get("SOURCE_DATE_EPOCH", _SETTINGS["SOURCE_DATE_EPOCH"])}


def elsewhere(folder: Path) -> dict[str, str]:
    """Return what makes programs of a placed build leave their counts in `folder`, not in the tree: some builds run what they build."""
    return {"GCOV_PREFIX": str(folder), "LLVM_PROFILE_FILE": f"{folder}/%m.profraw"}


def keyed(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the part of a build's environment that its result depends on, besides the compilers."""
    return {name: environment[name] for name in _KEYED if name in environment}


def _of_plain(plain: Plain) -> tuple[str, ...]:
    """Return what says which units of a variant are made anew beside the plain build's."""
    used, probed = ((f"{what}: {name}" for name in sorted(names)) for what, names in (("used", plain.used), ("probed", plain.probed)))
    return (*sorted(plain.line_files or ()), *used, *probed)


def build_key(request: BuildRequest, compilers: str, cache: Path) -> str:
    """Return 32 hexadecimal digits for everything that the result depends on.

    `compilers` says which compilers are used. Builds know where they lie, so that those in a `cache` that was moved are none.
    """
    pin, instrumentation = request.pin, request.instrumentation
    parts = [
        perfdiff.__version__,
        str(cache),
        pin.tree,
        pin.repository.folder.as_posix(),
        overlay_digest(pin.repository, request.config.overlay),
        request.config.command,
        *request.fuzz_targets,
        compilers,
        request.variant.value,
        *((instrumentation.digest, str(instrumentation.runtime)) if instrumentation else ("", "")),
        *((request.workplace.identity,) if request.workplace else ()),
        *((instrumentation.kind,) if instrumentation and instrumentation.kind is not FlagKind.PROBED else ()),
        *(_of_plain(instrumentation.plain) if instrumentation and instrumentation.plain else ()),
        *(f"{name}={value}" for name, value in keyed(request.environment).items()),
    ]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part.encode(errors="surrogateescape"))
    return digest.hexdigest()[:32]
