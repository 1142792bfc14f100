"""The file of known costs, `perfdiff-accepted.toml`: read strictly, written so that people can edit it."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from perfdiff import configuration
from perfdiff.analysis.acceptances import Acceptance
from perfdiff.config import Config
from perfdiff.configuration import tomlfile
from perfdiff.configuration.settings import TEXT, SettingKind, of_type
from perfdiff.configuration.tomlfile import Keys, TomlFile
from perfdiff.errors import ConfigError, UsageError

_TABLE = "accepted"
_DECIMALS = 4
_COST = Annotated[float, Meta(gt=0, le=sys.float_info.max)]
_REQUIRED = ("function", "metric", "ratio", "reason")
_HEAD = """\
# Costs that are known and accepted: comparisons list them, but do not call them regressions, up to the ratio (head over base) and the day
# given. Written by `perfdiff accept`; may be edited by hand.
"""


def _interval(value: object) -> tuple[float, float] | None:
    ends: tuple[float, float] | None = of_type(tuple[_COST, _COST])(value)
    return ends if ends is not None and ends[0] <= ends[1] else None


def _day(value: object) -> date | None:
    return value if isinstance(value, date) and not isinstance(value, datetime) else None


_text = of_type(TEXT)
_DAY = SettingKind("a date, such as 2027-01-31", _day)
_KEYS = {
    "function": SettingKind('the name of a function, such as "insert"', _text),
    "file": SettingKind('the path of its file, such as "src/list.c"', _text),
    "metric": SettingKind('the name of a metric, such as "wall_ns"', _text),
    "ratio": SettingKind("head over base, a number above 1, such as 1.4", of_type(Annotated[float, Meta(gt=1, le=sys.float_info.max)])),
    "interval": SettingKind("both ends of the ratio's interval, such as [1.3, 1.5]", _interval),
    "reason": SettingKind('a text, such as "checks its input now"', _text),
    "base": SettingKind('the name of a revision, such as "v1.2"', _text),
    "head": SettingKind('the name of a revision, such as "v1.3"', _text),
    "date": _DAY,
    "until": _DAY,
}


def path(directory: Path, config: Config) -> Path:
    """Return where the known costs of the configuration that holds in `directory` are kept: beside it."""
    folder = Path(config.source).parent if config.source else configuration.project(directory)
    return folder / config.compare.accepted


def read(file: Path) -> tuple[Acceptance, ...]:
    """Return the acceptances of a file, none if it does not exist; raise ConfigError with file, line and key."""
    return _entries(tomlfile.read(file)) if file.exists() else ()


def _entries(source: TomlFile) -> tuple[Acceptance, ...]:
    configuration.check_keys(source, source.table, (_TABLE,), ())
    tables = source.table.get(_TABLE, [])
    if not isinstance(tables, list):
        raise ConfigError(f"{source.place((_TABLE,))}: write [[{_TABLE}]] above each entry", slug="config-value")
    return tuple(_entry(source, table, (_TABLE, index)) for index, table in enumerate(tables))


def _entry(source: TomlFile, table: object, keys: Keys) -> Acceptance:
    values = configuration.checked_table(source, table, _KEYS, keys)
    for key in _REQUIRED:
        if key not in values:
            raise ConfigError(f"{source.place(keys)}: this [[{_TABLE}]] has no '{key}'", slug="accepted-incomplete")
    ratio = values["ratio"]
    low, high = values.get("interval", (ratio, ratio))
    if not low <= ratio <= high:
        raise ConfigError(
            f"{source.place((*keys, 'interval'))}: 'interval' [{low:g}, {high:g}] does not hold the ratio {ratio:g}", slug="config-value"
        )
    return Acceptance(
        function=values["function"],
        file=values.get("file", ""),
        metric=values["metric"],
        ratio=ratio,
        low=low,
        high=high,
        reason=values["reason"],
        base=values.get("base", ""),
        head=values.get("head", ""),
        day=values.get("date"),
        until=values.get("until"),
    )


def write(file: Path, entries: Sequence[Acceptance]) -> None:
    """Add entries to the file, each in place of one of the same function and metric; what people wrote about others stays as it is."""
    text = file.read_text(encoding="utf-8") if file.exists() else _HEAD
    same = {(entry.function, entry.file, entry.metric) for entry in entries}
    if file.exists():
        source = tomlfile.read(file)
        replaced = [i for i, old in enumerate(_entries(source)) if (old.function, old.file, old.metric) in same]
        text = _without(text, replaced, source)
    written = "\n".join([text.rstrip("\n"), *(f"\n{_written(entry)}" for entry in entries)]) + "\n"
    try:
        file.write_text(written, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"'{file}' cannot be written: {error.strerror}", slug="output-unwritable") from error


def _without(text: str, entries: Sequence[int], source: TomlFile) -> str:
    """Return the text without some entries: from each one's head line to its last key."""
    lines = text.splitlines(keepends=True)
    starts = sorted(line - 1 for keys, line in source.lines.items() if len(keys) == 2 and keys[0] == _TABLE)
    for index in reversed(entries):
        start = source.lines[_TABLE, index] - 1
        end = min((other for other in starts if other > start), default=len(lines))
        while _is_between(lines[end - 1]):
            end -= 1
        del lines[start:end]
    return "".join(lines)


def _is_between(line: str) -> bool:
    """Return whether a line belongs to no entry: what people wrote above the next one, or behind the last."""
    return not line.strip() or line.lstrip().startswith("#")


def _written(entry: Acceptance) -> str:
    digits = 10**_DECIMALS
    values: dict[str, Any] = {
        "function": entry.function,
        "file": entry.file,
        "metric": entry.metric,
        "ratio": round(entry.ratio, _DECIMALS),
        # Rounded outwards: an exact ratio must not exceed itself.
        "interval": [math.floor(entry.low * digits) / digits, math.ceil(entry.high * digits) / digits],
        "base": entry.base,
        "head": entry.head,
        "reason": entry.reason,
        "date": entry.day,
        "until": entry.until,
    }
    return "\n".join([f"[[{_TABLE}]]", *(f"{key} = {tomlfile.written(value)}" for key, value in values.items() if value)])
