"""Templates of sentences, and how facts are spelt in them: `takes {extra_ns:duration} more a call`."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perfdiff import units
from perfdiff.records.metrics import metric_of

MOST_NAMES = 4  # in one sentence
FEWER_NAMES = 3  # where a sentence has much else

Facts = Mapping[str, Any]
Wording = str | Callable[[Facts], str]  # a template, or what makes the sentence of its facts, in which claims are words already


def filled(template: str, facts: Facts) -> str:
    """Return a template with the facts that its places name, each spelt as the place says; nothing for what is None."""
    return _TEMPLATES.vformat(template, (), facts)


def interval(figures: tuple[float, float, float]) -> str:
    """Return a ratio with its interval."""
    value, low, high = figures
    return f"{units.ratio(value)} [{units.significant(low)}, {units.significant(high)}]"


def quoted(names: Sequence[str]) -> list[str]:
    """Return names of code, as sentences mark them."""
    return [f"`{name}`" for name in names]


def few(texts: Sequence[str]) -> str:
    """Return as many of some texts as a sentence names, and how many more there are."""
    return units.listed(texts, MOST_NAMES)


def three(texts: Sequence[str]) -> str:
    """Return as many of some texts as stand beside much else in a sentence, and how many more there are."""
    return units.listed(texts, FEWER_NAMES)


def percent(share: float) -> str:
    """Return a share in percent."""
    return f"{units.significant(100 * share)} %"


def slow_downs(ratio: float) -> str:
    """Return slow-downs from a ratio on."""
    return f"slow-downs of more than {percent(ratio - 1)}" if ratio > 1 else "slow-downs of any size"


SPELLINGS: Mapping[str, Callable[[Any], str]] = {
    "and": " and ".join,
    "and-beside": ", and ".join,
    "commas": ", ".join,
    "count": units.count,
    "duration": units.duration,
    "few": lambda names: few(quoted(names)),
    "first-three": lambda texts: "; ".join(texts[:FEWER_NAMES]),
    "inputs": lambda names: ", ".join(names) or "its inputs",
    "interval": interval,
    "joined": "; ".join,
    "listed": few,
    "lowered": lambda sentence: f"{sentence[:1].lower()}{sentence[1:]}",
    "metric": lambda metric: metric_of(metric).says,
    "names": lambda names: ", ".join(quoted(names)),
    "percent": percent,
    "ratio": units.ratio,
    "significant": units.significant,
    "size": units.size,
    "slow-downs": slow_downs,
    "three": three,
    "three-names": lambda names: three(quoted(names)),
    "times": units.times,
    "whole-percent": lambda share: f"{100 * share:.0f} %",
}


class _Templates(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        return "" if value is None else SPELLINGS[format_spec](value) if format_spec else str(value)


_TEMPLATES = _Templates()
