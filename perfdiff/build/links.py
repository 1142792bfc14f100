"""Links of a plain build, as the masquerade recorded them: what can be done again, and why the rest cannot."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

from perfdiff.build.calls import ParsedCall
from perfdiff.languages.c.driver import DEPENDENCIES, takes_value

_ELF = b"\x7fELF"
_LINKING_ONLY = frozenset(("-o", "--output", "-l", "-Xlinker"))  # followed by their values
_COMPILING_ONLY = DEPENDENCIES | {"-x"}  # likewise


@dataclass(frozen=True, slots=True)
class RecordedLink:
    """One link that ended well. `size` and `digest` (CRC-32) are those of what came out, at `ended_ns` since the epoch.

    `environment` are the variables that decide where libraries are found.
    """

    compiler: str
    name: str  # by which the compiler was called: `g++` links other libraries than `gcc`
    directory: Path
    arguments: tuple[str, ...]
    output: Path
    size: int
    digest: int
    ended_ns: int
    environment: Mapping[str, str]

    @property
    def inputs(self) -> tuple[int, ...]:
        """Return the places of the files among the arguments that are linked or compiled, in their order."""
        call = ParsedCall(self.name, list(self.arguments))
        return self._places({path for path, _ in call.sources} | {path for path in call.others if not path.startswith("-")})

    @property
    def sources(self) -> tuple[int, ...]:
        """Return the places of the arguments that are compiled in the same call."""
        call = ParsedCall(self.name, list(self.arguments))
        return self._places({path for path, _ in call.sources} | set(call.assembler))

    def _places(self, files: Set[str]) -> tuple[int, ...]:
        before = ("", *self.arguments)
        return tuple(place for place, word in enumerate(self.arguments) if word in files and not takes_value(before[place]))

    def path(self, place: int) -> Path:
        """Return the file that an argument names."""
        return self.directory / self.arguments[place]

    def obstacle(self) -> str | None:
        """Return why this link cannot be done again as it was, or None."""
        name = self.output.name
        if not (self.inputs and self.directory.is_dir()):
            return f"{name} was linked from no files, or in a folder that is gone"
        if not self.output.is_file():
            return f"{name} is not where it was linked"
        if not is_same(self.output, self.size, self.digest):
            return f"{name} was changed after it was linked (stripped, or given another rpath)"
        with self.output.open("rb") as file:
            if file.read(len(_ELF)) != _ELF:
                return f"{name} is no ELF file"
        return next((f"{name} cannot be linked again: {why}" for why in map(self._input_obstacle, self.inputs) if why), None)

    def _input_obstacle(self, place: int) -> str | None:
        path = self.path(place)
        if not path.is_file():
            return f"{path.name} is gone"
        if path.stat().st_mtime_ns > self.ended_ns:
            return f"{path.name} was written again afterwards"
        return None


def read_links(folder: Path) -> tuple[RecordedLink, ...]:
    """Return the recorded links in the order in which they ended, of each output the last one; none in builds that recorded none.

    Raise OSError, ValueError or KeyError where a record is damaged.
    """
    by_output: dict[Path, RecordedLink] = {}
    for file in sorted(folder.glob("*.json")):
        content = json.loads(file.read_text(encoding="utf-8"))
        output = Path(content["output"])
        by_output.pop(output, None)
        by_output[output] = RecordedLink(
            compiler=content["compiler"],
            name=content["name"],
            directory=Path(content["directory"]),
            arguments=tuple(content["arguments"]),
            output=output,
            size=content["size"],
            digest=content["digest"],
            ended_ns=content["ended_ns"],
            environment=content["environment"],
        )
    return tuple(by_output.values())


def is_same(path: Path, size: int, digest: int) -> bool:
    """Return whether a file has this size and CRC-32."""
    return path.stat().st_size == size and zlib.crc32(path.read_bytes()) == digest


def is_program(path: Path) -> bool:
    """Return whether a file is an ELF program or shared library."""
    with path.open("rb") as file:
        start = file.read(18)
    little = start[5:6] != b"\2"
    return start.startswith(_ELF) and int.from_bytes(start[16:18], "little" if little else "big") in (2, 3)  # ET_EXEC, ET_DYN


def apart(link: RecordedLink, objects: Mapping[int, str]) -> RecordedLink:
    """Return the link with the sources that it compiles itself, by their places, replaced by objects that were made of them.

    `-x c` goes: it would make text of objects.
    """
    words = [objects.get(place, word) for place, word in enumerate(link.arguments)]
    arguments = [word for word in _without(words, _COMPILING_ONLY) if not word.startswith(("-x", "-MD", "-MMD", "-MP"))]
    return replace(link, arguments=tuple(arguments))


def compile_words(link: RecordedLink, place: int, output: Path) -> list[str]:
    """Return the arguments that compile one of the sources of a link to an object and do no more."""
    others = {link.arguments[other] for other in link.inputs} - {link.arguments[place]}
    words = [word for word in _without(link.arguments, _LINKING_ONLY) if word not in others and not word.startswith(("-l", "-Wl,"))]
    return [*words, "-c", "-Wno-unused-command-line-argument", "-o", str(output)]  # clang's word for what only links need


def _without(words: Sequence[str], dropped: Set[str]) -> list[str]:
    """Return the words without those that are to be dropped, each with its value behind it."""
    remaining: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in dropped:
            next(rest, None)
        else:
            remaining.append(word)
    return remaining
