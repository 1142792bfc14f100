"""What PHP programs need of this machine: PHP with the headers of its engine, an extension of ours that it loads, and a parser."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from perfdiff.errors import PerfdiffError
from perfdiff.languages.c import runtime_library
from perfdiff.languages.check import Check, compiler, loads, refused
from perfdiff.languages.php import engines, extension, start
from perfdiff.languages.php.homes import Homes
from perfdiff.languages.php.interpreters import Php
from perfdiff.languages.php.traits import PhpConfig

_TIMEOUT_S = 60.0
_OTHER_PHP = "name another PHP as interpreter under [php]"


def examine(config: PhpConfig | None, project: Path, cache: Path, variables: Mapping[str, str]) -> Iterator[Check]:
    """Yield what there is for the programs of a project's folder; nothing of it is needed where that is no PHP project."""
    is_needed = config is not None
    homes = Homes(config or PhpConfig(), project, variables)
    try:
        php = homes.php
    except PerfdiffError as error:
        yield refused("PHP", error, _OTHER_PHP, is_needed=is_needed)
        return
    named = "[php] interpreter" if homes.config.interpreter else "'php' on PATH"
    which = "which this project's programs run under" if is_needed else "for PHP programs, of which there are none here"
    engine = engines.ask(php.executable, variables)
    yield Check("PHP", needed=is_needed, found=True, says=f"{php.release} at {php.executable} ({engine.says}), {named}, {which}")
    headers = _headers(php, is_needed=is_needed)
    yield headers
    yield loads("PHP parser", "tree-sitter-php", is_needed=is_needed)
    if is_needed and headers.found and cache.is_dir():  # compiling takes a second or two
        yield _extension(php, cache, variables)


def _headers(php: Php, *, is_needed: bool) -> Check:
    try:
        folders = extension.headers(php)
    except PerfdiffError as error:
        return refused("PHP headers", error, _OTHER_PHP, is_needed=is_needed)
    return Check("PHP headers", needed=is_needed, found=True, says=next(iter(folders), ""))


def _extension(php: Php, cache: Path, variables: Mapping[str, str]) -> Check:
    """Compile our extension, which is kept in `cache` as a comparison would keep it, and have PHP load it."""
    driver, kept = compiler(variables), cache / "runtime"
    name = "PHP extension"
    try:
        module = extension.build(php, runtime_library.build(driver, kept), driver, kept)
        asked = start.environment(Path(os.devnull), module, variables)
        ended = subprocess.run(
            [str(php.executable), "-d", "display_errors=0", "-r", "echo json_encode(extension_loaded('perfdiff'));"],
            env={**variables, start.FOLDERS: asked[start.FOLDERS]},
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    except PerfdiffError as error:
        return refused(name, error, _OTHER_PHP, is_needed=True)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check(name, needed=True, found=False, says=f"PHP cannot be started: {error}", remedy=_OTHER_PHP)
    if ended.stdout.strip() != "true":
        says = f"PHP does not load it: {(ended.stderr or ended.stdout).strip().splitlines()[-1:]}"
        return Check(name, needed=True, found=False, says=says, remedy=_OTHER_PHP)
    return Check(name, needed=True, found=True, says="compiles, and PHP loads it")
