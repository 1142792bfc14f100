"""What a run prints, or leaves in files, by its shape: counted and digested as it passes by, looked at closely when the run is over."""

from __future__ import annotations

import functools
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from perfdiff.collect.execution import sketching
from perfdiff.collect.execution.echoes import NO_ECHOES, Echoes
from perfdiff.collect.execution.masking import BLANKS, NUMBER, timeless, without_numbers
from perfdiff.collect.execution.sketching import CLOSE_BYTES, DrawnLines
from perfdiff.languages import kept_files
from perfdiff.records.behaviour import REST, Shape

FILES = 32  # names that are told apart; programs that write more of them number them
LOOKED_AT = 2000  # files, in folders that a run made: finding their sizes takes some 10 ms
READ_BYTES = 4 * CLOSE_BYTES  # of all files of one run
DIGESTED_BYTES = 1 << 26  # of all larger files of one run, which takes 0.3 s, of short lines more; of what is beyond only the size is known
NUMBERS = 64  # of a text that are known one by one: results come first, or texts are long tables
_SHORT_LINES = 64  # more of them show that work was done, whatever they repeat
_DIGEST_BYTES, _NUMBER_BYTES = 16, 4
_PROGRAMS = (b"\x7fELF", b"\xca\xfe\xba\xbe", b"!<arch>\n", b"PK\x03\x04")  # and classes, and archives of both
_REMEMBERED = 16  # texts, of which most runs print the same
_OWN = b"..."  # stands for the path of a build's folder


class Stream:
    """Follows text as it passes by in chunks; of long texts some lines are kept, no more than `CLOSE_BYTES`.

    The path of the folder `own`, which each side has another of, is taken out of it. What it `echoes` of its command shows no work.
    """

    def __init__(self, own: Path | None = None, echoes: Echoes = NO_ECHOES) -> None:
        names = {os.fsencode(own), os.fsencode(os.path.realpath(own))} if own is not None else set()
        self._own = sorted(names, key=len, reverse=True)
        self._echoes = echoes
        self._held = b""  # may be the beginning of such a path
        self._digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        self._drawn = DrawnLines()
        self._lines = 0
        self._bytes = 0
        self._is_line_open = False

    def read(self, chunk: bytes) -> None:
        """Take the next chunk, which is not empty."""
        text = self._held + chunk
        for name in self._own:
            text = text.replace(name, _OWN)
        lengths = range(max(map(len, self._own), default=1) - 1, 0, -1)
        held = next((length for length in lengths if any(text.endswith(name[:length]) for name in self._own if length < len(name))), 0)
        self._held = text[len(text) - held :]
        self._take(text[: len(text) - held])

    def _take(self, chunk: bytes) -> None:
        if not chunk:
            return
        self._digest.update(chunk)
        self._drawn.read(chunk)
        self._bytes += len(chunk)
        self._lines += chunk.count(b"\n")
        self._is_line_open = not chunk.endswith(b"\n")

    def shape(self) -> Shape:
        """Return the shape of the whole text, which ends here."""
        distant = self.distant_shape()
        return _looked_at(_DigestedText(distant, self._drawn.level, self._echoes, self._drawn.text()))

    def distant_shape(self) -> Shape:
        """Return what is known of the text, which ends here, without a close look: its lines, size and exact digest."""
        self._take(self._held)
        self._held = b""
        return Shape(self._lines + self._is_line_open, self._bytes, self._digest.hexdigest(), "", "")


def shape_of(text: bytes) -> Shape:
    """Return the shape of a whole text."""
    stream = Stream()
    if text:
        stream.read(text)
    return stream.shape()


def files_written(tree: Path, paths: Iterable[str], echoes: Echoes = NO_ECHOES, *, are_programs_read: bool = True) -> dict[str, Shape]:
    """Return the shapes of the files at `paths` in a tree and in folders there, by their names without numbers.

    Those that have one such name are one. Hidden files and folders, and what interpreters keep compiled, are caches: nobody's results.
    """
    shapes: dict[str, list[Shape]] = {}
    close, digested = READ_BYTES, DIGESTED_BYTES
    for path, size in islice(_files(tree, sorted(paths)), LOOKED_AT):
        if not are_programs_read and _is_program(tree / path):
            continue
        name = NUMBER.sub(b"0", os.fsencode(path)).decode(errors="replace")
        look = min(size, CLOSE_BYTES)
        is_close = look <= close
        is_short = is_close and size == look
        shape = _shape(tree / path, Stream(tree.parent, echoes), is_close=is_close) if is_short or size <= digested else None
        if shape is not None:
            close -= look if is_close else 0
            digested -= 0 if is_short else size
        shape = shape or Shape(0, size, "", "", "")
        shapes.setdefault(name if name in shapes or len(shapes) < FILES else REST, []).append(shape)
    return {name: _joined(of_name) for name, of_name in sorted(shapes.items())}


def inputs_left(tree: Path, paths: Iterable[str]) -> dict[str, Shape]:
    """Return the shapes of the files at `paths`, which a setup left for runs to read; programs that it built are none of these."""
    shapes = files_written(tree, paths, are_programs_read=False)
    return {name: replace(shape, numbers=(), sketch=None) for name, shape in shapes.items()}


def _files(tree: Path, paths: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield regular files with their sizes."""
    open_ = [*reversed(list(paths))]
    while open_:  # folders may lie deeper than functions may call themselves
        path = open_.pop()
        try:
            status = (tree / path).lstat()
            if kept_files.is_kept(path) or any(part.startswith(".") for part in path.split("/")):
                continue
            if stat.S_ISREG(status.st_mode):
                yield path, status.st_size
            elif stat.S_ISDIR(status.st_mode):
                open_ += sorted((f"{path}/{inner.name}" for inner in (tree / path).iterdir()), reverse=True)
        except OSError:  # it was removed, or may not be read
            continue


def _is_program(file: Path) -> bool:
    """Return whether a file is compiled, by how it begins; what cannot be read is none."""
    try:
        with file.open("rb") as opened:
            return opened.read(8).startswith(_PROGRAMS)
    except OSError:
        return False


def _shape(file: Path, stream: Stream, *, is_close: bool) -> Shape | None:
    """Return the shape of a file, without a close look its lines, size and exact digest; None where it cannot be read."""
    try:
        with file.open("rb") as opened:
            while chunk := opened.read(CLOSE_BYTES):
                stream.read(chunk)
    except OSError:
        return None
    return stream.shape() if is_close else stream.distant_shape()


def _joined(shapes: Sequence[Shape]) -> Shape:
    """Return the shape of several files together, in any order."""
    if len(shapes) == 1:
        return shapes[0]
    exact, timeless, masked, unordered = (
        _digest_of(sorted(getattr(shape, form) for shape in shapes)) for form in ("exact", "timeless", "masked", "unordered")
    )
    lines, size = sum(shape.lines for shape in shapes), sum(shape.bytes for shape in shapes)
    return Shape(lines, size, exact, timeless, masked, unordered, sketch=sketching.joined([shape.sketch for shape in shapes]))


def _digest_of(digests: Sequence[str]) -> str:
    """Return a digest of digests, "" where one is unknown."""
    return hashlib.blake2b(" ".join(digests).encode(), digest_size=_DIGEST_BYTES).hexdigest() if all(digests) else ""


@dataclass(frozen=True, slots=True)
class _DigestedText:
    """A text, which its exact digest stands for."""

    distant: Shape
    level: int
    echoes: Echoes
    content: bytes = field(compare=False, repr=False)


@functools.lru_cache(_REMEMBERED)
def _looked_at(text: _DigestedText) -> Shape:
    """Return the shape of a text: of a long one, of which only some lines are at hand, no more than a sketch beside what is known."""
    masked = without_numbers(text.content)
    drawn = sketching.sketch(text.content, masked, text.level)
    if text.level:
        return replace(text.distant, sketch=drawn)
    shape = _with_digests(text.distant, timeless(text.content), masked)
    unechoed = text.echoes.taken_out(text.content) if text.distant.lines <= _SHORT_LINES else None
    return replace(shape, sketch=drawn, unechoed=None if unechoed is None else _unechoed(unechoed))


def _unechoed(text: bytes) -> Shape:
    """Return the shape of a text that has no times."""
    distant = Shape(text.count(b"\n") + (not text.endswith(b"\n")), len(text), _digest(text), "", "")
    return _with_digests(distant, text, without_numbers(text))


def _with_digests(distant: Shape, without_times: bytes, masked: bytes) -> Shape:
    first = islice(NUMBER.finditer(without_times), NUMBERS)
    return replace(
        distant,
        timeless=_digest(without_times),
        unordered=_digest(_sorted(without_times)),
        masked=_digest(_sorted(masked)),
        numbers=tuple(hashlib.blake2b(number[0], digest_size=_NUMBER_BYTES).hexdigest() for number in first),
    )


def _sorted(text: bytes) -> bytes:
    """Return the lines of a text in order, without the blanks that align them."""
    return b"\n".join(sorted(line.strip() for line in BLANKS.sub(b" ", text).split(b"\n")))


def _digest(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest()
