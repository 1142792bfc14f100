"""Calls of a function: recorded while a program runs, and made again alone, with other values in their arguments.

    record FILE NAME OUT WORDS...            run a program as its interpreter would, and write the calls of a function of a file to OUT
    again OUT                                keep of these what returns the same alone
    call FOLDER TARGET CALL PLACE INPUT      make a call with the content of a file in a place of it, or a number

A call is JSON: a list of positional arguments and a table of keywords; a place is the way to one of its values (`0/1/2`). What stands there
says what a file has: a text itself, a list line by line, else JSON. Only plain values are written and read: nothing is unpickled. What JSON
has not is a table with one key: `bytes`, `tuple`, `set`, `dict` (pairs) or `float` (infinities). OUT has `calls`, `folder` and `target` by
which they are made again, and `refused`: why others cannot be, and how many. A call that writes files, starts processes or opens
connections is none that may be made with other values: it is ended.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import math
import os
import runpy
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType, GeneratorType
from typing import Any

_MOST_CALLS, _LARGEST = 200, 4096  # that are kept, each once, and characters of one
_MOST_SEEN = 20_000  # of the calls of a run
_SUSPENDED = 0x80 | 0x200  # CO_COROUTINE, CO_ASYNC_GENERATOR
_GENERATOR, _VARIADIC, _KEYWORDS = 0x20, 0x04, 0x08
_OTHERWISE = "alone it returns something else: it hangs on more than its arguments"
_PLAIN = (str, int, bool, type(None))
_OUTWARD = ("subprocess.", "socket.", "shutil.", "ctypes.", "os.exec", "os.fork", "os.kill", "os.posix_spawn", "os.spawn", "os.system")
_WRITING = ("os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.truncate", "os.utime")


class NotAloneError(Exception):
    """A call that cannot be made alone, and why."""


def encoded(value: Any) -> Any:
    """Return what JSON has of a plain value; raise NotAloneError of others, by the type's name."""
    kind = type(value)
    if kind in _PLAIN or (kind is float and math.isfinite(value)):
        return value
    if kind is list:
        return [encoded(item) for item in value]
    writers: dict[type, Callable[[], Any]] = {
        float: lambda: {"float": repr(value)},
        bytes: lambda: {"bytes": value.decode("latin-1")},
        tuple: lambda: {"tuple": [encoded(item) for item in value]},
        set: lambda: {"set": sorted((encoded(item) for item in value), key=repr)},
        dict: lambda: {"dict": [[encoded(key), encoded(item)] for key, item in value.items()]},
    }
    if kind not in writers:
        raise NotAloneError(kind.__qualname__)
    return writers[kind]()


def decoded(value: Any) -> Any:
    """Return the plain value that JSON stands for."""
    if isinstance(value, list):
        return [decoded(item) for item in value]
    if not isinstance(value, dict):
        return value
    [(kind, content)] = value.items()
    readers: dict[str, Callable[[], Any]] = {
        "float": lambda: float(content),
        "bytes": lambda: content.encode("latin-1"),
        "tuple": lambda: tuple(map(decoded, content)),
        "set": lambda: set(map(decoded, content)),
        "dict": lambda: {decoded(key): decoded(item) for key, item in content},
    }
    return readers[kind]()


class _Recorder:
    """Sees the calls of a function: `calls` with what they returned, which is "" where that is not plain."""

    def __init__(self, file: str, name: str) -> None:
        self.calls: dict[str, str] = {}
        self.refused: Counter[str] = Counter()
        self.module = ""
        self._file, self._name, self._seen = os.path.realpath(file), name, 0
        self._open: dict[int, str] = {}
        self._is_it: dict[CodeType, bool] = {}

    def __call__(self, frame: FrameType, event: str, value: Any) -> None:
        if event not in ("call", "return") or not self._is_meant(frame.f_code):
            return
        if event == "return":
            call = self._open.pop(id(frame), None)
            if call is not None and not frame.f_code.co_flags & _GENERATOR:
                self.calls[call] = _digest(value)
            return
        self._seen += 1
        if self._seen > _MOST_SEEN or len(self.calls) >= _MOST_CALLS:
            return
        try:
            call = _call(frame)
        except NotAloneError as error:
            self.refused[str(error)] += 1
            return
        spec = frame.f_globals.get("__spec__")
        name = spec.name if spec else str(frame.f_globals["__name__"])
        self.module = "" if name == "__main__" else name
        if call not in self.calls:
            self.calls[call], self._open[id(frame)] = "", call

    def _is_meant(self, code: CodeType) -> bool:
        is_meant = self._is_it.get(code)
        if is_meant is None:
            is_named = code.co_name == self._name.rpartition(".")[2]
            is_named &= getattr(code, "co_qualname", self._name) == self._name  # which CPython has from 3.11 on
            is_meant = self._is_it[code] = is_named and os.path.realpath(code.co_filename) == self._file
        return is_meant


def _call(frame: FrameType) -> str:
    """Return the call that a frame begins with, as JSON."""
    call = json.dumps(_arguments(frame))
    if len(call) > _LARGEST:
        raise NotAloneError(f"its arguments take more than {_LARGEST} characters")
    return call


def _arguments(frame: FrameType) -> list[Any]:
    """Return the arguments that a frame begins with; raise NotAloneError where one is not plain."""
    code, values = frame.f_code, frame.f_locals
    if code.co_flags & _SUSPENDED:
        raise NotAloneError("it is a coroutine")
    names = code.co_varnames
    positional, end = names[: code.co_argcount], code.co_argcount + code.co_kwonlyargcount
    rest = names[end] if code.co_flags & _VARIADIC else None
    keywords = names[end + (rest is not None)] if code.co_flags & _KEYWORDS else None
    given: dict[str, Any] = {}
    for name in (*positional, *names[code.co_argcount : end], *filter(None, (rest, keywords))):
        try:
            given[name] = encoded(values[name])
        except KeyError:
            raise NotAloneError(f"`{name}` belongs to a closure") from None
        except RecursionError:
            raise NotAloneError(f"`{name}` holds itself") from None
        except NotAloneError as error:
            raise NotAloneError(f"`{name}` is a {error}, or has one") from None
    first = [given[name] for name in positional] + (given[rest]["tuple"] if rest else [])
    named = {name: given[name] for name in names[code.co_argcount : end]}
    return [first, named | dict(given[keywords]["dict"] if keywords else ())]


def _digest(value: Any) -> str:
    try:
        return json.dumps(encoded(value))
    except (NotAloneError, RecursionError, ValueError):
        return ""


class _Guard:
    """Ends a call that does what shows outside of this process."""

    def __init__(self) -> None:
        self._is_on = False
        sys.addaudithook(self._look)

    def _look(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._is_on:
            return
        is_written = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if is_written or event.startswith(_OUTWARD) or event in _WRITING:
            raise NotAloneError(f"it does what shows outside of it ({event})")

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        self._is_on = True
        try:
            yield
        finally:
            self._is_on = False


def _made(function: Any, call: tuple[list[Any], dict[str, Any]], guard: _Guard) -> Any:
    first, named = call
    with guard.on():
        value = function(*first, **named)
        if isinstance(value, GeneratorType):
            deque(value, maxlen=0)
    return value


def _function(folder: str, target: str) -> Any:
    """Return the function that a target names: `module:name`, or `file.py:name` of a program."""
    place, _, name = target.rpartition(":")
    sys.path.insert(0, str(Path(folder).resolve()))
    if place.endswith(".py"):
        spec = importlib.util.spec_from_file_location(Path(place).stem, place)
        assert spec is not None, "a source has a loader"
        assert spec.loader is not None, "a source has a loader"
        module: Any = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(place)
    for part in name.split("."):
        module = getattr(module, part)
    return module


def record(file: str, name: str, out: str, *words: str) -> None:
    """Run a program, and write the calls of a function that it makes."""
    recorder, folder = _Recorder(file, name), str(Path.cwd() if words[0] == "-m" else Path(words[0]).resolve().parent)
    sys.path[0] = folder
    sys.argv[:] = ["-m", *words[2:]] if words[0] == "-m" else list(words)
    described = {"folder": os.path.relpath(folder), "target": os.path.relpath(file)}
    threading.setprofile(recorder)
    sys.setprofile(recorder)
    try:
        if words[0] == "-m":
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(words[0], run_name="__main__")
    finally:
        sys.setprofile(None)
        described["target"] = f"{recorder.module or described['target']}:{name}"
        Path(out).write_text(json.dumps({**described, "calls": recorder.calls, "refused": recorder.refused}))


def again(out: str) -> None:
    """Leave of the calls in a recording those that can be made alone, and say why others cannot.

    They are made in another order than in the program; where one of them returns something else, none of them is left.
    """
    recording: dict[str, Any] = json.loads(Path(out).read_text())
    refused, guard = Counter(recording["refused"]), _Guard()
    alike: list[str] = []
    function = _function(recording["folder"], recording["target"]) if recording["calls"] else None
    for call, returned in reversed(recording["calls"].items()):
        try:
            value = _made(function, decoded_call(call), guard)
        except NotAloneError as error:
            refused[str(error)] += 1
        except (Exception, SystemExit) as error:  # noqa: BLE001 (whatever a program raises)
            refused[f"alone it raises {type(error).__name__}"] += 1
        else:
            if returned and _digest(value) != returned:
                refused[_OTHERWISE] += 1
            alike.append(call)
    Path(out).write_text(json.dumps({**recording, "calls": [] if _OTHERWISE in refused else alike, "refused": refused}))


def call(folder: str, target: str, text: str, place: str, given: str) -> None:
    """Make a call with the content of a file in a place of it, or a number."""
    whole: Any = json.loads(text)
    inner, steps = whole, place.split("/")
    for step in steps[:-1]:
        inner = inner[_key(inner, step)]
    key = _key(inner, steps[-1])
    inner[key] = _given(inner[key], given, "latin-1" if key == "bytes" else "utf-8")
    function = _function(folder, target)
    _made(function, decoded_call(json.dumps(whole)), _Guard())


def _key(container: Any, step: str) -> Any:
    return int(step) if isinstance(container, list) else step


def decoded_call(text: str) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a call, by position and by keyword."""
    first, named = json.loads(text)
    return decoded(first), {name: decoded(value) for name, value in named.items()}


def _given(before: Any, given: str, encoding: str) -> Any:
    """Return the JSON that takes the place of a value, of its kind."""
    if type(before) is int:
        return int(given)
    content = Path(given).read_bytes().decode(encoding, errors="replace")
    if isinstance(before, str):
        return content
    return [json.loads(line) for line in content.splitlines() if line.strip()] if isinstance(before, list) else json.loads(content)
