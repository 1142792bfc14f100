"""What a run prints, or leaves in files, by its shape: counted and digested as it passes by, looked at closely when the run is over."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from perfdiff.languages import kept_files
from perfdiff.records.behaviour import REST, Shape

# Taking numbers out of this much text takes 0.15 s at most (measured on 2 shared CPUs of a virtual machine), once the run is over.
# Of longer texts lines, bytes and the exact digest are known.
CLOSE_BYTES = 1 << 18
FILES = 32  # names that are told apart; programs that write more of them number them
LOOKED_AT = 2000  # files, in folders that a run made: finding their sizes takes some 10 ms
READ_BYTES = 4 * CLOSE_BYTES  # of all files of one run
DIGESTED_BYTES = 1 << 26  # of all larger files of one run, which takes 0.1 s; of what is beyond only the size is known
NUMBERS = 64  # of a text that are known one by one: results come first, or texts are long tables
_DIGEST_BYTES, _NUMBER_BYTES = 16, 4
_REMEMBERED = 16  # texts, of which most runs print the same
_OWN = b"..."  # stands for the path of a build's folder

_NUMBER = re.compile(
    rb"0[xX][0-9a-fA-F]+"  # addresses
    rb"|\b(?=[a-fA-F]*[0-9])[0-9a-fA-F]{6,}\b"  # digests and numbers of objects
    rb"|[0-9]+(?:[.,:][0-9]+)*(?:[eE][-+]?[0-9]+)?"
)
_UNITS = rb"(?:[num]s|\xc2\xb5s|\xce\xbcs|s|secs?|seconds?|mins?|minutes?|hours?)\b"
# Digits of one number are so many at most: text without an end must not be looked at from each of its digits on.
_TIME = re.compile(
    rb"\b(?:[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.,]{5,18}Z?)?"
    rb"|[0-9]{1,3}:[0-9]{2}(?::[0-9]{2})?(?:[.,][0-9]{1,9})?"
    rb"|[0-9][0-9.,]{0,24}(?:[eE][-+]?[0-9]{1,3})?[ \t]?" + _UNITS + rb")"
)
_UNIT = re.compile(rb"\b0[ \t]?" + _UNITS)  # fits the size of a number
# Numbers of a line that speaks of time are measurements: they say how fast a program was, not what it did.
_OF_TIME = (
    b"time",
    b"pid",
    b"timing",
    b"elapsed",
    b"took",
    b"duration",
    b"second",
    b"wall",
    b"cpu",
    b"speed",
    b"throughput",
    b"latency",
    b"/s",
)
_WORD_OF_TIME = re.compile(rb"/s\b|" + rb"|".join(rb"\b%b" % word for word in _OF_TIME[:-1]))
_BLANKS = re.compile(rb"[ \t\r]+")  # align numbers, which makes more of them beside shorter ones


class Stream:
    """Follows text as it passes by in chunks; of long texts no more than `CLOSE_BYTES` are kept.

    The path of the folder `own`, which each side has another of, is taken out of it.
    """

    def __init__(self, own: Path | None = None) -> None:
        names = {os.fsencode(own), os.fsencode(os.path.realpath(own))} if own is not None else set()
        self._own = sorted(names, key=len, reverse=True)
        self._held = b""  # may be the beginning of such a path
        self._digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        self._beginning = bytearray()
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
        if self._bytes <= CLOSE_BYTES:
            self._beginning += chunk[: CLOSE_BYTES - self._bytes]
        self._bytes += len(chunk)
        self._lines += chunk.count(b"\n")
        self._is_line_open = not chunk.endswith(b"\n")

    def shape(self) -> Shape:
        """Return the shape of the whole text, which ends here."""
        distant = self.distant_shape()
        if self._bytes > CLOSE_BYTES:
            return distant
        timeless, unordered, masked, numbers = _digests(_Text(distant.exact, bytes(self._beginning)))
        return replace(distant, timeless=timeless, unordered=unordered, masked=masked, numbers=numbers)

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


def files_written(tree: Path, paths: Iterable[str]) -> dict[str, Shape]:
    """Return the shapes of the files at `paths` in a tree and in folders there, by their names without numbers.

    Those that have one such name are one. Hidden files and folders, and what interpreters keep compiled, are caches: nobody's results.
    """
    shapes: dict[str, list[Shape]] = {}
    close, digested = READ_BYTES, DIGESTED_BYTES
    for path, size in islice(_files(tree, sorted(paths)), LOOKED_AT):
        name = _NUMBER.sub(b"0", os.fsencode(path)).decode(errors="replace")
        is_close = size <= min(CLOSE_BYTES, close)
        shape = _shape(tree / path, tree.parent, is_close=is_close) if is_close or size <= digested else None
        if shape is not None:
            close, digested = (close - size, digested) if is_close else (close, digested - size)
        shape = shape or Shape(0, size, "", "", "")
        shapes.setdefault(name if name in shapes or len(shapes) < FILES else REST, []).append(shape)
    return {name: _joined(of_name) for name, of_name in sorted(shapes.items())}


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


def _shape(file: Path, own: Path, *, is_close: bool) -> Shape | None:
    """Return the shape of a file, without a close look its lines, size and exact digest; None where it cannot be read."""
    stream = Stream(own)
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
    return Shape(sum(shape.lines for shape in shapes), sum(shape.bytes for shape in shapes), exact, timeless, masked, unordered)


def _digest_of(digests: Sequence[str]) -> str:
    """Return a digest of digests, "" where one is unknown."""
    return hashlib.blake2b(" ".join(digests).encode(), digest_size=_DIGEST_BYTES).hexdigest() if all(digests) else ""


@dataclass(frozen=True, slots=True)
class _Text:
    """A text, which its exact digest stands for."""

    exact: str
    content: bytes = field(compare=False, repr=False)


@functools.lru_cache(_REMEMBERED)
def _digests(text: _Text) -> tuple[str, str, str, tuple[str, ...]]:
    """Return the digests of a text without times, of its lines in any order, of these without numbers, and those of its first numbers."""
    timeless = _timeless(text.content)
    numbers = (hashlib.blake2b(found[0], digest_size=_NUMBER_BYTES).hexdigest() for found in islice(_NUMBER.finditer(timeless), NUMBERS))
    masked = without_numbers(text.content)
    return _digest(timeless), _digest(_sorted(timeless)), _digest(_sorted(masked)), tuple(numbers)


def _sorted(text: bytes) -> bytes:
    """Return the lines of a text in order, without the blanks that align them."""
    return b"\n".join(sorted(line.strip() for line in _BLANKS.sub(b" ", text).split(b"\n")))


def _timeless(text: bytes) -> bytes:
    """Return a text whose lines with times have one digit for these, and one blank for many, as blanks align what varies in length."""
    without = _TIME.sub(b"0s", text)
    lowered = without.lower()
    speaks_of_time = any(word in lowered for word in _OF_TIME)
    if without == text and not speaks_of_time:
        return text
    lines = zip(text.split(b"\n"), without.split(b"\n"), lowered.split(b"\n"), strict=True)
    return b"\n".join(_timeless_line(*line) for line in lines)


def _timeless_line(written: bytes, without: bytes, lowered: bytes) -> bytes:
    """Return a line as it is written, where it has times `without` them, and where it speaks of time without any numbers."""
    if _WORD_OF_TIME.search(lowered):
        return without_numbers(without).strip()
    return written if written == without else _BLANKS.sub(b" ", without).strip()


def without_numbers(text: bytes) -> bytes:
    """Return a text with one digit for each number, whatever unit of time it has, and one blank for many."""
    return _BLANKS.sub(b" ", _UNIT.sub(b"0s", _NUMBER.sub(b"0", text)))


def _digest(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest()
