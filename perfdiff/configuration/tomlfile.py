"""A TOML file whose keys know their lines, so that an error can name the place to mend."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from perfdiff.errors import ConfigError

Keys = tuple[str | int, ...]

_LARGEST = 2**20  # characters, and lines of a statement: finding where it ends takes time with the square of its lines
_LONGEST = 1000


@dataclass(frozen=True, slots=True)
class TomlFile:
    """A parsed file; `lines` maps paths of keys, such as `("workload", 0, "runs")`, to 1-based lines."""

    path: Path
    table: Mapping[str, Any]
    lines: Mapping[Keys, int]

    def place(self, keys: Keys) -> str:
        """Return file and line of a key as people write them; of its nearest table where the key itself has no line."""
        for length in range(len(keys), 0, -1):
            line = self.lines.get(keys[:length])
            if line is not None:
                return f"{self.path}, line {line}"
        return str(self.path)


def read(path: Path) -> TomlFile:
    """Read `path`; raise `ConfigError` where it cannot be read or is not TOML."""
    try:
        text = path.read_text(encoding="utf-8")
        if len(text) > _LARGEST:
            raise ConfigError(f"{path}: has {len(text):,} characters; at most {_LARGEST:,} are read", slug="config-syntax")
        return TomlFile(path, tomllib.loads(text), _lines(text))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}", slug="config-unreadable") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: not valid TOML: nested too deeply", slug="config-syntax") from error
    except ValueError as error:  # of TOML itself, of its encoding, and of numbers with thousands of digits
        raise ConfigError(f"{path}: not valid TOML: {error}", slug="config-syntax") from error


def written(value: object) -> str:
    """Return a date, text, number, truth value or list of such as TOML, whose strings are JSON's; what is not printable is an escape."""
    if isinstance(value, date):
        return value.isoformat()
    return "".join(letter if letter.isprintable() else f"\\U{ord(letter):08x}" for letter in json.dumps(value, ensure_ascii=False))


def _lines(text: str) -> dict[Keys, int]:
    lines: dict[Keys, int] = {}
    last_element: dict[Keys, int] = {}
    table: Keys = ()
    for line, statement in _statements(text):
        parsed = tomllib.loads(statement)
        if not parsed:
            continue
        written = _written_keys(parsed)
        if statement.lstrip().startswith("[["):
            array = _with_elements(written, last_element)
            last_element[array] = last_element.get(array, -1) + 1
            table = keys = (*array, last_element[array])
        elif statement.lstrip().startswith("["):
            table = keys = _with_elements(written, last_element)
        else:
            keys = (*table, *written)
        for length in range(1, len(keys) + 1):
            lines.setdefault(keys[:length], line)
    return lines


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield each statement with its first line: the shortest run of lines that is TOML by itself."""
    first, statement = 1, ""
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        statement += line
        if number - first >= _LONGEST:
            raise ValueError(f"the statement in line {first} has more than {_LONGEST:,} lines")
        try:
            tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        yield first, statement
        first, statement = number + 1, ""


def _written_keys(parsed: Mapping[str, Any]) -> Keys:
    keys: list[str] = []
    node: Any = parsed
    while isinstance(node, dict) and len(node) == 1:
        key, node = next(iter(node.items()))
        keys.append(key)
    return tuple(keys)


def _with_elements(keys: Keys, last_element: Mapping[Keys, int]) -> Keys:
    """Return `keys` with the index of the latest element behind the name of each array of tables but the last."""
    resolved: Keys = ()
    for position, key in enumerate(keys):
        resolved = (*resolved, key)
        if position < len(keys) - 1 and resolved in last_element:
            resolved = (*resolved, last_element[resolved])
    return resolved
