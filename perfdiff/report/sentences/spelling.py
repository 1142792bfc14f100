"""Templates of sentences, and how facts are spelt in them: `takes {extra_ns:duration} more a call`.

A place with a question mark tells one of two things, by whether there is such a fact: `{base_ns:?{base_ns:duration} before|anew}`.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perfdiff import units
from perfdiff.models.workcounter import plain
from perfdiff.records.metrics import METRICS, metric_of

MOST_NAMES = 4  # in one sentence
FEWER_NAMES = 3  # where a sentence has much else
CODE_WIDTH = 60  # characters of a line of code that a sentence can hold; the diff in the report has them all
LEAST_COUNT = 0.001

Facts = Mapping[str, Any]
Wording = str | Callable[[Facts], str]  # a template, or what makes the sentence of its facts, in which claims are words already


def filled(template: str, facts: Facts) -> str:
    """Return a template with the facts that its places name, each spelt as the place says, nothing where there is none."""
    places = string.Formatter().parse(template)
    return "".join(f"{text}{_spelt(facts[name], spelling or '', facts) if name else ''}" for text, name, spelling, _ in places)


def _spelt(fact: Any, spelling: str, facts: Facts) -> str:
    if spelling.startswith("?"):
        return filled(choices(spelling)[0 if fact else 1], facts)
    if fact is None:
        return ""
    return SPELLINGS[spelling](fact) if spelling in SPELLINGS else format(fact, spelling)


def choices(spelling: str) -> tuple[str, str]:
    """Return the templates for a fact that is there, and for one that is not, of a spelling such as `?{n:count} before|for once`."""
    depth = 0
    for place, letter in enumerate(spelling):
        depth += (letter == "{") - (letter == "}")
        if letter == "|" and not depth:
            return spelling[1:place], spelling[place + 1 :]
    return spelling[1:], ""


def often(count: float) -> str:
    """Return how often something happens; what nearly never does is told as such, as no reader counts zeros."""
    if count == 0:
        return "never"
    number = units.count(count) if count >= LEAST_COUNT else f"less than {LEAST_COUNT}"
    return "once" if number == "1" else f"{number} times"


def excerpt(code: str) -> str:
    """Return a line of code, cut at a word where it is longer than a sentence can hold."""
    if len(code) <= CODE_WIDTH:
        return code
    beginning = code[: CODE_WIDTH - 1]
    return f"{beginning[: beginning.rfind(' ') if ' ' in beginning[CODE_WIDTH // 2 :] else None].rstrip()}…"


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
    "about": lambda value: units.significant(value, 2),
    "and": " and ".join,
    "and-beside": ", and ".join,
    "cache": {"llc_misses": "the last-level cache", "l2_misses": "the L2 cache", "l1d_misses": "the L1 cache"}.__getitem__,
    "centres": lambda costs: ", ".join(f"{cost:.4g}" for cost in costs),
    "code": lambda text: f"`{excerpt(text)}`",
    "commas": ", ".join,
    "count": units.count,
    "counted-metric": lambda metric: metric_of(metric).counts,
    "counted": lambda counter: METRICS[counter].what if counter in METRICS else counter,
    "duration": units.duration,
    "few": lambda names: few(quoted(names)),
    "first-three": lambda texts: "; ".join(texts[:FEWER_NAMES]),
    "inputs": lambda names: ", ".join(names) or "its inputs",
    "interval": interval,
    "joined": "; ".join,
    "listed": few,
    "lowered": lambda sentence: f"{sentence[:1].lower()}{sentence[1:]}",
    "megabytes": lambda size: f"{size / 1e6:g} MB",
    "milliseconds": lambda seconds: f"{1e3 * seconds:g} ms",
    "metric": lambda metric: metric_of(metric).says,
    "names": lambda names: ", ".join(quoted(names)),
    "often": often,
    "percent": percent,
    "port": lambda service: f"{{{service}.port}}",
    "ratio": units.ratio,
    "run-on": "".join,
    "significant": units.significant,
    "size": units.size,
    "slow-downs": slow_downs,
    "three": three,
    "three-names": lambda names: three(quoted(names)),
    "times": units.times,
    "whole-percent": lambda share: f"{100 * share:.0f} %",
    "work": plain,
}
