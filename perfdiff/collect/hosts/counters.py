"""Which events this machine counts, found out by counting each over a known loop, and why the others cannot be had."""

from __future__ import annotations

import difflib
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from perfdiff import processes
from perfdiff.collect.hosts import machine, papi, perf_events
from perfdiff.collect.hosts.machine import Pmu
from perfdiff.config import CountersConfig
from perfdiff.errors import UsageError
from perfdiff.records.metrics import KERNEL_EVENTS, metric_of
from perfdiff.records.schema import Note

# What is counted where nothing is configured: of each line the first that the machine has. Four fit into every PMU at once, and cost no
# more than the probes' budget on sampled calls.
_DEFAULTS = (
    ("PAPI_TOT_INS", "perf::INSTRUCTIONS", "INST_RETIRED"),
    ("PAPI_TOT_CYC", "perf::CYCLES", "CPU_CYCLES"),
    ("PAPI_L3_TCM", "PAPI_L2_TCM", "perf::CACHE-MISSES"),
    ("PAPI_BR_MSP", "perf::BRANCH-MISSES"),
)
# What `perfdiff counters` shows where nobody asks for anything.
COMMON = (
    *("PAPI_TOT_INS", "PAPI_TOT_CYC", "PAPI_LD_INS", "PAPI_SR_INS", "PAPI_L1_DCM", "PAPI_L2_TCM", "PAPI_L3_TCM", "PAPI_TLB_DM"),
    *("PAPI_BR_INS", "PAPI_BR_MSP", "PAPI_CA_SNP", "perf::CPU-CLOCK", "perf::TASK-CLOCK", "perf::PAGE-FAULTS"),
    *("perf::CONTEXT-SWITCHES", "perf::CPU-MIGRATIONS"),
)
# The trial loop has thousands of each. An event of these that stays 0 is accepted but not counted, as in some virtual machines.
_IN_THE_LOOP = frozenset(
    (
        *("PAPI_TOT_INS", "PAPI_TOT_CYC", "PAPI_REF_CYC", "PAPI_L1_DCM", "PAPI_L1_TCM", "PAPI_BR_INS", "PAPI_BR_CN", "PAPI_BR_MSP"),
        *("PAPI_LD_INS", "PAPI_SR_INS", "PAPI_LST_INS", "INST_RETIRED", "CPU_CYCLES", "perf::INSTRUCTIONS", "perf::CYCLES"),
        *("perf::BRANCH-INSTRUCTIONS", "perf::BRANCH-MISSES", "perf::PAGE-FAULTS", "perf::MINOR-FAULTS", "perf::TASK-CLOCK"),
    )
)
_NEAREST = 3  # names offered for one that is unknown
_AT_ONCE = 50  # events tried in one process
_TIMEOUT_S = 20.0  # ten times what so many need on a slow machine

INSTALL_PAPI = "install PAPI (Debian: apt-get install libpapi-dev)"
INSTALL_SDE = "install libsde (Debian: apt-get install libsde1); it comes with PAPI from 7.0 on"
PERMIT = "sysctl kernel.perf_event_paranoid=2 as root; in a container also allow perf_event_open (--cap-add PERFMON)"
PERMIT_KERNEL = "sysctl kernel.perf_event_paranoid=1 as root, for what happens in the kernel; in a container --cap-add PERFMON"
NO_PMU = "virtual machines rarely have one: times, allocations and calls are measured without it, and the software PMU counts the rest"


class State(StrEnum):
    """Whether an event can be had."""

    COUNTED = "counted"
    OPEN = "open"  # the program itself has to define it, which shows when it runs
    ABSENT = "absent"  # known, but not counted here
    UNKNOWN = "unknown"  # no event has this name


@dataclass(frozen=True, slots=True)
class EventTrial:
    """What came of trying an event: `says` what it counts or why it does not; `value` over the loop of `papi.run_loop`."""

    event: str
    state: State
    says: str
    value: int | None = None
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Component:
    """A part of PAPI; `absent` is PAPI's own reason where it is switched off."""

    name: str
    says: str
    absent: str = ""


@dataclass(frozen=True, slots=True)
class Library:
    """libpapi as it is installed. `version` is None where there is none, or it does not start for the reason in `trouble`."""

    version: str | None
    sde: bool = False
    components: tuple[Component, ...] = ()
    trouble: str = ""

    def component(self, name: str) -> Component | None:
        """Return the component of this name."""
        return next((component for component in self.components if component.name == name), None)


@dataclass(frozen=True, slots=True)
class ChosenEvents:
    """The events that runs count, and what the reader must know of those that were asked for."""

    events: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    def steering(self) -> dict[str, str]:
        """Return what the runtime is told of them: the kernel's own with their numbers, the others by PAPI's names."""
        by_papi = [event for event in self.events if event not in KERNEL_EVENTS]
        by_kernel = [f"{event}={KERNEL_EVENTS[event]}" for event in self.events if event in KERNEL_EVENTS]
        variables = {"PERFDIFF_EVENTS": by_papi, "PERFDIFF_KERNEL_EVENTS": by_kernel}
        return {name: ",".join(events) for name, events in variables.items() if events}


def choose(config: CountersConfig) -> ChosenEvents:
    """Return the events that timed runs count: the configured ones that can be had, else the usual ones.

    Raises `UsageError` for a name that no event has.
    """
    if config.events is None:
        return ChosenEvents(usual())
    trials = attempt(config.events)
    check_names(trials)
    events = tuple(trial.event for trial in trials if trial.state in (State.COUNTED, State.OPEN))
    return ChosenEvents(events, (*_absent(trials), *_multiplexed(events)))


def check_names(trials: Iterable[EventTrial]) -> None:
    """Raise `UsageError` where no event has the name of a trial."""
    for trial in trials:
        if trial.state is State.UNKNOWN:
            raise UsageError(f"{trial.says}; {trial.remedy}", slug="event-unknown")


def usual() -> tuple[str, ...]:
    """Return what is counted where nothing is configured: hardware events that can be counted at the same time, or none."""
    if machine.pmu() is not Pmu.PRESENT:
        return ()
    counted = {trial.event for trial in attempt([event for events in _DEFAULTS for event in events]) if trial.state is State.COUNTED}
    first = [next((event for event in events if event in counted), None) for events in _DEFAULTS]
    return _together([event for event in first if event])


def attempt(events: Sequence[str]) -> tuple[EventTrial, ...]:
    """Try each event, and return the outcomes in the same order; events of the kernel need no libpapi, all others do."""
    of_kernel = {event: _of_kernel(event) for event in events if event in KERNEL_EVENTS}
    others = iter(_by_papi([event for event in events if event not in KERNEL_EVENTS]))
    return tuple(of_kernel.get(event) or next(others) for event in events)


def _of_kernel(event: str) -> EventTrial:
    counted = perf_events.count(event, papi.run_loop)
    if counted.value is None:
        says = "perf_event_open is not permitted" if counted.is_forbidden else "this kernel does not count it"
        return EventTrial(event, State.ABSENT, says, remedy=PERMIT_KERNEL if counted.is_forbidden else "leave it out")
    return _unless_idle(event, metric_of(event).what, counted.value)


def _by_papi(events: Sequence[str]) -> tuple[EventTrial, ...]:
    if not events:
        return ()
    installed = library()
    if installed.version is None:
        return tuple(EventTrial(event, State.ABSENT, installed.trouble, remedy=INSTALL_PAPI) for event in events)
    refused = {event: trial for event in events if (trial := _refused(event, installed))}
    tried = {answer["event"]: answer for answer in _tried([event for event in events if event not in refused])}
    unknown = [event for event, answer in tried.items() if not answer["known"] and not answer.get("trouble")]
    names = _names() if unknown else ()
    return tuple(refused.get(event) or _judged(tried[event], names) for event in events)


def library() -> Library:
    """Return libpapi's version and events, or why it cannot be used."""
    answers, trouble = _ask("describe")
    if not answers:
        return Library(None, trouble=trouble or "libpapi is not installed")
    (answer,) = answers
    components = tuple(Component(component["name"], component["says"], component["absent"]) for component in answer["components"])
    if not answer["ready"]:
        return Library(None, trouble=f"libpapi {answer['version']} does not start")
    return Library(answer["version"], answer["sde"], components)


def _refused(event: str, installed: Library) -> EventTrial | None:
    """Return why an event is not even tried, None where it is."""
    prefix, colons, _ = event.partition(":::")
    name = prefix if colons else papi.HARDWARE
    component = installed.component(name)
    if name == papi.SOFTWARE:
        return _software(event, component, installed)
    if component is None and colons:
        return EventTrial(event, State.UNKNOWN, f"PAPI has no component '{prefix}'", remedy="`perfdiff counters` lists those it has")
    if name != papi.HARDWARE:
        return EventTrial(event, State.ABSENT, f"'{prefix}' counts the whole machine, not a thread's calls", remedy="leave it out")
    if component is None or component.absent:
        reason, remedy = hardware_reason(component)
        return EventTrial(event, State.ABSENT, reason, remedy=remedy)
    return None


def _software(event: str, component: Component | None, installed: Library) -> EventTrial:
    if not installed.sde:
        return EventTrial(event, State.ABSENT, "libsde is not installed", remedy=INSTALL_SDE)
    if component is None or component.absent:
        reason = component.absent if component else "this libpapi has no software-defined events"
        return EventTrial(event, State.ABSENT, reason, remedy="install PAPI 7.0 or later with the component sde")
    return EventTrial(event, State.OPEN, "counted where the program registers it, else absent")


def hardware_reason(component: Component | None) -> tuple[str, str]:
    """Return why hardware events cannot be had, and what to do."""
    match machine.pmu():
        case Pmu.FORBIDDEN:
            return "perf_event_open is not permitted", PERMIT
        case Pmu.ABSENT:
            return "this machine has no PMU", NO_PMU
    if component is None:
        return "this libpapi has no component perf_event", INSTALL_PAPI
    return component.absent or "libpapi does not know this processor", "install a later PAPI"


def _judged(answer: dict[str, Any], names: Sequence[str]) -> EventTrial:
    event = str(answer["event"])
    if trouble := answer.get("trouble"):
        return EventTrial(event, State.ABSENT, f"libpapi {trouble} while it was tried", remedy="leave it out, or install a later PAPI")
    if not answer["known"]:
        return EventTrial(event, State.UNKNOWN, f"no event is named '{event}'", remedy=_nearest(event, names))
    if answer["result"] != 0:
        reason, remedy = hardware_reason(None)
        if machine.pmu() is Pmu.PRESENT:
            reason, remedy = f"this processor does not count it ({answer['error']})", "take another; `perfdiff counters --all` shows all"
        return EventTrial(event, State.ABSENT, reason, remedy=remedy)
    return _unless_idle(event, answer["says"], answer["value"])


def _unless_idle(event: str, says: str, value: int) -> EventTrial:
    if value == 0 and event in _IN_THE_LOOP:
        reason = "is accepted and stays 0 over a loop that has thousands of them"
        return EventTrial(event, State.ABSENT, reason, 0, remedy="nothing counts it on this machine")
    return EventTrial(event, State.COUNTED, says, value)


def _nearest(event: str, event_names: Sequence[str]) -> str:
    names = {name.casefold(): name for name in event_names}
    near = difflib.get_close_matches(event.casefold(), names, n=_NEAREST)
    shown = ", ".join(names[name] for name in near)
    return f"did you mean {shown}?" if near else "`perfdiff counters --all` lists all names"


def every() -> tuple[EventTrial, ...]:
    """Try all presets and native events that PAPI names here, and those of the kernel."""
    return attempt(tuple(dict.fromkeys((*_names(), *KERNEL_EVENTS))))


def _names() -> tuple[str, ...]:
    answers, _ = _ask("names")
    return tuple(name for answer in answers for name in answer["names"])


def _together(events: Sequence[str]) -> tuple[str, ...]:
    answers, _ = _ask("together", *events)
    return tuple(name for answer in answers for name in answer["together"])


def _absent(trials: Iterable[EventTrial]) -> Iterator[Note]:
    for trial in trials:
        if trial.state is State.ABSENT:
            yield Note("event-absent", f"{trial.event} is not counted: {trial.says}; {trial.remedy}")


def _multiplexed(events: Sequence[str]) -> Iterator[Note]:
    hardware = [event for event in events if not event.startswith(f"{papi.SOFTWARE}:::") and event not in KERNEL_EVENTS]
    fitting = _together(hardware) if len(hardware) > 1 else hardware
    if len(fitting) < len(hardware):
        others = ", ".join(event for event in hardware if event not in fitting)
        yield Note(
            "events-multiplexed",
            f"{others} cannot be counted at the same time as {', '.join(fitting)}, so all of them are counted in turn and scaled:"
            " their values per call are estimates; ask for fewer events",
        )


def _tried(events: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the answer for each event; one that ends the process is skipped in the next."""
    rest = list(events)
    while rest:
        some = rest[:_AT_ONCE]
        answers, trouble = _ask("try", *some)
        done = [answer for answer in answers if "event" in answer]
        yield from done
        rest = rest[len(done) :]
        if len(done) < len(some):
            yield {"event": rest.pop(0), "known": False, "trouble": trouble or "gave no answer"}


def _ask(task: str, *arguments: str) -> tuple[list[dict[str, Any]], str]:
    """Return the answers to a task, and how its process ended where that was not well."""
    command = [sys.executable, "-I", "-S", str(Path(papi.__file__)), task, *arguments]
    try:
        ended = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as timeout:
        return _answers(timeout.stdout or b""), f"did not answer within {_TIMEOUT_S:.0f} s"
    trouble = f"was ended by {processes.signal_name(-ended.returncode)}" if ended.returncode < 0 else ""
    return _answers(ended.stdout), trouble


def _answers(output: bytes) -> list[dict[str, Any]]:
    """Return the whole lines of an answer."""
    return [json.loads(line) for line in output.splitlines(keepends=True) if line.endswith(b"\n")]
