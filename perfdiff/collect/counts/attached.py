"""Counting a process from outside, by attaching PAPI to it: for programs without probes.

`python_papi` brings a libpapi of its own (6.0, the component perf_event alone), so this needs a PMU and no library of the system's. What
is counted is the process's first thread from the moment of attaching, in user mode: the bindings offer no way to follow other threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from perfdiff.collect.hosts import counters, machine
from perfdiff.collect.hosts.machine import Pmu
from perfdiff.errors import MeasurementError

Reading = Callable[[], Mapping[str, int]]


@contextmanager
def attached(pid: int, events: Sequence[str]) -> Iterator[Reading]:
    """Count events of a process while a `with` block lasts; what it yields reads the counts so far, also after the process's end.

    Raises `MeasurementError` where this machine, the kernel or the process's owner does not allow it.
    """
    from pypapi import papi_low
    from pypapi.exceptions import PapiError

    event_set = None
    try:
        papi_low.library_init()
        event_set = papi_low.create_eventset()
        for event in events:
            papi_low.add_named_event(event_set, event)
        papi_low.attach(event_set, pid)
        papi_low.start(event_set)
    except PapiError as error:
        if event_set is not None:
            _drop(event_set)
        raise MeasurementError(f"process {pid} cannot be counted from outside: {error}; {_reason()}", slug="attach-unavailable") from error
    try:
        yield lambda: dict(zip(events, papi_low.read(event_set), strict=True))
    finally:
        papi_low.stop(event_set)
        _drop(event_set)


def _reason() -> str:
    if machine.pmu() is Pmu.PRESENT:
        return "the libpapi 6.0 of python_papi may be too old for this processor, or the process belongs to another user"
    return ": ".join(counters.hardware_reason(None))


def _drop(event_set: int) -> None:
    from pypapi import papi_low

    papi_low.cleanup_eventset(event_set)
    papi_low.destroy_eventset(event_set)
