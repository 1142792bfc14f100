"""What the user asked for, and what measuring it depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from perfdiff import __version__
from perfdiff.build import compilers
from perfdiff.build.variants import build_environment, keyed
from perfdiff.collect.hosts import machine
from perfdiff.collect.runs import inputs, workloads
from perfdiff.collect.serving.services import Services
from perfdiff.config import Config
from perfdiff.deadline import Deadline
from perfdiff.errors import BuildError
from perfdiff.languages.packs import Packs
from perfdiff.records import codec
from perfdiff.records.schema import Side
from perfdiff.records.thresholds import unjudged
from perfdiff.revisions.overlay import overlay_digest
from perfdiff.revisions.pins import Pin, PinnedPair


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for. `environment` is handed to builds and workloads; for `followed` see `Subjects.number`.

    `is_counted` has a lone revision's calls counted without a clock as well, which two revisions' are anyway. Measuring ends at the
    `deadline` where it stands.
    """

    repository: Path
    revisions: tuple[str, ...]
    config: Config
    cache: Path
    environment: Mapping[str, str]
    followed: frozenset[tuple[str, int]] = frozenset()
    is_counted: bool = False
    deadline: Deadline = field(default_factory=Deadline, compare=False)

    @property
    def wants_calls(self) -> bool:
        """Return whether calls are timed whatever whole runs and counts say: for their own sake, or for a budget of theirs."""
        return self.config.measure.thorough or bool(self.followed or self.config.budgeted)

    @property
    def inherited(self) -> dict[str, str]:
        """Return the variables that workloads inherit: the user's, without those that steer perfdiff and its probes."""
        return {name: value for name, value in self.environment.items() if not name.startswith("PERFDIFF_")}

    @property
    def taken_from_checkout(self) -> tuple[Path, ...]:
        """Return the files and folders that both sides of a comparison have, or are judged by, as they stand in the checkout."""
        overlay = (self.repository / file for file in self.config.build.overlay)
        return (*self.config.own_files(self.repository), *overlay)

    @property
    def services(self) -> Services:
        """Return the starter of the services of its workloads."""
        return Services(
            self.config.services,
            self.inherited,
            self.repository,
            self.cache / "logs",
            links={link.service: link for link in self.config.links},
            seed=self.config.compare.seed,
        )

    @property
    def packs(self) -> Packs:
        """Return the language packs that serve the project."""
        return Packs.serving(self.config, self.repository, self.cache, self.environment)


def experiment_key(request: Request, pins: PinnedPair, sides: tuple[Side, ...] = tuple(Side)) -> str:
    """Return what measuring depends on, digested: the same question is measured once, however it is put and judged."""
    config = request.config
    environment = build_environment(request.environment)
    parts = [
        __version__,
        pins.base.tree,
        pins.head.tree,
        pins.head.repository.folder.as_posix(),
        overlay_digest(pins.head.repository, config.build.overlay),
        codec.encode((config.build, unjudged(config.workloads), config.services, config.links)),
        codec.encode((config.probes, config.counters, replace(config.measure, wait_s=0.0, time_s=None), config.compare.seed)),
        compilers.identity(environment),
        _identity(request),
        keyed(environment),
        inputs.digest(request.repository, config.workloads),
        workloads.keyed((*config.workloads, *config.services), request.environment),
        machine.cpu(),
        machine.cores(),
        *sides,
        *pins.dirty,
        *sorted(request.followed),
        *sorted(config.budgeted),
        *(["counted"] if request.is_counted else []),
        *(["memory"] if config.compare.memory is not None else []),  # packs may follow it to the end then
        *(["cluster", config.cluster.address] if config.cluster.address and len(sides) > 1 else []),
        *(
            [codec.encode((guess.build, unjudged(guess.workloads))), _identity(replace(request, config=guess))]
            for guess in config.otherwise
        ),
    ]
    return _digest(parts)


def _identity(request: Request) -> str:
    """Return what measuring depends on because of the packs; of one guess among several that cannot be built here, why it cannot."""
    try:
        return request.packs.identity
    except BuildError as error:
        if not any(workload.suite and workload.suite.guessed for workload in request.config.workloads):
            raise
        return str(error)


def places_key(request: Request, pin: Pin) -> str:
    """Return what counts of places of one revision depend on, digested: neither how often workloads run, nor where."""
    config = request.config
    environment = build_environment(request.environment)
    counted = [replace(workload, runs=0, warmup=0, alone=False, min_effect=None) for workload in config.workloads]
    return _digest(
        [
            "places",
            __version__,
            pin.tree,
            pin.repository.folder.as_posix(),
            overlay_digest(pin.repository, config.build.overlay),
            codec.encode((config.build, tuple(counted), config.services)),
            compilers.identity(environment),
            request.packs.identity,
            keyed(environment),
            inputs.digest(request.repository, config.workloads),
            workloads.keyed((*config.workloads, *config.services), request.environment),
        ]
    )


def _digest(parts: list[Any]) -> str:
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).hexdigest()
