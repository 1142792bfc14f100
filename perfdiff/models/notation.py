"""How numbers and names are spelt in the text form of annotations."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal, localcontext

# What stands before a feature says where it comes from; other origins are told behind it.
PLACES = {"workload": "workload.", "argument": "arg.", "global": "global.", "system": "system."}
# Words of the language, which name no feature.
RESERVED = frozenset({"absent", "log", "log2", "Norm", "Exp", "Binom", "true", "false", "int", "uint", "double", "enum", "bool"})

LOGARITHMS = ("log2", "log10", "log", "ln")  # functions where a bracket follows

FUNCTION = r"[\w:~][\w:<>~*&,. ]*"
METRIC = r"\w+"
LABEL = r"[A-Za-z_]\w*(?:::\w+)*"
CALL = r"[A-Za-z_]\w*(?:(?:->|\.)\w+)*(?:\([\w, .>-]*\))?"
_DIGITS = 80  # of exact sums: enough for costs from 1e-20 to 1e40, to their last digit


@contextmanager
def exact() -> Iterator[None]:
    """Let sums and products of decimals be exact."""
    with localcontext() as context:
        context.prec = _DIGITS
        yield


def shortest(value: float | Decimal) -> str:
    """Return the shortest text that reads back as the same number."""
    text = str(value.normalize()) if isinstance(value, Decimal) else repr(float(value)).removesuffix(".0")
    return format(Decimal(text), "f") if re.search(r"[eE]\+1?\d$", text) else text


def six_digits(value: float | Decimal) -> str:
    """Return a number with at most six significant digits."""
    return f"{float(value):.6g}"


def decimal(value: float) -> Decimal:
    """Return the number as it is spelt, free of the rounding of sums and products."""
    return Decimal(repr(float(value)))


def quoted(text: str) -> str:
    """Return any text as a string literal of JSON on one line; what cannot be written as UTF-8 is escaped."""
    return json.dumps(text, ensure_ascii=not text.isprintable())


def spelt(text: str, pattern: str) -> str:
    """Return a name unquoted if all of it matches `pattern`, else as a quoted string."""
    return text if re.fullmatch(pattern, text) and text == text.strip() and text.isprintable() else quoted(text)


def is_plain(text: str, *, without: str) -> bool:
    """Return whether a text can stand unquoted where the characters `without` end it."""
    return bool(text) and text == text.strip() and text.isprintable() and "//" not in text and not set(text) & set(without + '"')


def finite(value: float) -> bool:
    """Return whether a quality was measured at all."""
    return math.isfinite(value)
