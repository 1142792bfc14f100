"""`[budget]`: what costs of head may be at most, as `"render.time" = "p99 < 40 ms at production inputs"`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from perfdiff.config import CostBudget
from perfdiff.configuration.tomlfile import Keys, TomlFile
from perfdiff.errors import ConfigError

SECTION = "budget"
_UNITS: Mapping[str, tuple[float, str]] = {
    **{name: (size, "ns") for name, size in {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}.items()},
    **{name: (size, "bytes") for name, size in {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9}.items()},
    "": (1.0, "count"),
}
_LIMIT = re.compile(
    r"(?P<statistic>mean|median|p(?P<percent>\d{1,2}(?:\.\d+)?))\s*<\s*"
    rf"(?P<number>\d+(?:\.\d+)?(?:e\d+)?)\s*(?P<unit>{'|'.join(_UNITS)})"
    r"(?:\s+at\s+(?:(?P<use>production\s+inputs)|(?P<inputs>\S+=\S+(?:\s+\S+=\S+)*)))?"
)
_WANTED = 'a limit, such as "p99 < 40 ms", "mean < 2 MB at n=1e6" or "p99 < 40 ms at production inputs"'


def read(source: TomlFile) -> Iterator[CostBudget]:
    """Yield the budgets of a file; raise ConfigError at the place of what is none."""
    table = source.table.get(SECTION, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{source.place((SECTION,))}: '{SECTION}' must be a table: write [{SECTION}] above its keys", slug="config-value")
    for subject, text in table.items():
        yield _budget(source, (SECTION, subject), subject, text)


def _budget(source: TomlFile, keys: Keys, subject: str, text: object) -> CostBudget:
    limit = _LIMIT.fullmatch(text.strip()) if isinstance(text, str) else None
    if limit is None or not isinstance(text, str):
        hint = '; a name with a dot stands in quotes: "render.time"' if isinstance(text, dict) else ""
        raise ConfigError(f"{source.place(keys)}: '{subject}' must be {_WANTED}{hint}", slug="config-value")
    size, unit = _UNITS[limit["unit"]]
    return CostBudget(
        subject,
        " ".join(text.split()),
        {"mean": None, "median": 0.5}[limit["statistic"]] if limit["percent"] is None else float(limit["percent"]) / 100,
        float(limit["number"]) * size,
        unit,
        dict(word.rpartition("=")[::2] for word in (limit["inputs"] or "").split()),
        limit["use"] is not None,
    )
