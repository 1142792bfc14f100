"""An answer of HTTP/1.1 as it comes in: read in pieces and counted, not kept, within bounds that no server can widen (RFC 9112)."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

LATE = "no answer in time"
BROKEN = "connection broken"
LONG_HEAD = "header too long"
INTERIM = "too many interim answers"
LENGTHS = "contradicting lengths of the body"
MALFORMED = "malformed answer"
CHUNK = "malformed chunk"
PACKED = "malformed compressed body"
LARGE = "body too large when unpacked"

# Servers and proxies take 8 to 64 KiB of header from a client; no answer needs more.
_LONGEST_HEAD = 2**16
_LONGEST_LINE = 4096  # of a chunk: its size and what extends it
_MOST_INTERIM = 16  # answers such as `100 Continue` and `103 Early Hints`, of which one or two are usual
_PIECE = 2**16
_HELD = 2**20  # bytes of a body that wait to be digested until its time has been taken
_LARGEST_UNPACKED = 2**28  # bytes; a body of 256 KiB may have a thousand times as many

_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9]\d\d)(?: .*)?")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LENGTH = re.compile(r"0*(\d{1,18})")
# 15 digits are a million times the memory of any machine; with 16, a size does not fit into the kernel's numbers.
_CHUNK_SIZE = re.compile(rb"0*([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?")


class AnswerError(Exception):
    """An answer cannot be read; its text is the reason."""


class Incoming(Protocol):
    """Bytes that come in."""

    def receive(self, most: int) -> bytes:
        """Return the next bytes, none where the connection has ended; raise AnswerError where they do not come in time."""
        ...


@dataclass(slots=True)
class Buffered:
    """Reads lines and pieces from what comes in."""

    incoming: Incoming
    _data: bytes = b""
    _place: int = 0

    @property
    def is_empty(self) -> bool:
        """Return whether nothing has come in that was not read."""
        return self._place == len(self._data)

    def begin(self) -> None:
        """Wait for the first byte; raise AnswerError where the connection ends before it."""
        self._fill()

    def line(self, longest: int, failure: str) -> bytes:
        """Return a line without its end; raise AnswerError, with `failure` where it is too long."""
        parts, size, end = [], 0, -1
        while end < 0:
            self._fill()
            end = self._data.find(b"\n", self._place)
            parts.append(self._taken(end + 1 if end >= 0 else len(self._data)))
            size += len(parts[-1])
            if size > longest + len(b"\r\n"):
                raise AnswerError(failure)
        return b"".join(parts)[:-1].removesuffix(b"\r")

    def pieces(self, size: int) -> Iterator[bytes]:
        """Yield `size` bytes in pieces; raise AnswerError if the answer ends before."""
        while size:
            self._fill()
            piece = self._taken(min(self._place + size, len(self._data)))
            size -= len(piece)
            yield piece

    def all(self) -> Iterator[bytes]:
        """Yield the bytes that arrive until the connection ends."""
        piece = self._taken(len(self._data)) or self.incoming.receive(_PIECE)
        while piece:
            yield piece
            piece = self.incoming.receive(_PIECE)

    def _taken(self, end: int) -> bytes:
        start, self._place = self._place, end
        return self._data[start:end]

    def _fill(self) -> None:
        if self.is_empty:
            self._data, self._place = self.incoming.receive(_PIECE), 0
            if not self._data:
                raise AnswerError(BROKEN)


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of an answer; fields of one name are in `fields` with commas between their values."""

    minor: int
    status: int
    fields: dict[str, str]

    @property
    def stays_open(self) -> bool:
        """Return whether the connection may serve another request."""
        options = {option.strip().lower() for option in self.fields.get("connection", "").split(",")}
        return "close" not in options and (self.minor == 1 or "keep-alive" in options) and self.status != 101


@dataclass(slots=True)
class ResponseBody:
    """The size and digest of a body, which is unpacked for the digest where it is compressed: packed, the same may differ by its time."""

    packing: str = ""
    size: int = 0
    _held: bytearray = field(default_factory=bytearray)
    _digest: hashlib.blake2b = field(default_factory=lambda: hashlib.blake2b(digest_size=16))
    _unpack: zlib._Decompress | None = None
    _unpacked: int = 0

    def add(self, piece: bytes) -> None:
        """Count a piece; raise AnswerError."""
        self.size += len(piece)
        self._held += piece
        if len(self._held) > _HELD:
            self._take()

    def digest(self) -> bytes:
        """Return the digest of all pieces; raise AnswerError where they cannot be unpacked."""
        self._take()
        if self._unpack is not None and not self._unpack.eof:
            raise AnswerError(PACKED)
        return self._digest.digest()

    def _take(self) -> None:
        data, self._held = bytes(self._held), bytearray()
        if self.packing not in ("gzip", "x-gzip", "deflate"):
            self._digest.update(data)
            return
        try:
            while data:
                data = self._unpack_some(data)
        except zlib.error as error:
            raise AnswerError(PACKED) from error

    def _unpack_some(self, data: bytes) -> bytes:
        """Unpack some of the data and return the rest of it."""
        if self._unpack is None or self._unpack.eof:  # gzip may have several members
            is_raw = self.packing == "deflate" and data[0] & 0x0F != 8  # without the header of zlib, as some servers send it
            self._unpack = zlib.decompressobj(-zlib.MAX_WBITS if is_raw else zlib.MAX_WBITS | 32)
        piece = self._unpack.decompress(data, _PIECE)
        self._count_unpacked(piece)
        while len(piece) == _PIECE and not (self._unpack.eof or self._unpack.unconsumed_tail):  # it holds more, of all that it was given
            piece = self._unpack.decompress(b"", _PIECE)
            self._count_unpacked(piece)
        return self._unpack.unused_data if self._unpack.eof else self._unpack.unconsumed_tail

    def _count_unpacked(self, piece: bytes) -> None:
        self._unpacked += len(piece)
        if self._unpacked > _LARGEST_UNPACKED:
            raise AnswerError(LARGE)
        self._digest.update(piece)


def read_head(source: Buffered) -> Head:
    """Return the head of an answer behind those that only announce it; raise AnswerError."""
    for _ in range(_MOST_INTERIM):
        head = _head(source)
        if head.status == 101 or head.status >= 200:
            return head
    raise AnswerError(INTERIM)


def read_body(source: Buffered, head: Head, method: str, add: Callable[[bytes], None]) -> bool:
    """Read a body piece by piece; return whether its end is known, and the connection of use behind it. Raise AnswerError."""
    codings = [coding.strip().lower() for coding in head.fields.get("transfer-encoding", "").split(",") if coding.strip()]
    length = _length(head.fields.get("content-length"))
    if codings and length is not None:
        raise AnswerError(LENGTHS)
    if method == "HEAD" or head.status < 200 or head.status in (204, 304):
        return True
    if codings[-1:] == ["chunked"]:
        _chunks(source, add)
        return True
    if length is not None:
        for piece in source.pieces(length):
            add(piece)
        return True
    for piece in source.all():
        add(piece)
    return False


def _head(source: Buffered) -> Head:
    left = _LONGEST_HEAD
    line = source.line(left, LONG_HEAD)
    status = _STATUS.fullmatch(line)
    if status is None:
        raise AnswerError(MALFORMED)
    fields: dict[str, str] = {}
    name = ""
    while line:
        left -= len(line) + 1
        line = source.line(left, LONG_HEAD)
        if not line:
            break
        if line[:1] in b" \t" and name:  # the rest of a field, as it was once allowed, which stands for a blank (section 5.2)
            fields[name] = " ".join((fields[name], line.decode("latin-1").strip(" \t"))).strip()
            continue
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon or not _NAME.fullmatch(name):
            raise AnswerError(MALFORMED)
        name, value = name.lower(), value.strip(" \t")
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return Head(int(status[1]), int(status[2]), fields)


def _length(field: str | None) -> int | None:
    if field is None:
        return None
    lengths = {match[1] if (match := _LENGTH.fullmatch(value.strip())) else "" for value in field.split(",")}
    if len(lengths) > 1 or "" in lengths:
        raise AnswerError(LENGTHS)
    return int(lengths.pop())


def _chunks(source: Buffered, add: Callable[[bytes], None]) -> None:
    while True:
        match = _CHUNK_SIZE.fullmatch(source.line(_LONGEST_LINE, CHUNK))
        if match is None:
            raise AnswerError(CHUNK)
        size = int(match[1], 16)
        if not size:
            break
        for piece in source.pieces(size):
            add(piece)
        if source.line(0, CHUNK):
            raise AnswerError(CHUNK)
    left = _LONGEST_HEAD
    while trailer := source.line(left, LONG_HEAD):
        left -= len(trailer) + 1
