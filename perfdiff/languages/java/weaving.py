"""Weaving: the class files of a built tree that have probed methods, with probes in them, as a sheet that the agent reads."""

from __future__ import annotations

import hashlib
import io
import struct
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from perfdiff.languages import compiled
from perfdiff.languages.java import tools
from perfdiff.languages.java.jdks import Jdk
from perfdiff.languages.protocol import Load, Probe

SHEET = "woven"

_LOOM = "perfdiff.loom.Loom"
_ARCHIVES = (".jar", ".war", ".ear", ".zip")
_NESTED = 3  # archives in archives: a library in a web application in an enterprise one
_NUMBER = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class ProbedMethod:
    """A method that gets the probe `number`. `linkage` are its class, name and descriptor.

    `reads` are its features in the order of their cells: the expression of each, and whether a number is kept as a double. `watches` are
    its conditions in the order of theirs: the number of the jump that decides it, and whether that is taken where it is true.
    """

    number: int
    says: str
    linkage: str
    reads: tuple[tuple[str, bool], ...]
    watches: tuple[tuple[int, int], ...] = ()

    @property
    def owner(self) -> str:
        """Return the internal name of its class."""
        return self.linkage.split()[0]

    @property
    def request(self) -> bytes:
        """Return the method as bytes in the format that the Java program `Loom` reads."""
        texts = b"".join(sized(text.encode(errors="surrogatepass")) for text in (self.says, *self.linkage.split()))
        reads = listed(_NUMBER.pack(is_floating) + sized(expression.encode()) for expression, is_floating in self.reads)
        watches = listed(_NUMBER.pack(jump) + _NUMBER.pack(is_taken) for jump, is_taken in self.watches)
        return _NUMBER.pack(self.number) + texts + reads + watches


def method_of(probe: Probe) -> ProbedMethod:
    """Return the method of a probe."""
    definition = probe.definition
    features = [definition.features[index] for index in probe.features]
    reads = tuple((feature.expression, feature.load is Load.FLOATING) for feature in features)
    watches = tuple(_jump(definition.branches[index].expression) for index in probe.branches)
    return ProbedMethod(probe.id, definition.name, definition.linkage[0], reads, watches)


def _jump(expression: str) -> tuple[int, int]:
    jump, is_taken = map(int, expression.split())
    return jump, is_taken


def weave(jdk: Jdk, tree: Path, methods: Sequence[ProbedMethod], cache: Path) -> Path:
    """Return the sheet of the classes of a built tree with probes in `methods`, weaving them at the first call.

    A class that lies in several places is woven once; versions of it that differ are woven each. Raises BuildError where the loom fails,
    StoreError where `cache` cannot be written.
    """
    files = class_files(tree, {method.owner for method in methods})
    request = listed(method.request for method in methods) + listed(sized(data) for data in files)
    name = hashlib.sha256(tools.build(jdk, cache, "loom").name.encode() + request).hexdigest()[:24]

    def make(folder: Path) -> None:
        (folder / SHEET).write_bytes(tools.run(jdk, cache, _LOOM, (str(tree),), request))

    return compiled.kept(cache, f"java-woven-{name}", make) / SHEET


def class_files(tree: Path, names: Iterable[str]) -> list[bytes]:
    """Return the class files of a tree that have one of these internal names, from folders and archives, each content once."""
    wanted = {f"{name.rpartition('/')[2]}.class": set[str]() for name in names}
    for name in names:
        wanted[f"{name.rpartition('/')[2]}.class"].add(f"/{name}.class")

    def is_wanted(path: str) -> bool:
        name = path.rpartition("/")[2]
        return name in wanted and path.endswith(tuple(wanted[name]))

    return files_where(tree, is_wanted)


def files_where(tree: Path, is_wanted: Callable[[str], bool]) -> list[bytes]:
    """Return the class files of a tree by their paths in it or in an archive, which begin with `/`, each content once."""
    contents: dict[bytes, None] = {}
    for path in sorted(path for path in tree.rglob("*") if path.suffix in (".class", *_ARCHIVES)):
        if not path.is_file():
            continue
        if path.suffix == ".class":
            if is_wanted(f"/{path.relative_to(tree).as_posix()}"):
                contents[path.read_bytes()] = None
        else:
            contents |= dict.fromkeys(_archived(path, is_wanted, _NESTED))
    return list(contents)


def _archived(archive: Path | io.BytesIO, is_wanted: Callable[[str], bool], depth: int) -> Iterator[bytes]:
    """Yield the wanted class files of an archive; none of one that cannot be read, as a JVM finds none in it."""
    try:
        with zipfile.ZipFile(archive) as opened:
            for name in opened.namelist():
                if name.endswith(".class"):
                    if is_wanted(f"/{name}"):
                        yield opened.read(name)
                elif depth and PurePosixPath(name).suffix in _ARCHIVES:
                    yield from _archived(io.BytesIO(opened.read(name)), is_wanted, depth - 1)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError):  # damaged, encrypted, packed in a way that is not known
        return


def listed(parts: Iterable[bytes]) -> bytes:
    """Return the number of parts and then the parts, in the format that our Java programs read."""
    parts = list(parts)
    return _NUMBER.pack(len(parts)) + b"".join(parts)


def sized(data: bytes) -> bytes:
    """Return a text behind its length, as our programs read it."""
    return _NUMBER.pack(len(data)) + data
