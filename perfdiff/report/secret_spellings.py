"""How one secret is written: in JSON, HTML, URLs, shells and base64, one inside the other, and as the lines that it has."""

from __future__ import annotations

import base64
import html
import re
import shlex
from collections.abc import Iterator
from html.entities import codepoint2name
from urllib.parse import unquote

LEAST = 6  # characters; shorter texts occur in ordinary text by chance

_UNCHANGED = re.compile(r"[A-Za-z0-9]+")  # every way of writing leaves these as they are
_CONTROLS = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_WORD = re.compile(r"[A-Za-z]?[a-z]+|[A-Z]+")
_ARMOUR = re.compile(r"-----.*|[A-Z][A-Za-z-]+: .*")  # the first and last line of a key, and what stands above it


def lines(secret: str) -> Iterator[str]:
    """Yield the lines of a secret that has several, without those that occur anywhere: words, and what frames a key."""
    breaks = r"\r?\n|\\+r|\\+n" if "-----BEGIN" in secret or "\n" not in secret and len(secret) > 80 else r"\r?\n"
    parts = [part.strip(" \t\"'\\,+-") for part in re.split(breaks, secret)]
    if len(parts) > 1:
        yield from (part for part in parts if len(part) >= LEAST and not _WORD.fullmatch(part) and not _ARMOUR.fullmatch(part))


def plain(written: str) -> Iterator[str]:
    """Yield what a secret that is written in a text may mean: itself, and as JSON, HTML, a URL and a shell read it."""
    yield written
    yield html.unescape(written)
    yield unquote(written, errors="replace")
    yield re.sub(r"\\(.)", r"\1", written)
    try:
        yield "".join(shlex.split(written))
    except ValueError:
        return


class Spellings:
    """The ways to write a secret."""

    __slots__ = ("_anchor", "_literals", "_pattern", "secret")

    def __init__(self, secret: str) -> None:
        self.secret = secret
        self._literals = (secret, *_encoded(secret))
        runs = _UNCHANGED.findall(secret)
        self._anchor = max(runs, key=len, default="")
        self._pattern = None if secret == self._anchor else re.compile("".join(_written(letter) for letter in secret))

    def replaced(self, text: str, instead: str) -> str:
        """Return a text with something else in place of the secret, however it is written."""
        for literal in self._literals:
            text = text.replace(literal, instead)
        if self._pattern is None or self._anchor not in text:
            return text
        return self._pattern.sub(lambda _: instead, text)


def _encoded(secret: str) -> Iterator[str]:
    """Yield the secret in base64, as part of a longer text too, and in hexadecimal digits."""
    data = secret.encode(errors="surrogateescape")
    for before in range(3):
        # Of the first and last letter, some bits are of what stands around it.
        whole = base64.b64encode(b"\0" * before + data).decode().rstrip("=")
        first, last = (0, 2, 3)[before], len(whole) - bool((before + len(data)) % 3)
        part = whole[first:last]
        if len(data) > LEAST:
            yield from dict.fromkeys((part, part.replace("+", "-").replace("/", "_")))
    if len(data) > LEAST:
        yield from (data.hex(), data.hex().upper())


def _written(letter: str) -> str:
    """Return a pattern of a letter as JSON, C, HTML, URLs and shells write it, also one within the other."""
    if _UNCHANGED.fullmatch(letter):
        return letter
    code = ord(letter)
    utf8 = letter.encode(errors="surrogateescape")
    utf16 = letter.encode("utf-16-be", errors="surrogatepass")
    units = [utf16[place : place + 2].hex() for place in range(0, len(utf16), 2)]
    ways = [
        re.escape(letter),
        "".join(rf"\\+u(?i:{unit})" for unit in units),
        "".join(rf"\\+(?:x(?i:{byte:02x})|0?{byte:03o})" for byte in utf8),
        rf"\\+U(?i:{code:08x})",
        "".join(rf"%(?:25)*(?i:{byte:02x})" for byte in utf8),
        rf"&(?:amp;)*#(?:0*{code}|[xX]0*(?i:{code:x}));",
    ]
    if code in codepoint2name:
        ways.append(rf"&(?:amp;)*{codepoint2name[code]};")
    if letter == "'":
        ways += ["&(?:amp;)*apos;", "'[\"\\\\]+'[\"\\\\]*'", "''"]
    if letter == '"':
        ways.append('""')
    if letter == " ":
        ways.append(r"\+")
    if letter in _CONTROLS:
        ways.append(rf"\\+{_CONTROLS[letter]}")
    if letter == "\n":
        ways.append(r"\\*\r\n|\\+r\\+n")
    before = r"\\*" if not letter.isspace() and letter.isascii() else ""
    return f"{before}(?:{'|'.join(ways)})"
