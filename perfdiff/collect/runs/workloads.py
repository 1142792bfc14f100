"""Workload points: numbered combination of a workload's parameters and inputs, with its command made whole."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Callable, Mapping, Sequence

from perfdiff.config import PLACE, ServiceConfig, WorkloadConfig
from perfdiff.languages.installed import installed
from perfdiff.records.schema import Point, Workload

# What many programs read through their libraries: threads, memory, what is loaded, language and time zone.
_READ = frozenset(("GLIBC_TUNABLES", "LANG", "LANGUAGE", "TZ", *(name for traits in installed() for name in traits.running.variables)))
_READ_PREFIXES = ("OMP_", "GOMP_", "KMP_", "OPENBLAS_", "MKL_", "MALLOC_", "TCMALLOC_", "MIMALLOC_", "LD_", "LC_")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)")


def workloads(configs: Sequence[WorkloadConfig]) -> tuple[Workload, ...]:
    """Return the workloads as reports name them."""
    return tuple(Workload(config.name, config.command, tuple(config.values), config.check is not None) for config in configs)


def runs_at(configs: Sequence[WorkloadConfig], points: Sequence[Point]) -> dict[int, int]:
    """Return how many runs with probes each of the points gets at most, by its id."""
    runs = {config.name: config.runs for config in configs}
    return {point.id: runs[point.workload] for point in points}


def points(configs: Sequence[WorkloadConfig], services: Sequence[ServiceConfig] = ()) -> tuple[Point, ...]:
    """Return all points of all workloads, numbered from 0, in the order of the configuration."""
    numbered: list[Point] = []
    for config in configs:
        own = [service for service in services if config.services is None or service.name in config.services]
        outside, served = tuple(service.name for service in own if service.outside), any(not service.outside for service in own)
        for values in itertools.product(*config.values.values()):
            if values in config.left_out:
                continue
            parameters = dict(zip(config.values, values, strict=True))
            command = filled(config.command, parameters)
            numbered.append(Point(len(numbered), config.name, parameters, command, outside, served, config.min_effect))
    return tuple(numbered)


def filled(template: str, parameters: Mapping[str, float | str], written: Callable[[str], str] = shlex.quote) -> str:
    """Put values in the places of a command, `written` for the shell; braces that name no parameter stay as they are."""

    def value(match: re.Match[str]) -> str:
        return written(str(parameters[match[1]])) if match[1] in parameters else match[0]

    return PLACE.sub(value, template)


def keyed(configs: Sequence[WorkloadConfig | ServiceConfig], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the part of the environment that runs depend on, besides the program: what libraries read, and what commands name."""
    named = {name for config in configs for name in _VARIABLE.findall(" ".join(config.commands))}
    return {name: value for name, value in environment.items() if name in named | _READ or name.startswith(_READ_PREFIXES)}
