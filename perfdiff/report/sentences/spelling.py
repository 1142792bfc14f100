"""Templates of sentences, and how facts are spelt in them: `takes {extra_ns:duration} more a call`."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perfdiff import units

MOST_NAMES = 4  # in one sentence

Facts = Mapping[str, Any]
Wording = str | Callable[[Facts], str]  # a template, or what makes the sentence of its facts, in which claims are words already


def filled(template: str, facts: Facts) -> str:
    """Return a template with the facts that its places name, each spelt as the place says."""
    return _TEMPLATES.vformat(template, (), facts)


def _interval(figures: tuple[float, float, float]) -> str:
    value, low, high = figures
    return f"{units.ratio(value)} [{units.significant(low)}, {units.significant(high)}]"


def _quoted(names: Sequence[str]) -> list[str]:
    return [f"`{name}`" for name in names]


SPELLINGS: Mapping[str, Callable[[Any], str]] = {
    "count": units.count,
    "duration": units.duration,
    "few": lambda names: units.listed(_quoted(names), MOST_NAMES),
    "interval": _interval,
    "lowered": lambda sentence: f"{sentence[:1].lower()}{sentence[1:]}",
    "names": lambda names: ", ".join(_quoted(names)),
    "percent": lambda share: f"{units.significant(100 * share)} %",
    "ratio": units.ratio,
    "significant": units.significant,
    "size": units.size,
    "times": units.times,
}


class _Templates(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        return SPELLINGS[format_spec](value) if format_spec else str(value)


_TEMPLATES = _Templates()
