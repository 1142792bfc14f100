"""Services that a check makes worse to reach: how delays, bandwidths and failures are written on the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from perfdiff.config import ServiceConfig, ServiceLink, WorkloadConfig
from perfdiff.errors import ConfigError, UsageError

_SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_BYTES = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9}
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_TIME = rf"({_NUMBER})({'|'.join(_SECONDS)})"
_SIZE = rf"({_NUMBER})({'|'.join(_BYTES)})"
_DELAY = re.compile(rf"{_TIME}(?:(?:±|\+-){_TIME})?")
_BANDWIDTH = re.compile(rf"{_SIZE}/s")
_FAILURES = re.compile(rf"(refused:|lost:)?({_NUMBER})%")
_AFTER = re.compile(rf"after:{_SIZE}")
_RANGE = re.compile(rf"({_NUMBER})\.\.({_NUMBER})({'|'.join(_SECONDS)})")
_LIST = re.compile(rf"({_NUMBER}(?:,{_NUMBER})+)({'|'.join(_SECONDS)})")
# Where a range stands for delays, those of the HotCloud paper, 0, 1, 2, 5 and 10 ms, in proportion.
_STEPS = (0.0, 0.1, 0.2, 0.5, 1.0)
_LONGEST_S = 60.0
_PLACES = 9  # decimals that are kept: those of the arithmetic are not what was asked for


@dataclass(frozen=True, slots=True)
class Worse:
    """What the command line asks for, as it was written: words of each option."""

    delays: tuple[str, ...] = ()
    bandwidths: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    sweep: str | None = None

    def __bool__(self) -> bool:
        """Return whether anything is asked for."""
        return bool(self.delays or self.bandwidths or self.failures or self.sweep)


def links(worse: Worse) -> tuple[ServiceLink, ...]:
    """Return the links that options ask for, one a service; raise UsageError where a word cannot be read."""
    by_service: dict[str, ServiceLink] = {}
    for option, words, read in (
        ("--delay", worse.delays, _delay),
        ("--bandwidth", worse.bandwidths, _bandwidth),
        ("--failures", worse.failures, _failures),
        ("--sweep", (worse.sweep,) if worse.sweep else (), _swept),
    ):
        for word in words:
            service, equals, text = word.partition("=")
            changes = read(text.strip()) if equals and service.strip() else None
            if changes is None:
                raise UsageError(f"{option} '{word}': {_EXAMPLES[option]}", slug="bad-link")
            name = service.strip()
            by_service[name] = replace(by_service.get(name, ServiceLink(name)), **changes)
    for link in by_service.values():
        if link.delays_ms and link.delay_s:
            raise UsageError(f"service {link.service} has both --delay and --sweep: a sweep sets its delays", slug="bad-link")
    return tuple(by_service.values())


_EXAMPLES: Mapping[str, str] = {
    "--delay": "write SERVICE=TIME, as db=2ms, or with a jitter, as db=2ms+-0.5ms, which is at most the time itself; at most 60 s",
    "--bandwidth": "write SERVICE=SIZE/s, as db=1MB/s",
    "--failures": "write SERVICE=SHARE%, as db=1%, of answers that are lost with their connection; db=refused:1% of connections that are "
    "refused, or db=after:4kB of answers after which each connection is reset",
    "--sweep": "write SERVICE=FROM..TO, as db=0..10ms, which tries 0, 1, 2, 5 and 10 ms, or the delays, as db=0,1,2,5,10ms; two at least",
}


def _delay(text: str) -> dict[str, float] | None:
    match = _DELAY.fullmatch(text)
    if match is None:
        return None
    delay = _seconds(match[1], match[2])
    jitter = _seconds(match[3], match[4]) if match[3] else 0.0
    return {"delay_s": delay, "jitter_s": jitter} if jitter <= delay <= _LONGEST_S else None


def _bandwidth(text: str) -> dict[str, float] | None:
    match = _BANDWIDTH.fullmatch(text)
    rate = float(match[1]) * _BYTES[match[2]] if match else 0.0
    return {"bytes_per_s": rate} if rate > 0 else None


def _failures(text: str) -> dict[str, float] | None:
    if match := _AFTER.fullmatch(text):
        after = int(float(match[1]) * _BYTES[match[2]])
        return {"reset_after": after} if after > 0 else None
    match = _FAILURES.fullmatch(text)
    share = float(match[2]) / 100 if match else 2.0
    if match is None or share > 1:
        return None
    return {"refused" if match[1] == "refused:" else "failing": share}


def _swept(text: str) -> dict[str, tuple[float, ...]] | None:
    if match := _RANGE.fullmatch(text):
        low, high = (1e3 * _seconds(match[place], match[3]) for place in (1, 2))
        delays = [low + step * (high - low) for step in _STEPS] if low <= high else []
    elif match := _LIST.fullmatch(text):
        delays = [1e3 * _seconds(number, match[2]) for number in match[1].split(",")]
    else:
        return None
    chosen = sorted({round(delay, _PLACES) for delay in delays})
    return {"delays_ms": tuple(chosen)} if len(chosen) > 1 and chosen[-1] <= 1e3 * _LONGEST_S else None


def _seconds(number: str, unit: str) -> float:
    return round(float(number) * _SECONDS[unit], _PLACES)


def require_services(asked: Sequence[ServiceLink], services: Sequence[ServiceConfig]) -> None:
    """Raise UsageError where a link names no service."""
    names = [service.name for service in services]
    for link in asked:
        if link.service not in names:
            there = f"there are {', '.join(names)}" if names else "the configuration has no [[service]]"
            raise UsageError(f"no service is named '{link.service}'; {there}", slug="bad-link")


def swept(workloads: Sequence[WorkloadConfig], asked: Sequence[ServiceLink]) -> tuple[WorkloadConfig, ...]:
    """Return workloads with a point for each delay of a sweep; raise ConfigError where one has a parameter of its name."""
    return tuple(_with_delays(workload, asked) for workload in workloads)


def _with_delays(workload: WorkloadConfig, asked: Sequence[ServiceLink]) -> WorkloadConfig:
    extra = {
        link.parameter: link.delays_ms
        for link in asked
        if link.delays_ms and (workload.services is None or link.service in workload.services)
    }
    taken = next(iter(extra.keys() & workload.values.keys()), None)
    if taken:
        raise ConfigError(
            f"workload '{workload.name}' has a parameter '{taken}', by which a sweep gives its delays: rename it", slug="bad-link"
        )
    return replace(workload, parameters={**workload.parameters, **extra})
