"""The runtime library, compiled with the target's compiler and kept by content."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from perfdiff.languages import compiled
from perfdiff.languages.protocol import PlainBuild

SOURCES = Path(__file__).parent / "runtime"
HEADER = "perfdiff_probe.h"
INLINE_HEADER = "perfdiff_inline.h"
SPECS = "counted.specs"

_FLAGS = ("-x", "c", "-std=c11", *compiled.FLAGS)
# Never unloaded: the signal handlers and thread destructors outlive a library that is closed.
_LINK_FLAGS = ("-Wl,-z,nodelete", "-Wl,-z,defs")
_STATIC = "PD_STATIC"  # defined for static links; only C files ask for it, no header
_COUNTED_SOURCES = SOURCES / "pmu"
_PLACES_SOURCES = SOURCES / "places"
_PLACES_COUNTERS = ("gcc", "clang")  # of these, each program and library has its own: objects, not parts of the library
# The counted library stands before these functions of the C library. Its own calls of them, the compiler's too, are not to be counted:
# the linker gives them to `__wrap_…` in `pmu/memory.c`.
_OWN_CALLS = ("memcpy", "memmove", "memset", "memcmp", "strlen", "strcpy", "strncpy", "strcmp", "strncmp")
_COUNTED_LINK_FLAGS = tuple(f"-Wl,--wrap={function}" for function in _OWN_CALLS)
# gcc's driver would link its own runtime for these options; through specs, the compiler proper alone sees them. Without the entry and exit
# of functions (an option since gcc 11), tail calls stay what they are.
_SPECS = """\
*cc1_options:
+ -fsanitize=thread -fsanitize-coverage=trace-pc --param=tsan-instrument-func-entry-exit=0

"""


def build(compiler: str, cache: Path) -> Path:
    """Return the folder with `perfdiff_probe.h`, the libraries and `counted.specs`, compiling them at the first call.

    `libperfdiff` is the runtime of timed builds, `libperfdiff_counted` that of counted ones, `libperfdiff_places` that of placed ones, each
    as `.so` and as `.a` for static links; the specs are what gcc compiles a counted build with, and `perfdiff_inline.h` what it includes
    there, to call the library less. `places-gcc.o` and `places-clang.o` go into each program and library of a placed build.

    The folder is named by the sources and the compiler, whichever of its names it is called by, and its version, so equal requests share
    it, from two processes at once too. One whose libraries are not as they were compiled is made again.
    Raises BuildError where the compiler fails, StoreError where `cache` cannot be written.
    """
    driver = compiled.c_driver(compiler)
    sources = (source for folder in (SOURCES, _COUNTED_SOURCES, _PLACES_SOURCES) for source in _sources(folder))
    name = compiled.fingerprint(driver, (_FLAGS, _LINK_FLAGS, _COUNTED_LINK_FLAGS, _SPECS), sources)
    return compiled.kept(cache, f"runtime-{name}", partial(_make, driver))


def build_timed(compiler: str, cache: Path) -> Path:
    """Return a folder with `perfdiff_probe.h` and the shared `libperfdiff` alone, as `build` does: all that modules of engines need."""
    driver = compiled.c_driver(compiler)
    name = compiled.fingerprint(driver, (_FLAGS, _LINK_FLAGS), _sources(SOURCES))
    return compiled.kept(cache, f"runtime-{name}", partial(_make_timed, driver))


def below(built: PlainBuild, compiler: str, cache: Path) -> Path:
    """Return the folder of the runtime that an engine's module uses: that of the build's own probed code if it has any."""
    return build(compiler, cache) if built.commands else build_timed(compiler, cache)


def over(runtime: Path) -> tuple[str, ...]:
    """Return the compiler's options for a module over the runtime library in a folder, which it finds there when it is loaded."""
    return (f"-L{runtime}", "-isystem", str(runtime), f"-Wl,-rpath,{runtime}", "-lperfdiff")


def _make(driver: str, folder: Path) -> None:
    _compile(driver, folder)
    shutil.copy(SOURCES / HEADER, folder)
    shutil.copy(_COUNTED_SOURCES / INLINE_HEADER, folder)
    (folder / SPECS).write_text(_SPECS)


def _make_timed(driver: str, folder: Path) -> None:
    objects = folder / "objects"
    _link_timed(driver, folder, _objects(driver, objects, SOURCES))
    shutil.rmtree(objects)
    shutil.copy(SOURCES / HEADER, folder)


def _sources(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.iterdir()) if path.suffix in (".c", ".h"))


def _compile(driver: str, folder: Path) -> None:
    """Compile the libraries, shared, and as archives for static links, whose runtime interposes nothing."""
    shared, static = folder / "shared", folder / "static"
    ordinary = _objects(driver, shared, SOURCES)
    counted = _objects(driver, shared, _COUNTED_SOURCES)
    _link_timed(driver, folder, ordinary)
    _link(driver, folder / "libperfdiff_counted.so", (*_LINK_FLAGS, *_COUNTED_LINK_FLAGS), [*ordinary, *counted])
    ordinary = _static_objects(driver, static, SOURCES, ordinary)
    counted = _static_objects(driver, static, _COUNTED_SOURCES, counted)
    _archive(driver, folder / "libperfdiff.a", ordinary)
    _archive(driver, folder / "libperfdiff_counted.a", [*ordinary, *counted])
    _compile_places(driver, folder, shared, static)
    shutil.rmtree(shared)
    shutil.rmtree(static)


def _compile_places(driver: str, folder: Path, shared: Path, static: Path) -> None:
    """Compile what has the compilers' own counters written."""
    counters = [f"{_PLACES_SOURCES.name}-{compiler}.o" for compiler in _PLACES_COUNTERS]
    ordinary = _objects(driver, shared, _PLACES_SOURCES)
    apart = _static_objects(driver, static, _PLACES_SOURCES, ordinary)
    _link(driver, folder / "libperfdiff_places.so", _LINK_FLAGS, [name for name in ordinary if Path(name).name not in counters])
    _archive(driver, folder / "libperfdiff_places.a", [name for name in apart if Path(name).name not in counters])
    for name in counters:
        shutil.move(shared / name, folder / name)


def _objects(driver: str, folder: Path, sources: Path) -> list[str]:
    """Compile the C files of a folder to objects in another one."""
    objects = {source: str(folder / f"{sources.name}-{source.stem}.o") for source in _c_files(sources)}
    folder.mkdir(exist_ok=True)
    compiled.compile_each((driver, *_FLAGS), objects)
    return list(objects.values())


def _static_objects(driver: str, folder: Path, sources: Path, shared: Sequence[str]) -> list[str]:
    """Return the objects of the same files for static links: those of `shared`, but for files that tell the two apart by `_STATIC`."""
    objects = dict(zip(_c_files(sources), shared, strict=True))
    apart = {source: str(folder / Path(name).name) for source, name in objects.items() if _STATIC in source.read_text()}
    folder.mkdir(exist_ok=True)
    compiled.compile_each((driver, *_FLAGS, f"-D{_STATIC}"), apart)
    return list((objects | apart).values())


def _c_files(folder: Path) -> list[Path]:
    return [source for source in _sources(folder) if source.suffix == ".c"]


def _link_timed(driver: str, folder: Path, objects: Sequence[str]) -> None:
    _link(driver, folder / "libperfdiff.so", _LINK_FLAGS, objects)


def _link(driver: str, library: Path, flags: Sequence[str], objects: Sequence[str]) -> None:
    compiled.run([driver, "-shared", f"-Wl,-soname,{library.name}", *flags, *objects, "-o", str(library), "-ldl", "-lpthread"])


def _archive(driver: str, archive: Path, objects: Sequence[str]) -> None:
    """Make an archive of one object, so that linking any part of it links its constructor too."""
    joined = str(archive.with_suffix(".o"))
    compiled.run([driver, "-r", "-nostdlib", *objects, "-o", joined])
    archiver = compiled.run([driver, "-print-prog-name=ar"]).decode().strip() or "ar"
    compiled.run([archiver, "rcs", str(archive), joined])
    Path(joined).unlink()
