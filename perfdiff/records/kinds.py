"""Kinds of machines: those whose times can be compared with each other, by what makes the same program run faster or slower."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfdiff.records.schema import Environment, Machine

# Of a kernel's release, what a version is: builds of one differ from host to host of a fleet, and do not in what programs feel.
_KERNEL = re.compile(r"^(\D*\d+\.\d+)")

KindKey = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class MachineKind:
    """Machines of one kind: `members` are their places, `environment` is that of the first by name."""

    name: str
    environment: Environment
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MachinePart:
    """A machine, or all `hosts` of one kind, with the runs that were made on it."""

    name: str
    hosts: int
    environment: Environment
    runs_base: int
    runs_head: int


def kind_of(environment: Environment) -> KindKey:
    """Return the key of a machine's kind, with names: machines with equal keys can be compared."""
    kernel = _KERNEL.match(environment.kernel)
    return (
        ("processor", environment.cpu),
        ("CPUs", str(environment.cores)),
        ("kernel", kernel.group(1) if kernel else environment.kernel),
        ("governor", environment.governor or "unknown"),
        ("compiler", environment.compiler),
        ("libraries", ", ".join(environment.libraries)),
    )


def kinds(machines: Sequence[Machine]) -> tuple[MachineKind, ...]:
    """Return the kinds of machines, the largest first; their order is none of the order of machines.

    A kind of one machine has its name, a larger one that of its processor with what else tells it from others.
    """
    by_key: dict[KindKey, list[int]] = {}
    for place, machine in enumerate(machines):
        by_key.setdefault(kind_of(machine.environment), []).append(place)
    ordered = sorted(by_key.items(), key=lambda item: (-len(item[1]), item[0]))
    names = _names([dict(key) for key, _ in ordered])
    return tuple(
        MachineKind(
            machines[members[0]].name if len(members) == 1 else name,
            min((machines[place] for place in members), key=lambda machine: machine.name).environment,
            tuple(members),
        )
        for name, (_, members) in zip(names, ordered, strict=True)
    )


def differences(environment: Environment, other: Environment) -> tuple[str, ...]:
    """Return in which respects two machines differ, in words, with both values of those that are short."""
    return tuple(
        name if name == "libraries" else f"{name} ({first}, {second})"
        for (name, first), (_, second) in zip(kind_of(environment), kind_of(other), strict=True)
        if first != second
    )


def _names(keys: Sequence[Mapping[str, str]]) -> list[str]:
    """Name kinds by their processor, and by all other short respects in which kinds of that processor differ; then by number."""
    names = []
    for key in keys:
        alike = [other for other in keys if other["processor"] == key["processor"]]
        others = [key[name] for name in key if name not in ("processor", "libraries") and len({other[name] for other in alike}) > 1]
        names.append(", ".join([key["processor"], *others]))
    return [name if names.count(name) == 1 else f"{name} #{names[:place].count(name) + 1}" for place, name in enumerate(names)]
