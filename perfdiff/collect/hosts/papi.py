"""libpapi, asked in a process of its own: what it has, which events it knows, and whether it counts them.

Runs on its own by `python -I -S papi.py TASK`, so that a libpapi that crashes or hangs takes nobody with it. Tasks: `describe`,
`names`, `try EVENT…`, `together EVENT…`. Answers are lines of JSON, each written before the next event is touched.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

# The names that papi.c of the runtime looks for, in its order.
LIBRARIES = ("libpapi.so.7.2", "libpapi.so.7.1", "libpapi.so.7.0", "libpapi.so.7", "libpapi.so.6.0", "libpapi.so.6", "libpapi.so")
SDE_LIBRARIES = ("libsde.so.1", "libsde.so")
# The components whose events are a thread's or a process's own; others count the machine.
HARDWARE, SOFTWARE = "perf_event", "sde"

# papi.h, which is the same in 6.x and 7.x as far as it is used here.
_OK, _NULL = 0, -1
_LIB_VERSION = 21
_INTERFACE = 0xFFFF0000
_PRESETS = ctypes.c_int(0x80000000).value
_NATIVES = 0x40000000
_NEXT, _FIRST = 0, 1  # PAPI_ENUM_EVENTS, PAPI_ENUM_FIRST
_NAME_BYTES = 1024
_INFO_BYTES = 1 << 16  # more than a PAPI_event_info_t of any version
_SYMBOL, _SHORT, _LONG = 4, 4 + 1024, 4 + 1024 + 64  # where its texts begin

# The trial loop writes to so many bytes of new memory, one each line, and takes branches that nobody predicts.
_LOOP_BYTES = 8 << 20
_LOOP_BRANCHES = 100_000
_LINE = 64


class _Component(ctypes.Structure):
    """The beginning of a PAPI_component_info_t."""

    _fields_ = (
        ("name", ctypes.c_char * 128),
        ("short_name", ctypes.c_char * 64),
        ("description", ctypes.c_char * 128),
        ("version", ctypes.c_char * 64),
        ("support_version", ctypes.c_char * 64),
        ("kernel_version", ctypes.c_char * 64),
        ("disabled_reason", ctypes.c_char * 1024),
        ("disabled", ctypes.c_int),
        ("initialized", ctypes.c_int),
        ("index", ctypes.c_int),
        ("counters", ctypes.c_int),
    )


def load(names: tuple[str, ...], mode: int = ctypes.DEFAULT_MODE) -> ctypes.CDLL | None:
    """Return the first of the libraries that can be loaded."""
    for name in names:
        try:
            return ctypes.CDLL(name, mode)
        except OSError:
            continue
    return None


def run_loop() -> int:
    """Do what is counted in a trial: the same work each time, with instructions, branches, stores, misses and page faults in it."""
    state, taken = 1, 0
    with mmap.mmap(-1, _LOOP_BYTES) as memory:  # new pages each time; an allocator would hand out the last ones again
        for place in range(0, _LOOP_BYTES, _LINE):
            memory[place] = 1
    for _ in range(_LOOP_BRANCHES):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        if state & 0x10000:
            taken += 1
    return taken


class Papi:
    """libpapi, initialised. Results below `_OK` are its error codes."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        library.PAPI_get_component_info.restype = ctypes.POINTER(_Component)
        library.PAPI_strerror.restype = ctypes.c_char_p
        self.version = int(library.PAPI_get_opt(_LIB_VERSION, None))
        interface = ctypes.c_int(self.version & _INTERFACE).value
        self.ready = library.PAPI_library_init(interface) == interface and library.PAPI_multiplex_init() == _OK

    def components(self) -> Iterator[tuple[int, Any]]:
        """Yield index and description of each component."""
        for index in range(self.library.PAPI_num_components()):
            info = self.library.PAPI_get_component_info(index)
            if info:
                yield index, info.contents

    def error(self, code: int) -> str:
        """Return PAPI's words for an error."""
        return (self.library.PAPI_strerror(code) or b"unknown error").decode(errors="replace")

    def code(self, event: str) -> tuple[int, int]:
        """Return result and code of an event's name."""
        code = ctypes.c_int()
        return int(self.library.PAPI_event_name_to_code(event.encode(), ctypes.byref(code))), code.value

    def says(self, code: int) -> str:
        """Return PAPI's description of an event."""
        info = ctypes.create_string_buffer(_INFO_BYTES)
        if self.library.PAPI_get_event_info(code, info) != _OK:
            return ""
        texts = (info.raw[start:].split(b"\0", 1)[0].decode(errors="replace") for start in (_LONG, _SHORT))
        return next((text for text in texts if text), "")

    def names(self) -> Iterator[str]:
        """Yield the names of all presets and native events."""
        yield from self._enumerate(_PRESETS, self.library.PAPI_enum_event)
        for index, _ in self.components():

            def following(code: Any, step: int, index: int = index) -> int:
                return int(self.library.PAPI_enum_cmp_event(code, step, index))

            yield from self._enumerate(_NATIVES, following)

    def _enumerate(self, start: int, following: Callable[[Any, int], int]) -> Iterator[str]:
        code = ctypes.c_int(start)
        name = ctypes.create_string_buffer(_NAME_BYTES)
        step = _FIRST
        while following(ctypes.byref(code), step) == _OK:
            if self.library.PAPI_event_code_to_name(code, name) == _OK:
                yield name.value.decode(errors="replace")
            step = _NEXT

    def count(self, event: str) -> tuple[int, int]:
        """Return result and value of counting the trial loop."""
        created, chosen = self._event_set()
        value = ctypes.c_longlong()
        result = created if created != _OK else int(self.library.PAPI_add_named_event(chosen, event.encode()))
        if result == _OK:
            result = int(self.library.PAPI_start(chosen))
        if result == _OK:
            run_loop()
            result = int(self.library.PAPI_stop(chosen, ctypes.byref(value)))
        self._drop(chosen)
        return result, value.value

    def together(self, events: list[str]) -> list[str]:
        """Return those of the events that one event set takes, the first ones first."""
        _, chosen = self._event_set()
        taken = [event for event in events if self.library.PAPI_add_named_event(chosen, event.encode()) == _OK]
        self._drop(chosen)
        return taken

    def _event_set(self) -> tuple[int, ctypes.c_int]:
        chosen = ctypes.c_int(_NULL)
        return int(self.library.PAPI_create_eventset(ctypes.byref(chosen))), chosen

    def _drop(self, chosen: ctypes.c_int) -> None:
        self.library.PAPI_cleanup_eventset(chosen)
        self.library.PAPI_destroy_eventset(ctypes.byref(chosen))


def _answer(**values: object) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def _describe(papi: Papi, *, sde: bool) -> None:
    components = [
        {"name": info.name.decode(), "says": info.description.decode(errors="replace")}
        | {"absent": (info.disabled_reason.decode(errors="replace") or papi.error(info.disabled)) if info.disabled else ""}
        for _, info in papi.components()
    ]
    version = ".".join(str(papi.version >> shift & 0xFF) for shift in (24, 16, 8))
    _answer(version=version, ready=papi.ready, sde=sde, components=components)


def _try(papi: Papi, events: list[str]) -> None:
    for event in events:
        _answer(trying=event)
        named, code = papi.code(event)
        result, value = papi.count(event)
        _answer(
            event=event,
            known=named == _OK,
            result=result,
            error="" if result == _OK else papi.error(result),
            value=value,
            says=papi.says(code) if named == _OK else "",
        )


def main(task: str, arguments: list[str]) -> int:
    """Do a task; return 0, or 1 where there is no libpapi."""
    sde = load(SDE_LIBRARIES, ctypes.RTLD_GLOBAL) is not None  # libpapi looks its functions up in the global scope
    library = load(LIBRARIES)
    if library is None:
        return 1
    papi = Papi(library)
    match task:
        case "describe":
            _describe(papi, sde=sde)
        case "names":
            _answer(names=sorted(set(papi.names())))
        case "try":
            _try(papi, arguments)
        case "together":
            _answer(together=papi.together(arguments))
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1], sys.argv[2:])
    sys.stdout.flush()
    os._exit(status)  # not through libraries' destructors, which have nothing to say
