"""JSON that any reader takes, and that steers no terminal it is shown in."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np

_NOT_ASCII = re.compile(r"[^\n -~]")


def json_text(value: object) -> str:
    """Return a value as JSON; absent and non-finite numbers are null, and what is not printable stands as its escape."""
    text = json.dumps(finite(value), indent=2, ensure_ascii=False, allow_nan=False)
    return _NOT_ASCII.sub(lambda match: match[0] if match[0].isprintable() else _escape(match[0]), text)


def finite(value: Any) -> Any:
    """Return a JSON value with every NaN and infinity as None, and numpy's scalars as Python's."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def _escape(letter: str) -> str:
    return "\\u007f" if letter == "\x7f" else json.dumps(letter)[1:-1]
