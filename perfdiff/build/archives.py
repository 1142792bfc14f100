"""Static archives: their members in another order, which is the order in which linkers take them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from perfdiff.build import objectfiles

_MAGIC, _THIN = b"!<arch>\n", b"!<thin>\n"
_HEADER = 60
_INDEXES = (b"/ ", b"/SYM64/ ")  # symbols of all members, which `ranlib` makes anew
_NAMES = b"// "  # long names, by offset


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive in GNU's format (ar(5)): its long names, and each member with its header. `folder` is where members of a thin one lie."""

    magic: bytes
    names: bytes
    members: tuple[bytes, ...]
    folder: Path

    @property
    def contents(self) -> Iterator[bytes]:
        """Yield the contents of each member; a thin archive only names files, which are read."""
        for member in self.members:
            if self.magic == _THIN:
                yield (self.folder / self._name(member)).read_bytes()
            else:
                yield member[_HEADER:]

    def _name(self, member: bytes) -> str:
        name = member[:16].rstrip()
        if name[1:].isdigit():
            start = int(name[1:])
            long_names = self.names[_HEADER:]
            return long_names[start : long_names.index(b"/\n", start)].decode(errors="surrogateescape")
        return name.rstrip(b"/").decode(errors="surrogateescape")

    def shuffled(self, rng: random.Random) -> bytes:
        """Return the archive with its members in a random order, without an index of symbols."""
        return self.magic + self.names + b"".join(rng.sample(self.members, len(self.members)))


def read_archive(path: Path) -> Archive | None:
    """Return an archive, or None where it is of another format, such as BSD's."""
    content = path.read_bytes()
    magic, names, members, place = content[: len(_MAGIC)], b"", [], len(_MAGIC)
    while place < len(content):
        header = content[place : place + _HEADER]
        if len(header) < _HEADER or not header.endswith(b"`\n") or header.startswith(b"#1/"):
            return None
        has_content = magic != _THIN or header.startswith((*_INDEXES, _NAMES))  # a thin archive has no members' contents
        size = header[48:58].strip()
        if not size.isdigit():
            return None
        end = place + _HEADER + (int(size) if has_content else 0)
        piece = content[place:end] + b"\n" * (end % 2)
        if header.startswith(_NAMES):
            names = piece
        elif not header.startswith(_INDEXES):
            members.append(piece)
        place = end + end % 2
    return Archive(magic, names, tuple(members), path.parent)


def may_be_shuffled(path: Path, environment: Mapping[str, str]) -> bool:
    """Return whether the order of an archive's members decides nothing but where they come to lie.

    With two constructors that could change places, or two definitions of a symbol, it does: which members are taken first depends on all.
    """
    archive = read_archive(path)
    if archive is None or len(archive.members) < 2:
        return False
    try:
        contents = list(archive.contents)
    except OSError:
        return False
    if not all(map(objectfiles.is_object, contents)) or sum(map(objectfiles.keeps_its_place, contents)) > 1:
        return False
    return objectfiles.rivals([path], environment) == frozenset()
