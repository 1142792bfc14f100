"""Values of the configuration held against what they may be; messages name the place of what is amiss."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from perfdiff.configuration.settings import SettingKind
from perfdiff.configuration.tomlfile import Keys, TomlFile
from perfdiff.errors import ConfigError

COMMAND_LINE = "command line"


def checked_table(source: TomlFile, table: object, settings: Mapping[str, SettingKind], keys: Keys) -> dict[str, Any]:
    """Return the values of a table of `source` at `keys`; raise ConfigError where one is unknown or not of its kind."""
    if not isinstance(table, dict):
        raise ConfigError(f"{source.place(keys)}: '{keys[0]}' must be a table: write [{keys[0]}] above its keys", slug="config-value")
    check_keys(source, table, settings, keys)
    return {key: checked(value, settings[key], source.place((*keys, key)), key) for key, value in table.items()}


def check_keys(source: TomlFile, table: Mapping[str, Any], allowed: Iterable[str], keys: Keys) -> None:
    """Raise ConfigError where a table of `source` at `keys` has a key that is not known."""
    for key in table:
        if key not in allowed:
            where = f"in [{keys[0]}]" if keys else "at the top"
            raise ConfigError(
                f"{source.place((*keys, key))}: unknown key '{key}'; {where} there are {', '.join(allowed)}{nearest(key, allowed)}",
                slug="config-key",
            )


def nearest(word: str, words: Iterable[str]) -> str:
    """Return `; did you mean …?` with the nearest of the known words, or nothing where none is near.

    Neither case nor the scope of a function in C++ makes a difference.
    """
    spelled: dict[str, str] = {}
    for candidate in words:
        plain = candidate.partition("(")[0]
        for form in (candidate, plain.rpartition("::")[2], plain.rpartition("\\")[2]):
            spelled.setdefault(form.casefold(), candidate)
    near = difflib.get_close_matches(word.casefold(), spelled, n=1)
    return f"; did you mean '{spelled[near[0]]}'?" if near else ""


def checked(raw: object, setting: SettingKind, place: str, key: str) -> Any:
    """Return a value converted as `setting` says; raise ConfigError if it is of another type or out of range."""
    value = setting.read(raw)
    if value is None:
        where = key if place == COMMAND_LINE else f"{place}: '{key}'"
        raise ConfigError(f"{where} is {json.dumps(raw, default=str)}; it must be {setting.wanted}", slug="config-value")
    return value


def tables(source: TomlFile, name: str) -> list[Any]:
    """Return the tables of a list in `source`, as [[workload]] is one; raise ConfigError where it is none."""
    array = source.table.get(name, [])
    if not isinstance(array, list):
        raise ConfigError(f"{source.place((name,))}: {name}s are a list: write [[{name}]] above each one", slug="config-value")
    return array
