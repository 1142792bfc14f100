"""What base and head have in common as PHP gets it: scripts of the same tokens, which it compiles to the same but for lines."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from perfdiff.languages.meanings import MeaningComparison
from perfdiff.languages.php.sources import may_be_php
from perfdiff.languages.protocol import Counterpart, FunctionDefinition
from perfdiff.languages.tree_files import regular

_COMPARING = Path(__file__).parent / "scripts" / "compared_tokens.php"
_TIMEOUT_S = 60.0  # 300 scripts of 60 functions take two seconds on a busy machine
# `<?` is text for our own tokens, and where a file has it nothing is told of it; no code of the project runs before ours or behind it.
_SETTINGS = {
    "display_errors": "stderr",
    "short_open_tag": "0",
    "auto_prepend_file": "",
    "auto_append_file": "",
    "opcache.enable_cli": "0",
    "opcache.preload": "",
    "memory_limit": "-1",
}

Body = tuple[int, int]  # of a function: the bytes of its file that it takes


def same_code(
    pairs: Sequence[Counterpart], differing: Mapping[str, Mapping[int, Path]], php: Path, environment: Mapping[str, str]
) -> MeaningComparison:
    """Compare the scripts of two builds, whose functions are `pairs`, by the engine `php`, which runs both in `environment`."""
    bodies = _bodies(pairs)
    asked: list[list[object]] = []
    for name, found in differing.items():
        places = regular(found)
        if places is not None and may_be_php(name) and name.isprintable():
            asked.append([name, *map(str, places), *bodies.get(name, ([], []))])
    says = _compared(asked, php, environment) if asked else {}
    return MeaningComparison(
        alike=frozenset(name for name, said in says.items() if said == "alike"),
        by_function=frozenset(name for name, said in says.items() if said == "bodies"),
    )


def _compared(asked: list[list[object]], php: Path, environment: Mapping[str, str]) -> dict[str, str | None]:
    """Return how files differ as the engine says; nothing where it does not."""
    settings = [word for name, value in _SETTINGS.items() for word in ("-d", f"{name}={value}")]
    command, question = [str(php), *settings, str(_COMPARING)], json.dumps(asked)
    try:
        ended = subprocess.run(
            command, input=question, env=dict(environment), capture_output=True, text=True, check=True, timeout=_TIMEOUT_S
        )
        said = json.loads(ended.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def _bodies(pairs: Sequence[Counterpart]) -> dict[str, tuple[list[Body], list[Body]]]:
    """Return the bodies in braces of functions that are suspects in the same file of both sides, by that file."""
    found: dict[str, tuple[list[Body], list[Body]]] = {}
    for pair in pairs:
        if pair.base is None or pair.head is None or pair.base.file != pair.head.file or not pair.change.is_suspect:
            continue
        extents = [list(_extent(one)) for one in (pair.base, pair.head)]
        if all(extents):
            for bodies, extent in zip(found.setdefault(pair.base.file, ([], [])), extents, strict=True):
                bodies.extend(extent)
    return found


def _extent(one: FunctionDefinition) -> Iterator[Body]:
    """Yield the bytes between the braces of a function's body; nothing where it has none."""
    if one.text.endswith("}") and not one.loads and one.body < one.end:
        yield one.body, one.end - 1
