"""What a guessed build command decides in the place of the files that its build system reads: `-DCMAKE_BUILD_TYPE=Release` and its like."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from perfdiff.languages.tree_files import all_differing

_BUILD_FOLDER = "build"  # in which guessed commands build


@dataclass(frozen=True, slots=True)
class _Command:
    """What a command decides: `files` finds the names of files with `settings` of it, and files in `whole` it does not read at all."""

    files: re.Pattern[str]
    settings: re.Pattern[str]
    whole: frozenset[str] = frozenset()

    def of(self, name: str, text: str) -> tuple[str, ...]:
        """Return what the text of a file says of what the command decides."""
        lines = map(str.strip, text.splitlines())
        return tuple(line for line in lines if name in self.whole or self.settings.search(line.partition("#")[0]))

    def reads(self, name: str) -> bool:
        return name in self.whole or self.files.fullmatch(name) is not None


_COMMANDS = {
    "CMakeLists.txt": _Command(
        re.compile(r"CMakeLists\.txt|.+\.cmake"),
        re.compile(r"build_?type", re.IGNORECASE),
        frozenset(("CMakePresets.json", "CMakeUserPresets.json")),
    ),
    "meson.build": _Command(re.compile(r"meson\.build"), re.compile(r"buildtype|optimization|\bdebug=")),
}


def decided(guessed_from: str, trees: Sequence[Path]) -> tuple[str, ...]:
    """Return the files in which two trees say otherwise what the command decides that was `guessed_from` a file at their top."""
    command = _COMMANDS.get(guessed_from)
    if command is None:
        return ()
    return tuple(name for name, places in all_differing(*trees) if _say_otherwise(command, PurePosixPath(name), places))


def _say_otherwise(command: _Command, path: PurePosixPath, places: Mapping[int, Path]) -> bool:
    if path.parts[0] == _BUILD_FOLDER or not command.reads(path.name):
        return False
    texts = [places[side].read_text(errors="replace") if side in places and places[side].is_file() else "" for side in range(2)]
    return command.of(path.name, texts[0]) != command.of(path.name, texts[1])
