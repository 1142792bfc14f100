"""perf_event_open(2): whether the kernel opens a counter of this thread, and what those that it keeps itself count over a loop."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass

from perfdiff.records.metrics import KERNEL_EVENTS

HARDWARE, _SOFTWARE = 0, 1
INSTRUCTIONS = 1
# The number of the system call, and of the attribute's bytes in its first version.
_SYSTEM_CALL = {"x86_64": 298, "aarch64": 241}
_ATTRIBUTE_BYTES = 64
_EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR = 1 << 5, 1 << 6
_CLOSE_ON_EXEC = 1 << 3
_COUNT_BYTES = 8
# What happens inside the kernel: never seen where its part may not be counted.
_INSIDE = frozenset(KERNEL_EVENTS[f"perf::{name}"] for name in ("CONTEXT-SWITCHES", "CPU-MIGRATIONS"))


class _Attribute(ctypes.Structure):
    """`struct perf_event_attr` of Linux, as far as a counter needs it."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("config", ctypes.c_uint64),
        ("sample_period", ctypes.c_uint64),
        ("sample_type", ctypes.c_uint64),
        ("read_format", ctypes.c_uint64),
        ("flags", ctypes.c_uint64),
        ("rest", ctypes.c_uint64 * 2),
    )


@dataclass(frozen=True, slots=True)
class EventCount:
    """What an event of the kernel counted; None where it cannot be had, `is_forbidden` where that is a matter of rights."""

    value: int | None
    is_forbidden: bool = False


def opened(kind: int, event: int, *, user_only: bool) -> int:
    """Return the descriptor of a counter of this thread, which runs; raise OSError where the kernel opens none."""
    number = _SYSTEM_CALL.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    flags = _EXCLUDE_HYPERVISOR | (_EXCLUDE_KERNEL if user_only else 0)
    attribute = _Attribute(type=kind, size=_ATTRIBUTE_BYTES, config=event, flags=flags)
    library = ctypes.CDLL(None, use_errno=True)
    descriptor = library.syscall(ctypes.c_long(number), ctypes.byref(attribute), 0, -1, -1, ctypes.c_ulong(_CLOSE_ON_EXEC))
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(descriptor)


def count(event: str, work: Callable[[], object]) -> EventCount:
    """Count one of `KERNEL_EVENTS` over some work, as the runtime does: the kernel's part as well, where that is permitted."""
    number = KERNEL_EVENTS[event]
    try:
        descriptor = _open_software(number)
    except PermissionError:
        return EventCount(None, is_forbidden=True)
    except OSError:
        return EventCount(None)
    try:
        work()
        return EventCount(int.from_bytes(os.read(descriptor, _COUNT_BYTES), "little"))
    finally:
        os.close(descriptor)


def _open_software(number: int) -> int:
    try:
        return opened(_SOFTWARE, number, user_only=False)
    except PermissionError:
        if number in _INSIDE:
            raise
        return opened(_SOFTWARE, number, user_only=True)
