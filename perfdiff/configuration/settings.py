"""The keys of the configuration: which there are, what each holds, and how it is read from TOML or from text."""

from __future__ import annotations

import re
import signal
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import GenericAlias
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from perfdiff.config import DETECTORS, FOLDER, JUDGES, KEEPS, NAME, OUTPUTS, PORT, PROJECT, RUNS_FOR_TIME, TCP, CacheSize
from perfdiff.languages.frameworks import frameworks
from perfdiff.languages.installed import installed
from perfdiff.languages.traits import Key, KeyKind

_CACHE_SIZE = re.compile(r"([0-9]{1,9}) ?([KMG]iB)/([0-9]{1,9})")
_OWN_HOST = r"http://(?:127\.0\.0\.1|localhost):"
_SIZE = re.compile(r"([0-9]{1,9}) ?([kKmM]?)(?:i?B)?")
_SIZE_UNITS = {"": 1, "k": 2**10, "m": 2**20}
_TIME = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?(s|m|min|h|)")
_TIME_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
# What a recording names at most, less those that the runtime itself has, and the bytes of a name (recording.h).
_MOST_EVENTS = 20
_EVENT_BYTES = 55


@dataclass(frozen=True, slots=True)
class SettingKind:
    """A kind of value. `read` returns the value or None where `found` is not of this kind; `wanted` names the kind with an example."""

    wanted: str
    read: Callable[[Any], Any]
    text: bool = False  # whether text from the environment is the value itself and not its TOML form


def variable(name: str) -> str:
    """Return the environment variable that gives a key's value: `build_command` is `PERFDIFF_BUILD_COMMAND`."""
    return f"PERFDIFF_{name}".upper()


def parse(setting: SettingKind, text: str) -> object:
    """Return the value that `text` from environment or command line stands for, not yet checked."""
    if setting.text:
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def parameter_values(text: str) -> tuple[float | str, ...]:
    """Return the values of `1000,3000,large`; numbers are numbers, all else is text."""
    return tuple(_scalar(part.strip()) for part in text.split(",") if part.strip())


def _scalar(text: str) -> float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _is_number(value: object) -> bool:
    """Return whether a value is a number that a float can hold; TOML's whole numbers may have any number of digits."""
    return isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) <= sys.float_info.max)


def of_type(kind: Any) -> Callable[[Any], Any]:
    """Return a function that converts values to a type and checks its bounds."""

    def read(value: Any) -> Any:
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError:
            return None

    return read


def _matching(pattern: str) -> Any:
    return Annotated[str, Meta(pattern=rf"(?s)\A(?:{pattern})\Z")]


def _some(kind: Any) -> Any:
    return Annotated[tuple[kind, ...], Meta(min_length=1)]


def _table(key: Any, value: Any) -> Any:
    return GenericAlias(dict, (key, value))


def _integer(lowest: int) -> Callable[[Any], Any]:
    return of_type(Annotated[int, Meta(ge=lowest)])


TEXT = Annotated[str, Meta(pattern=r"\S")]
_NAME = _matching(NAME.pattern)
_text, _texts = of_type(TEXT), of_type(tuple[TEXT, ...])


def _pattern(value: object) -> str | None:
    try:
        return value if isinstance(value, str) and re.compile(value) else None
    except (re.error, OverflowError, RecursionError):
        return None


def _one_of(options: Sequence[str]) -> SettingKind:
    return SettingKind(
        f"one of {', '.join(options)}", lambda value: value if isinstance(value, str) and value in options else None, text=True
    )


def _parameters(value: object) -> dict[str, tuple[float | str, ...]] | None:
    if not isinstance(value, dict):
        return None
    if not all(isinstance(values, list) and values and all(_is_number(v) or _text(v) for v in values) for values in value.values()):
        return None
    return {name: tuple(values) for name, values in value.items()}


def _port_names(value: object) -> tuple[str, ...] | None:
    names = _texts(value)
    taken = {PORT, FOLDER, PROJECT}
    return names if names is not None and all(NAME.fullmatch(name) for name in names) and len({*names} - taken) == len(names) else None


def _count(value: object) -> str | None:
    """Return a number, or a text with places, as text."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return str(value)
    return value if isinstance(value, str) and value.strip() else None


def _drawn(value: object) -> dict[str, tuple[float | str, ...]] | None:
    if not isinstance(value, dict) or not all(NAME.fullmatch(name) for name in value):
        return None
    return _parameters({name: [options] if isinstance(options, str) else options for name, options in value.items()})


def _patterns(value: object) -> tuple[str, ...] | None:
    """Return patterns, of which one may stand by itself."""
    patterns = _texts([value] if isinstance(value, str) else value)
    return patterns or None


def _signal(value: object) -> str | None:
    return value if isinstance(value, str) and f"SIG{value}" in signal.Signals.__members__ else None


def _events(value: object) -> tuple[str, ...] | None:
    names = _texts(value)
    if names is None or len(names) > _MOST_EVENTS or len(set(names)) < len(names):
        return None
    return None if any("," in name or len(name.encode()) > _EVENT_BYTES for name in names) else names


def _cache_size(value: object) -> CacheSize | None:
    match = _CACHE_SIZE.fullmatch(value) if isinstance(value, str) else None
    if not match or not int(match[1]) or not int(match[3]):
        return None
    return CacheSize(int(match[1]) * _UNITS[match[2]], int(match[3]))


_positive = of_type(Annotated[float, Meta(gt=0)])


def _size(value: object) -> int | None:
    """Return the bytes of `4096`, `4k` or `1M`."""
    written = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if written:
        value = int(written[1]) * _SIZE_UNITS[written[2].lower()]
    bytes_: int | None = _integer(1)(value)
    return bytes_


def _time(value: object) -> float | None:
    """Return the seconds of `90`, `90s`, `2m` or `1h`."""
    written = _TIME.fullmatch(value.strip()) if isinstance(value, str) else None
    seconds: float | None = _positive(float(written[1]) * _TIME_UNITS[written[2]] if written else value)
    return seconds


_SECONDS = SettingKind("a number of seconds above 0, such as 300", _positive)
_SHARE = SettingKind("a share between 0 and 1, such as 0.05", of_type(Annotated[float, Meta(gt=0, lt=1)]))
_TRUTH = SettingKind("true or false", of_type(bool))
_PATHS = SettingKind('a list of paths, such as ["bench/"]', _texts)

_CACHE = SettingKind('size and ways of a cache, such as "32 KiB/8"', _cache_size, text=True)

# Two runs a side are the fewest that have a spread.
RUNS = SettingKind(f"a whole number of at least 2, such as 10 (at least {RUNS_FOR_TIME} to judge the time of calls)", _integer(2))
SEED = SettingKind("a whole number of at least 0, such as 1", _integer(0))
SETUP = SettingKind('a shell command, such as "./bench/generate {n} > input"', _text, text=True)
PREPARE = SettingKind('a shell command, such as "rm -f cache.db"', _text, text=True)
WARMUP = SettingKind("a whole number of at least 0, such as 1", _integer(0))
SIZE = SettingKind('a size above 0, such as "4096", "16k" or "1M"', _size)
TIME = SettingKind('a time above 0, such as "90s", "2m" or "1h"', _time)
ADDRESS = SettingKind('the address of a Dask scheduler, such as "tcp://lab1:8786"', of_type(_matching(r"[a-z]+://\S+")), text=True)
BUILD_COMMAND = SettingKind('a shell command, such as "make -j2"', _text, text=True)


def _of_language(key: Key) -> SettingKind:
    """Return the setting that a key of a language's section is."""
    match key.kind:
        case KeyKind.TEXT:
            return SettingKind(key.wanted, _text, text=True)
        case KeyKind.TEXTS:
            return SettingKind(key.wanted, _texts)
        case KeyKind.TRUTH:
            return _TRUTH


LANGUAGES: Mapping[str, Mapping[str, SettingKind]] = {
    traits.name: {name: _of_language(key) for name, key in traits.keys.items()} for traits in installed() if traits.settings is not None
}
SECTIONS: Mapping[str, Mapping[str, SettingKind]] = {
    "build": {
        "command": BUILD_COMMAND,
        "overlay": _PATHS,
        "fuzz_targets": SettingKind('a list of sources with their seeds, such as ["fuzz/parse.c fuzz/corpus/*"]', _texts),
        "timeout_s": _SECONDS,
    },
    **LANGUAGES,
    "probes": {
        "overhead": _SHARE,
        "exclude": SettingKind('a list of path patterns, such as ["third_party/*"]', _texts),
        "depth": SettingKind("a whole number of at least 0, such as 3", _integer(0)),
        "samples": SettingKind("a whole number of at least 1, such as 1000", _integer(1)),
    },
    "measure": {
        "budget_s": _SECONDS,
        "fast": _TRUTH,
        "thorough": _TRUTH,
        "layouts": SettingKind("a whole number of at least 1, such as 6", _integer(1)),
        "wait_s": _SECONDS,
        "time": TIME,
    },
    "cluster": {"address": ADDRESS},
    "cache": {"max_gb": SettingKind("a number of GB above 0, such as 20", _positive)},
    "compare": {
        "min_effect": _SHARE,
        "fdr": _SHARE,
        "confidence": _SHARE,
        "seed": SEED,
        "accepted": SettingKind('a path, such as "perf/accepted.toml"', _text, text=True),
        "judge": _one_of(JUDGES),
        "memory": _SHARE,
        "outputs": _one_of(OUTPUTS),
        "detector": _one_of(DETECTORS),
    },
    "counters": {
        "events": SettingKind(
            f'a list of at most {_MOST_EVENTS} different names of at most {_EVENT_BYTES} bytes, such as ["PAPI_TOT_INS", "PAPI_L1_DCM"]',
            _events,
        ),
        "software": _TRUTH,
        "budget_s": _SECONDS,
        "l1d": _CACHE,
        "l2": _CACHE,
        "llc": _CACHE,
        "nodes": SettingKind("a whole number of at least 1, such as 2", _integer(1)),
    },
}
WORKLOAD: Mapping[str, SettingKind] = {
    "name": SettingKind('a name, such as "sort"', _text, text=True),
    "command": SettingKind('a command, such as "./bench/sort {n}"', _text, text=True),
    "requests": SettingKind('a file of requests, such as "requests.toml"', _text, text=True),
    **{name: SettingKind(offered.framework.wanted, offered.framework.read) for name, offered in frameworks().items()},
    "inputs": SettingKind('a pattern of files, such as "corpus/**/*.c", or a list of them', _patterns),
    "grammar": SettingKind('a path, such as "json.lark"', _text, text=True),
    "features": SettingKind("a table of regular expressions, such as { nodes = 'nodes: ([0-9]+)' }", of_type(_table(_NAME, TEXT))),
    "parameters": SettingKind("a table of lists of numbers or texts, such as { n = [1000, 3000, 10000] }", _parameters),
    "runs": RUNS,
    "timeout_s": _SECONDS,
    "setup": SETUP,
    "prepare": PREPARE,
    "check": SettingKind('a shell command, such as "grep -q done"', _text, text=True),
    "warmup": WARMUP,
    "alone": _TRUTH,
    "exit_codes": SettingKind("a list of exit codes from 0 to 255, such as [0, 1]", of_type(_some(Annotated[int, Meta(ge=0, le=255)]))),
    "services": SettingKind('a list of names of services, such as ["db"]', _texts),
    "min_effect": _SHARE,
}
REQUESTS: Mapping[str, SettingKind] = {
    "url": SettingKind('the address of a service, such as "http://127.0.0.1:{app.port}"', of_type(_matching(f"{_OWN_HOST}.*")), text=True),
    "count": SettingKind('a whole number of at least 0, or a parameter, such as "{n}"', _count),
    "seed": SEED,
    "concurrency": SettingKind("a whole number of at least 1, such as 8", _integer(1)),
    "rate": SettingKind("a number of requests a second above 0, such as 50", of_type(Annotated[float, Meta(gt=0)])),
    "timeout_s": _SECONDS,
}
REQUEST: Mapping[str, SettingKind] = {
    "name": SettingKind('a name, such as "list"', _text, text=True),
    "path": SettingKind('a path, such as "/files/{user}"', of_type(_matching("/.*"))),
    "method": SettingKind('a method in capitals, such as "POST"', of_type(_matching("[A-Z]+")), text=True),
    "headers": SettingKind('a table of texts, such as { Depth = "1" }', of_type(_table(_matching(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"), str))),
    "body": SettingKind('a text, such as \'{"name": "{name}"}\'', of_type(str), text=True),
    "body_bytes": SettingKind('a number of bytes, a range or a parameter, such as 1000, "100..10000" or "{size}"', _count),
    "body_file": SettingKind('a path beside the file of requests, such as "query.xml"', _text, text=True),
    "draw": SettingKind('a table of ranges and lists, such as { id = "1..1000", sort = ["name", "size"] }', _drawn),
    "weight": SettingKind("a number of at least 0, such as 5", of_type(Annotated[float, Meta(ge=0)])),
    "first": SettingKind("a whole number of at least 0, such as 20", _integer(0)),
    "after": SettingKind('the name of another request, such as "create"', _text, text=True),
    "expect": SettingKind("a list of statuses, such as [207, 404]", of_type(_some(Annotated[int, Meta(ge=100, le=599)]))),
}
SERVICE: Mapping[str, SettingKind] = {
    "name": SettingKind('a word of letters, digits and "_", such as "db"', of_type(_NAME), text=True),
    "command": SettingKind('a shell command, such as "./server --port {port}"', _text, text=True),
    "outside": _TRUTH,
    "keep": _one_of(KEEPS),
    "ready": SettingKind(
        '"tcp" or a URL on 127.0.0.1, such as "http://127.0.0.1:{port}/"', of_type(_matching(f"{TCP}|{_OWN_HOST}.*")), text=True
    ),
    "ready_line": SettingKind('a regular expression, such as "listening on"', _pattern),
    "ready_command": SettingKind('a shell command, such as "mariadb-admin --socket={folder}/socket ping"', _text, text=True),
    "ports": SettingKind(f'a list of different words other than {PORT}, {FOLDER} and {PROJECT}, such as ["admin"]', _port_names),
    "environment": SettingKind('a table of texts, such as { DATABASE = "127.0.0.1:{db.port}" }', of_type(_table(_NAME, str))),
    "install": SettingKind('a shell command, such as "mariadb-install-db --datadir={folder}/data"', _text, text=True),
    "setup": SettingKind('a shell command, such as "mariadb --socket={folder}/socket < schema.sql"', _text, text=True),
    "teardown": SettingKind('a shell command, such as "rm -rf uploads"', _text, text=True),
    "stop": SettingKind('the name of a signal, such as "INT"', _signal, text=True),
    "timeout_s": _SECONDS,
}
