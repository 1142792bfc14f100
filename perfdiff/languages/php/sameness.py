"""What base and head have in common as PHP gets it: scripts of the same tokens, which it compiles to the same but for lines."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from perfdiff.languages.php.sources import may_be_php
from perfdiff.languages.protocol import CodeComparison
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


def same_code(differing: Mapping[str, Mapping[int, Path]], php: Path, environment: Mapping[str, str]) -> CodeComparison:
    """Compare the scripts of two builds by the engine `php`, which runs both in `environment`."""
    asked = [[name, *map(str, places)] for name, places in regular(differing).items() if may_be_php(name) and name.isprintable()]
    return CodeComparison(alike=_alike(asked, php, environment) if asked else frozenset())


def _alike(asked: list[list[str]], php: Path, environment: Mapping[str, str]) -> frozenset[str]:
    """Return which files are the same as the engine says; none where it does not."""
    settings = [word for name, value in _SETTINGS.items() for word in ("-d", f"{name}={value}")]
    command, question = [str(php), *settings, str(_COMPARING)], json.dumps(asked)
    try:
        ended = subprocess.run(
            command, input=question, env=dict(environment), capture_output=True, text=True, check=True, timeout=_TIMEOUT_S
        )
        names = json.loads(ended.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return frozenset()
    return frozenset(names) if isinstance(names, list) else frozenset()
