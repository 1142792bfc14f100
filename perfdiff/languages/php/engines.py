"""What a PHP runs programs with: what it caches and compiles, and which extensions it has."""

from __future__ import annotations

import functools
import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfdiff.languages.answers import answer

_READ = ("PATH", "PHPRC", "PHP_INI_SCAN_DIR", "HOME")
_QUESTION = """
$status = function_exists('opcache_get_status') ? @opcache_get_status(false) : false;
echo json_encode([extension_loaded('Zend OPcache'), ini_get('opcache.enable'), ini_get('opcache.enable_cli'), (bool) $status,
    $status ? ($status['jit']['on'] ?? false) : false, ini_get('memory_limit'), get_loaded_extensions(), get_loaded_extensions(true)]);
"""
# What takes over or watches every call, so that it costs more: debuggers, profilers, tracers.
WATCHING = ("xdebug", "pcov", "blackfire", "tideways", "xhprof", "excimer", "newrelic", "ddtrace", "opentelemetry", "uopz", "phpdbg")


@dataclass(frozen=True, slots=True)
class PhpEngine:
    """What a PHP is set to at the command line; `watching` are extensions that see each call."""

    caches: bool
    compiles: bool
    memory_limit: str
    extensions: tuple[str, ...]
    watching: tuple[str, ...]

    @property
    def says(self) -> str:
        """Return it in words."""
        cache = "opcache on" if self.caches else "opcache off"
        watched = f"watched by {', '.join(self.watching)}" if self.watching else ""
        return "; ".join(filter(None, (cache, "JIT on" if self.compiles else "JIT off", f"{len(self.extensions)} extensions", watched)))


@functools.lru_cache
def _asked(executable: Path, variables: tuple[tuple[str, str], ...]) -> PhpEngine:
    try:
        ended = answer([executable, "-d", "display_errors=0", "-r", _QUESTION], environment=dict(variables))
        _, _, _, caches, compiles, limit, extensions, zend = json.loads(ended.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return PhpEngine(False, False, "", (), ())
    names = tuple(sorted({name.lower(): name for name in (*extensions, *zend)}.values(), key=str.lower))
    watching = tuple(name for name in names if name.lower() in WATCHING)
    return PhpEngine(bool(caches), bool(compiles), str(limit), names, watching)


def ask(executable: Path, environment: Mapping[str, str]) -> PhpEngine:
    """Return a PHP's settings in an environment, empty ones if it does not answer."""
    return _asked(executable, tuple((name, environment[name]) for name in _READ if name in environment))
