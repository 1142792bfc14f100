"""The extensions that probe PHP functions, count what their calls do, and count lines: compiled for one PHP, and kept by content."""

from __future__ import annotations

import functools
import shlex
from dataclasses import dataclass
from pathlib import Path

from perfdiff.errors import BuildError
from perfdiff.languages import compiled
from perfdiff.languages.c.runtime_library import over
from perfdiff.languages.interpreter_parts import sources
from perfdiff.languages.php import start
from perfdiff.languages.php.interpreters import PhpInterpreter

MODULE = "perfdiff.so"

_FLAGS = (*compiled.MODULE_FLAGS, "-DZEND_COMPILE_DL_EXT=1")
# Never unloaded: the runtime library reads our counters until the process has ended, and forks call us.
_LINK_FLAGS = ("-lpthread", "-Wl,-z,nodelete")
# Machine code of the engine's compiler counts no instruction of the engine's. Files that were just written are kept and optimised like
# others, so that counts do not tell how old they are; where lines are counted nothing is optimised away.
_COUNTING_SETTINGS = (("opcache.jit", "disable"), ("opcache.jit_buffer_size", "0"), ("opcache.file_update_protection", "0"))
_LINES_SETTINGS = (*_COUNTING_SETTINGS, ("opcache.optimization_level", "0"))


@dataclass(frozen=True, slots=True)
class _ExtensionKind:
    """One of the extensions: its sources, what it is linked with, and the settings of PHP that hold where it is loaded."""

    parts: tuple[str, ...]
    options: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()


def build(php: PhpInterpreter, runtime: Path, compiler: str, cache: Path) -> Path:
    """Return the extension that probes calls under `php`, compiling it at the first call.

    `runtime` is the folder of the runtime library, which the extension finds there when it is loaded. Beside it lies the folder with the
    ini file that has it loaded (`start.environment`).
    Raises BuildError where the headers of `php` are missing and where the compiler fails; StoreError where `cache` cannot be written.
    """
    return _built(php, _ExtensionKind(("runtime",), over(runtime)), compiler, cache)


def build_counting(php: PhpInterpreter, runtime: Path, compiler: str, cache: Path) -> Path:
    """Return the extension that probes calls and counts what they do, as `build` does."""
    kind = _ExtensionKind(("runtime", "counting", "lines"), ("-DPD_PER_CALL", *over(runtime)), _COUNTING_SETTINGS)
    return _built(php, kind, compiler, cache)


def build_lines(php: PhpInterpreter, compiler: str, cache: Path) -> Path:
    """Return the extension that counts lines under `php`, as `build` does; it needs no runtime library."""
    return _built(php, _ExtensionKind(("lines",), (), _LINES_SETTINGS), compiler, cache)


@functools.lru_cache
def headers(php: PhpInterpreter) -> tuple[str, ...]:
    """Return the folders of the headers of a PHP that `php-config` names; raise BuildError where the engine's own is in none of them."""
    options = compiled.run([str(php.config), "--includes"]).decode() if php.config else ""
    folders = tuple(word.removeprefix("-I") for word in shlex.split(options) if word.startswith("-I"))
    if not any(Path(folder, "Zend", "zend_observer.h").is_file() for folder in folders):
        number = ".".join(map(str, php.version))
        raise BuildError(
            f"the headers of {php.executable} (PHP {php.release}) are not installed, or are another release's; install them (Debian and"
            f" Ubuntu: php{number}-dev, Fedora: php-devel, Alpine: php{number.replace('.', '')}-dev), or name a PHP with its own"
            " `php-config` beside it, as `interpreter` under [php]",
            slug="no-php-headers",
        )
    return folders


def _built(php: PhpInterpreter, kind: _ExtensionKind, compiler: str, cache: Path) -> Path:
    includes, cache = headers(php), cache.absolute()  # the ini file names it
    driver = compiled.c_driver(compiler)
    files = list(sources(Path(__file__).parent, kind.parts))
    name = f"php-{compiled.fingerprint(driver, (php, kind, includes, cache, _FLAGS, _LINK_FLAGS), files)}"
    ini = start.text(cache / name / MODULE, kind.settings)
    paths = [argument for include in includes for argument in ("-isystem", include)]
    compiling, options = (driver, *_FLAGS, *paths), (*kind.options, *_LINK_FLAGS)

    def make(folder: Path) -> None:
        compiled.compile_module(compiling, files, options, folder / MODULE)
        (folder / start.INI).mkdir()
        (folder / start.INI / "perfdiff.ini").write_text(ini)

    return compiled.kept(cache, name, make) / MODULE
