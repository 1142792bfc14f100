"""Services of workloads: how they are written in the configuration, and whose ports and folders are named where."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from perfdiff.config import FOLDER, PLACE, PORT, PROJECT, SERVICE_PLACE, ServiceConfig, WorkloadConfig
from perfdiff.errors import ConfigError

_OWN = (PORT, FOLDER, PROJECT)


def checked(values: Mapping[str, Any], place: str, above: Sequence[ServiceConfig]) -> ServiceConfig:
    """Return a service by its keys; raise ConfigError where one is missing, or contradicts others or the services `above` it."""
    for key in ("name", "command"):
        if key not in values:
            raise ConfigError(f"{place}: this [[service]] has no '{key}'", slug="config-service")
    service = ServiceConfig(**values)
    if any(other.name.casefold() == service.name.casefold() for other in above):
        raise ConfigError(f"{place}: '{service.name}' is the name of a service above", slug="config-service")
    if service.is_kept and not service.outside:
        raise ConfigError(
            f"{place}: service '{service.name}' belongs to the revisions, so it is started for each run, which its recordings belong to; "
            "leave out 'keep', or say outside = true if it is no part of what is compared",
            slug="config-service",
        )
    return service


def require_places(services: Sequence[ServiceConfig], workloads: Sequence[WorkloadConfig], where: Callable[[str, int], str]) -> None:
    """Raise ConfigError where a text names a service, a port or a parameter that there is not, or that is not there yet.

    `where` tells the place of a table in the file, by its kind and number.
    """
    by_name = {service.name: service for service in services}
    for number, service in enumerate(services):
        users = [workload for workload in workloads if workload.services is None or service.name in workload.services]
        place = where("service", number)
        _require_known(service.commands, by_name, place)
        _require_parameters(service, users, place)
        _require_order(service, services[: number + 1], by_name, place)
    for number, workload in enumerate(workloads):
        place = where("workload", number)
        _require_known(_texts(workload), by_name, place)
        _require_named(workload, by_name, place)


def _require_order(service: ServiceConfig, up: Sequence[ServiceConfig], by_name: Mapping[str, ServiceConfig], place: str) -> None:
    """Raise ConfigError where a service uses one that is not `up` when it is started; kept ones are, before all others."""
    for other in [by_name[name] for name in _named(service.starting) if name in by_name]:
        if service.is_kept and not other.is_kept:
            raise ConfigError(
                f"{place}: service '{service.name}' is kept over all runs, but uses '{other.name}', which is started for each; say "
                'keep = "run"',
                slug="config-service",
            )
        if other not in up and other.is_kept == service.is_kept:
            raise ConfigError(
                f"{place}: service '{service.name}' uses '{other.name}', which is started after it; write that above", slug="config-service"
            )


def _require_parameters(service: ServiceConfig, users: Sequence[WorkloadConfig], place: str) -> None:
    """Raise ConfigError where a service has a place for what is no parameter of all workloads that use it, or that it cannot follow."""
    own = {*_OWN, *service.ports}
    for text in service.commands:
        for name in sorted(set(PLACE.findall(text)) - own):
            where = f"{place}: '{{{name}}}' in '{text}'"
            if service.is_kept and text in service.starting:
                raise ConfigError(
                    f"{where}: service '{service.name}' is kept over all runs, so its 'setup' and 'teardown' alone may use parameters; "
                    f"its own places are {_listed(own)}",
                    slug="config-service",
                )
            for workload in users:
                if name not in workload.values:
                    raise ConfigError(
                        f"{where} is neither a place of service '{service.name}' ({_listed(own)}) nor a parameter of workload "
                        f"'{workload.name}', which uses it; name in the workload's 'services' those that it needs",
                        slug="config-service",
                    )


def _require_named(workload: WorkloadConfig, by_name: Mapping[str, ServiceConfig], where: str) -> None:
    """Raise ConfigError where a workload, or a service that it uses, needs a service that its `services` do not name."""
    if workload.services is None:
        return
    for name in workload.services:
        if name not in by_name:
            raise ConfigError(f"{where}: no service is named '{name}'; there are {_listed(by_name) or 'none'}", slug="config-service")
    commands = (*_texts(workload), *(text for name in workload.services for text in by_name[name].commands))
    for other in _named(commands):
        if other in by_name and other not in workload.services:
            raise ConfigError(f"{where}: service '{other}' is used, but not named in its 'services'; add it there", slug="config-service")


def served(workloads: Sequence[WorkloadConfig], services: Sequence[ServiceConfig]) -> tuple[WorkloadConfig, ...]:
    """Return workloads with `alone` set if they use services, as base and head would wait for each other's requests.

    But for requests that are sent one after the other to services that each side can have for itself: both sides' may take turns.
    Benchmarks of suites have none: they are listed, and tried, before anything is started.
    """
    if not services:
        return tuple(workloads)
    own = [replace(workload, services=()) if workload.suite else workload for workload in workloads]
    return tuple(replace(workload, alone=workload.alone or not _may_take_turns(workload, services)) for workload in own)


def _may_take_turns(workload: WorkloadConfig, services: Sequence[ServiceConfig]) -> bool:
    if workload.services == ():
        return True
    own = [service for service in services if workload.services is None or service.name in workload.services]
    return workload.requests is not None and workload.requests.is_sequential and all(service.has_own_place for service in own)


def texts(workload: WorkloadConfig, services: Sequence[ServiceConfig]) -> tuple[str, ...]:
    """Return the texts of the services of a workload in which its parameters may have places."""
    own = [service for service in services if workload.services is None or service.name in workload.services]
    return tuple(text for service in own for text in service.commands)


def _texts(workload: WorkloadConfig) -> tuple[str, ...]:
    return (*workload.commands, *((workload.requests.url,) if workload.requests else ()))


def _require_known(commands: Iterable[str], by_name: Mapping[str, ServiceConfig], where: str) -> None:
    for text in commands:
        for name, place in SERVICE_PLACE.findall(text):
            if name in by_name and place not in by_name[name].places:
                there = f"service '{name}' has {_listed(by_name[name].places)}"
            elif name not in by_name and place in (PORT, FOLDER):  # others may be the command's own words
                there = f"no service is named '{name}'; there are {_listed(by_name)}"
            else:
                continue
            raise ConfigError(f"{where}: '{{{name}.{place}}}' in '{text}': {there}", slug="config-service")


def _named(commands: Iterable[str]) -> Iterator[str]:
    for text in commands:
        for name, _ in SERVICE_PLACE.findall(text):
            yield name


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
