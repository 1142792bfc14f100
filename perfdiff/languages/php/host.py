"""What PHP programs need of this machine: PHP with the headers of its engine, an extension of ours that it loads, and a parser."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from perfdiff.errors import PerfdiffError
from perfdiff.languages.c import runtime_library
from perfdiff.languages.check import Check, compiler, loads, loads_ours, refused, told
from perfdiff.languages.php import engines, extension, start
from perfdiff.languages.php.homes import PhpHomes
from perfdiff.languages.php.interpreters import PhpInterpreter
from perfdiff.languages.php.traits import PhpConfig

_OTHER_PHP = "name another PHP as interpreter under [php]"


def examine(config: PhpConfig | None, project: Path, cache: Path, variables: Mapping[str, str]) -> Iterator[Check]:
    """Yield what there is for the programs of a project's folder; nothing of it is needed where that is no PHP project."""
    is_needed = config is not None
    homes = PhpHomes(config or PhpConfig(), project, variables)
    try:
        php = homes.php
    except PerfdiffError as error:
        yield refused("PHP", error, _OTHER_PHP, is_needed=is_needed)
        return
    named = "[php] interpreter" if homes.config.interpreter else "'php' on PATH"
    which = "which this project's programs run under" if is_needed else "for PHP programs, of which there are none here"
    engine = engines.ask(php.executable, variables)
    yield Check("PHP", needed=is_needed, found=True, says=f"{php.release} at {php.executable} ({engine.says}), {named}, {which}")
    headers = told("PHP headers", lambda: extension.headers(php)[0], _OTHER_PHP, is_needed=is_needed)
    yield headers
    yield loads("PHP parser", "tree-sitter-php", is_needed=is_needed)
    if is_needed and headers.found and cache.is_dir():  # compiling takes a second or two
        yield loads_ours("PHP extension", "PHP", lambda: _start(php, cache, variables), _OTHER_PHP)


def _start(php: PhpInterpreter, cache: Path, variables: Mapping[str, str]) -> tuple[Sequence[str], Mapping[str, str]]:
    """Compile our extension, which is kept in `cache` as a comparison would keep it; return what starts PHP with it."""
    driver, runtime_cache = compiler(variables), cache / "runtime"
    module = extension.build(php, runtime_library.build_timed(driver, runtime_cache), driver, runtime_cache)
    asked = start.environment(Path(os.devnull), module, variables)
    command = (str(php.executable), "-d", "display_errors=0", "-r", "exit(extension_loaded('perfdiff') ? 0 : 1);")
    return command, {**variables, start.FOLDERS: asked[start.FOLDERS]}
