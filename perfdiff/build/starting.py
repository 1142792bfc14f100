"""How a project's own files start its program where users have it: options and limits that a workload's command does not have."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Sequence
from pathlib import Path, PurePosixPath

from perfdiff.build.delivery import is_aside
from perfdiff.languages.installed import installed
from perfdiff.languages.tree_files import all_differing, regular, uncommented

# Launchers, images, services and what configures the servers that run programs.
_FILES = re.compile(
    r"Procfile|\.user\.ini|(?:Docker|Container)file[^/]*|(?:docker-)?compose[^/]*\.ya?ml|gunicorn[^/]*\.py"
    r"|[^/]+\.(?:sh|bash|bat|service|conf|env)|(?!tox\.)[^/]+\.ini"  # which starts tests
)
_FOLDERS = {
    "bin": re.compile(r"[^/.]+"),
    **dict.fromkeys(("deploy", "k8s", "kubernetes", "helm", "manifests"), re.compile(r"[^/]+\.ya?ml")),
}
# What decides of speed there: how many work at a time, what they may use, and options of interpreters, which languages know.
_SETTINGS = (
    r"\b(?:\w+_NUM_THREADS|OMP_\w+|MALLOC_\w+|GLIBC_TUNABLES|LD_PRELOAD|WEB_CONCURRENCY)\s*[=:]\s*\S+"
    r"|(?:--(?:workers|threads|processes)|\b(?:workers|threads|processes))[ =]+\w+|(?<![\w-])-w[ =]*\d+"
    r"|\b(?:Nice|CPUQuota|CPUWeight|AllowedCPUs|MemoryMax|MemoryHigh)\s*=\s*\S+|\b(?:cpus?|cpuset|mem_limit|memory)\s*:\s*\S+"
)


def started_otherwise(trees: Sequence[Path], names: Collection[str]) -> tuple[str, ...]:
    """Return which of some files start the program for users of head with other options or limits."""
    differing = regular(dict(all_differing(*trees)))
    starting = [name for name in differing if name in names and _starts(PurePosixPath(name)) and not is_aside(name)]
    return tuple(name for name in starting if len({*map(_settings, differing[name])}) > 1)


def _starts(path: PurePosixPath) -> bool:
    folder = path.parts[-2] if len(path.parts) > 1 else ""
    return _FILES.fullmatch(path.name) is not None or (folder in _FOLDERS and _FOLDERS[folder].fullmatch(path.name) is not None)


@functools.cache
def _pattern() -> re.Pattern[str]:
    running = [traits.running for traits in installed()]
    variables = "|".join(name for traits in running for name in traits.variables)
    return re.compile("|".join((_SETTINGS, rf"\b(?:{variables})\s*[=:]\s*\S+", *(traits.options for traits in running if traits.options))))


def _settings(file: Path) -> tuple[str, ...]:
    """Return the options and limits that a text sets outside of comments, sorted."""
    return tuple(sorted(" ".join(setting.split()) for line in uncommented(file) for setting in _pattern().findall(line)))
