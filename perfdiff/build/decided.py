"""What a guessed build command decides in the place of a project's own files: `-DCMAKE_BUILD_TYPE=Release`, and which command builds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from perfdiff.languages.tree_files import all_differing, regular, uncommented

_BUILD_FOLDER = "build"  # in which guessed commands build
# By these alone a compiler, or a build system for it, is told how much to optimise, or to do more.
_OPTIMISING = re.compile(
    r"(?<![\w-])(?:-O(?:[0-3sgz]|fast)?(?!\w)|-march=[\w.-]+|-flto\b|-?D?NDEBUG\b|-fsanitize=[\w,]+|-pg\b|--coverage\b"
    r"|--(?:enable|disable)-[\w-]+|(?:-D|--)?(?:CMAKE_BUILD_TYPE|buildtype)(?::\w+)?[=\s]\s*\w+)"
)
# Scripts and recipes of packages build a program with a command of their own; files of build systems may have another target for that.
_OWN_COMMAND = re.compile(r"(?:.+/)?(?:(?:Docker|Container)file[^/]*|[^/]+\.(?:sh|spec|nix)|PKGBUILD|APKBUILD)|debian/rules")
_OWN_TARGET = re.compile(
    r"(?:.+/)?(?:(?:GNU)?[Mm]akefile[^/]*|CMakeLists\.txt|configure|SCons(?:truct|cript)|BUILD|[Jj]ustfile"
    r"|[^/]+\.(?:mk|mak|am|ac|in|cmake|bazel|toml|cfg|ini|json|ya?ml|bat))"
)
_LARGEST = 1 << 20  # bytes of a file that somebody wrote to build something


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


def built_otherwise(trees: Sequence[Path], *, is_same_code: bool) -> tuple[str, ...]:
    """Return the files by which base and head optimise otherwise where another command than the guessed one builds them.

    Scripts and recipes of packages are such files. Those of build systems are where the guessed command builds the same code of both
    (`is_same_code`): it did not use what they say otherwise, as what a makefile says of another target. What services that build each
    commit are told, in hidden files, is no user's build.
    """
    differing = regular(dict(all_differing(*trees)))
    own = [name for name in differing if _OWN_COMMAND.fullmatch(name) or (is_same_code and _OWN_TARGET.fullmatch(name))]
    return tuple(name for name in own if not name.startswith(".") and len({*map(_optimising, differing[name])}) > 1)


def _optimising(file: Path) -> tuple[str, ...]:
    """Return the optimising options that a text has outside of comments, sorted."""
    if file.stat().st_size > _LARGEST:
        return ()
    return tuple(sorted(option for line in uncommented(file) for option in _OPTIMISING.findall(line)))
