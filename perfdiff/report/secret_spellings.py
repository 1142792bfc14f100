"""How one secret is written: in JSON, HTML, URLs, shells and base64, one inside the other, and as the lines that it has."""

from __future__ import annotations

import base64
import html
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from html.entities import codepoint2name
from urllib.parse import unquote

from perfdiff.report.printable import as_read

LEAST = 6  # characters; shorter texts occur in ordinary text by chance

_UNCHANGED = re.compile(r"[A-Za-z0-9]+")  # every way of writing leaves these as they are
_MOST_ESCAPES = 16  # of texts within texts; without a bound, a line of backslashes would take its length squared
_BEHIND_ESCAPES = r"(?<=\\)"  # all of which a run of quotes and backslashes has taken
_ESCAPES = rf"(?:\\{{1,{_MOST_ESCAPES}}}+|{_BEHIND_ESCAPES})"
_MARKS = "\\'\""  # which each way of writing adds to
_MOST_WRITTEN = 50  # quotes and backslashes that one of them becomes: `'` is 17 where a shell reads it in a shell
_PARTS = re.compile(r"[\\'\"]+|[A-Za-z0-9]+|.", re.DOTALL)
_LONGEST = 4096  # characters; of longer secrets the pattern would take seconds to be made
_CONTROLS = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_WORD = re.compile(r"[A-Za-z]?[a-z]+|[A-Z]+")
_ARMOUR = re.compile(r"-----.*|[A-Z][A-Za-z-]+: .*")  # the first and last line of a key, and what stands above it


def lines(secret: str) -> Iterator[str]:
    """Yield the lines of a secret that has several, without those that occur anywhere: words, and what frames a key."""
    breaks = r"\r?\n|\\+r|\\+n" if "-----BEGIN" in secret or ("\n" not in secret and len(secret) > 80) else r"\r?\n"
    parts = [part.strip(" \t\"'\\,+") for part in re.split(breaks, secret)]
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


@dataclass(frozen=True, slots=True)
class Spellings:
    """The ways to write a secret: some as they stand, others by a pattern, in all of which `anchor` is unchanged."""

    literals: tuple[str, ...]
    anchor: str
    pattern: re.Pattern[str] | None

    def replaced(self, text: str, instead: str) -> str:
        """Return a text with something else in place of the secret, however it is written."""
        for literal in self.literals:
            text = text.replace(literal, instead)
        if self.pattern is None or self.anchor not in text:
            return text
        return self.pattern.sub(lambda _: instead, text)


def spellings(secret: str) -> Spellings:
    """Return the ways to write a secret."""
    anchor = max(_UNCHANGED.findall(secret), key=len, default="")
    is_literal = secret == anchor or len(secret) > _LONGEST or not set(secret) - set(_MARKS)
    return Spellings((secret, *_encoded(secret)), anchor, None if is_literal else re.compile(_written(secret)))


def in_place(before: str, secret: str) -> Spellings:
    """Return the ways to write what may be a word elsewhere, behind what stands before it in a command."""
    anchor = max(_UNCHANGED.findall(f"{before}{secret}"), key=len, default="")
    return Spellings((), anchor, re.compile(rf"(?<![\w-]){_written(f'{before}{secret}')}(?!\w)"))


def _encoded(secret: str) -> Iterator[str]:
    """Yield the secret in base64, as part of a longer text too, and in hexadecimal digits."""
    data = as_read(secret)
    for before in range(3):
        # Of the first and last letter, some bits are of what stands around it.
        whole = base64.b64encode(b"\0" * before + data).decode().rstrip("=")
        first, last = (0, 2, 3)[before], len(whole) - bool((before + len(data)) % 3)
        part = whole[first:last]
        if len(data) > LEAST:
            yield from dict.fromkeys((part, part.replace("+", "-").replace("/", "_")))
    if len(data) > LEAST:
        yield from (data.hex(), data.hex().upper())


def _written(secret: str) -> str:
    """Return a pattern of a text as JSON, C, HTML, URLs and shells write it, also one within the other.

    No two parts of it may take the same, or a text that is nearly the secret would take a time that doubles with each of them. So a run of
    quotes and backslashes, which most ways of writing add to, is one part, whatever of these it is made of, and takes all that are there.
    """
    parts = _PARTS.findall(secret)
    return "".join(_run(len(part), place + 1 == len(parts)) if part[0] in _MARKS else _letter(part) for place, part in enumerate(parts))


def _run(length: int, is_last: bool) -> str:
    """Return a pattern of so many quotes and backslashes."""
    codes = "|".join(code for letter in _MARKS for code in _codes(letter, _BEHIND_ESCAPES))
    return rf"(?:[\"'\\]|&(?:amp;)*(?:apos|bsol);|{codes}){{{length},{_MOST_WRITTEN * length}}}" + ("" if is_last else r"(?![\"'\\])")


def _letter(letter: str) -> str:
    """Return a pattern of anything else: of one letter, or of several that every way leaves as they are."""
    if _UNCHANGED.fullmatch(letter):
        return letter
    ways = [*_codes(letter, _ESCAPES), rf"\\{{0,{_MOST_ESCAPES}}}+{re.escape(letter)}"]
    if letter == " ":
        ways.append(r"\+")
    if letter in _CONTROLS:
        ways.append(rf"{_ESCAPES}{_CONTROLS[letter]}")
    if letter == "\n":
        ways.append(rf"\r\n|{_ESCAPES}r{_ESCAPES}n")
    return f"(?:{'|'.join(ways)})"


def _codes(letter: str, escapes: str) -> Iterator[str]:
    """Yield patterns of a letter by its number or name, in which backslashes are written as `escapes`."""
    code = ord(letter)
    utf8 = as_read(letter)
    utf16 = letter.encode("utf-16-be", errors="surrogatepass")
    if 0x80 <= code < 0x100:
        yield rf"{escapes}x(?i:{code:02x})"  # Python's
    yield "".join(rf"{escapes}u(?i:{utf16[place : place + 2].hex()})" for place in range(0, len(utf16), 2))
    yield "".join(rf"{escapes}(?:x(?i:{byte:02x})|0?{byte:03o})" for byte in utf8)
    yield rf"{escapes}U(?i:{code:08x})"
    yield "".join(rf"%(?:25)*(?i:{byte:02x})" for byte in utf8)
    yield rf"&(?:amp;)*#(?:0*{code}|[xX]0*(?i:{code:x}));"
    if code in codepoint2name:
        yield rf"&(?:amp;)*{codepoint2name[code]};"
