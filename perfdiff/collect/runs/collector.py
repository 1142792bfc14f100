"""Carry out slots of the schedule and keep what every process recorded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from perfdiff import temporary
from perfdiff.collect.execution import printed
from perfdiff.collect.execution.echoes import Echoes
from perfdiff.collect.execution.executor import Command, Execution, Executor, Purpose
from perfdiff.collect.recordings import remarks
from perfdiff.collect.runs import runfeatures, workloads
from perfdiff.collect.runs.inputs import NO_INPUTS, InputFiles
from perfdiff.collect.runs.schedule import Slot
from perfdiff.collect.runs.targets import Target
from perfdiff.collect.serving import requests
from perfdiff.collect.serving.requests import Failures
from perfdiff.collect.serving.served import Served, executed
from perfdiff.collect.serving.services import Services, Situation
from perfdiff.collect.trees.upkeep import Chores, Upkeep
from perfdiff.config import WorkloadConfig
from perfdiff.errors import RunFailedError, StoreError
from perfdiff.records import recording
from perfdiff.records.arrays import Ints
from perfdiff.records.behaviour import Shape
from perfdiff.records.recording import Recording
from perfdiff.records.schema import Note, Phase, Run, Side

T = TypeVar("T")

_WARMED = (Phase.PLAIN, Phase.TIMED)
_OUTPUT = "output"  # of a run, for its check, in the folder of its recordings


@dataclass(frozen=True, slots=True)
class PlacesOfRun:
    """How often each place ran in a run, (places,), what features the run had, and how many of its processes left no counts.

    Its CPU time is that of a program that counts.
    """

    counts: Ints
    features: Mapping[str, float]
    lost: int
    cpu_ns: float
    exit_code: int


_WORST_SLOWDOWN = 60.0  # of a counted run that ends at all
LONG_S = 20.0  # who waits longer for one run wonders whether it hangs


@dataclass(slots=True)
class Collector:
    """Runs slots one after the other. `room` is an empty folder for recordings; nothing stays in it.

    `slow`, where given, is told of runs that take long while they do, once for each point. Where `sums_only` are wanted, recordings have no
    single calls.
    """

    targets: Mapping[tuple[Phase, Side], Target]
    workloads: Mapping[str, WorkloadConfig]
    environment: Mapping[str, str]
    executor: Executor
    room: Path
    seed: int
    slow: Callable[[str], None] | None = None
    upkeep: Upkeep = field(default_factory=Upkeep)
    services: Services = field(default_factory=Services)
    inputs: InputFiles = NO_INPUTS
    told: dict[Note, None] = field(default_factory=dict)  # of their probes, by all processes so far
    misplaced: dict[str, str] = field(default_factory=dict)  # files of the tree whose code was loaded from another place, and that place
    failures: Failures = field(default_factory=Failures)
    sums_only: bool = False
    _made: int = field(default=0)
    _told: set[int] = field(default_factory=set)
    _warm: set[tuple[Phase, Side, int]] = field(default_factory=set)

    def number(self) -> int:
        """Return the number of a run that another machine has made."""
        self._made += 1
        return self._made - 1

    def collect(self, slots: Iterable[Slot], advance: Callable[[str], None]) -> Iterator[tuple[Run, list[Recording]]]:
        """Yield each run with the recordings of its processes, in the order of `slots`; raise WorkloadError or StoreError."""
        yield from (collected for slot in slots for collected in self.collect_together([slot], None, advance))

    def collect_together(
        self, slots: Sequence[Slot], cpus: Collection[int] | None, advance: Callable[[str], None]
    ) -> list[tuple[Run, list[Recording]]]:
        """Return the same of slots that run at the same time on these CPUs, in trees of their own (see `apart`).

        Where `cpus` is None, they run one after the other.
        """
        numbers = range(self._made, self._made + len(slots))
        self._made += len(slots)
        for slot, number in zip(slots, numbers, strict=True):
            for _ in range(self._warm_ups(slot)):
                self._execute([slot], [number], None, self._recordings)
        left = self.upkeep.left
        outcomes = self._execute(slots, numbers, cpus, self._recordings)
        if self.upkeep.left > left:  # what the run compiled was not there yet, as it is for all further ones
            outcomes = self._execute(slots, numbers, cpus, self._recordings)
        for slot in slots:
            advance(f"{slot.point.label} on {slot.side}")
        return [
            (_run(number, slot, execution, together=cpus is not None and len(cpus) < len(slots)), self._stopped(slot, recordings))
            for number, slot, (execution, recordings) in zip(numbers, slots, outcomes, strict=True)
        ]

    def calmed(self, slot: Slot) -> Run | None:
        """Return a run whose runtime has no threads at work beside the program's, None where it never has; raise WorkloadError."""
        target = self.targets[slot.phase, slot.side]
        if not target.calm:
            return None
        quiet = replace(target, variables={**target.variables, **target.calm})
        [(run, _)] = replace(self, targets={(slot.phase, slot.side): quiet}).collect([slot], lambda _: None)
        return run

    def count_places(self, slots: Sequence[Slot], cpus: Collection[int] | None = None) -> list[PlacesOfRun]:
        """Return how often each place ran in a run of each slot; where `cpus` are given they run at the same time, in trees of their own.

        Raises WorkloadError, RecordingError and StoreError.
        """
        targets = [self.targets[slot.phase, slot.side] for slot in slots]
        readers = iter([target.places for target in targets])
        numbers = range(self._made, self._made + len(slots))
        self._made += len(slots)
        features: list[dict[str, float]] = []

        def look() -> None:
            for slot, target in zip(slots, targets, strict=True):
                features.append(runfeatures.known(self.workloads[slot.point.workload], slot.point, target.directory, self.inputs))

        def read(folder: Path) -> tuple[Ints, int]:
            reader = next(readers)
            assert reader is not None, "only placed builds count places"
            return reader.read(folder), reader.lost(folder)

        executions = self._execute(slots, numbers, cpus, read, look)
        return [_places(*ran, described) for ran, described in zip(executions, features, strict=True)]

    def apart(self, slots: Sequence[Slot]) -> bool:
        """Return whether slots run in trees of their own."""
        return len({self.targets[slot.phase, slot.side].directory for slot in slots}) == len(slots)

    def _execute(
        self,
        slots: Sequence[Slot],
        numbers: Sequence[int],
        cpus: Collection[int] | None,
        read: Callable[[Path], T],
        look: Callable[[], None] | None = None,
    ) -> list[tuple[Execution, T]]:
        """Run slots, at the same time where `cpus` are given, and `read` what each left in its folder; `look` when all is ready."""
        folders = [self.room / f"{number:06d}" for number in numbers]
        commands = [self._command(*run, len(slots)) for run in zip(slots, folders, numbers, strict=True)]
        written: list[dict[str, Shape]] = []
        if self.takes_turns(slots[0]):
            commands = [replace(command, cpus=cpus) for command in commands]
        try:
            with ExitStack() as stack:
                for slot, folder, command in zip(slots, folders, commands, strict=True):
                    folder.mkdir()
                    written.append(stack.enter_context(self._kept(slot, command)))
                stack.enter_context(self._watched(slots))
                self._require_same_inputs(slots)
                served = [stack.enter_context(self._served(*run)) for run in zip(slots, commands, range(len(slots)), strict=True)]
                for slot, folder, run in zip(slots, folders, served, strict=True):
                    if mix := self.workloads[slot.point.workload].requests:
                        requests.leave(mix, slot.point.parameters, run.processes, folder)
                if look is not None:
                    look()
                executions = self._executions(slots, served, cpus)
                for slot, run in zip(slots, served, strict=True):
                    self._check(slot, run.command)
                self._require_same_inputs(slots)
            executions = [_with_files(*run) for run in zip(executions, written, map(self._inputs, slots), strict=True)]
            executions = [self._with_requests(*run) for run in zip(slots, folders, executions, served, strict=True)]
            return list(zip(executions, map(read, folders), strict=True))
        except OSError as error:
            raise StoreError.about(self.room, error) from error
        except RunFailedError as error:
            if len(slots) == 1 and slots[0].phase is Phase.PLAIN:
                error.point, error.side = slots[0].point.id, slots[0].side
            raise
        finally:
            for folder in (*folders, self._aside):
                temporary.clear(folder)

    def is_served(self, slot: Slot) -> bool:
        """Return whether services are up during a run."""
        return bool(self.services.configs) and self.workloads[slot.point.workload].services != ()

    def takes_turns(self, slot: Slot) -> bool:
        """Return whether a run is made of requests, which runs at the same time send in turns."""
        return self.workloads[slot.point.workload].requests is not None

    def _executions(self, slots: Sequence[Slot], served: Sequence[Served], cpus: Collection[int] | None) -> list[Execution]:
        """Return what the commands of runs cost whose services are up; raise WorkloadError."""
        if cpus is None:
            return [run.execute(self.executor) for run in served]
        if not self.takes_turns(slots[0]):
            return self.executor.execute_together([run.command for run in served], cpus)
        text = requests.in_turns([run.command.text for run in served])
        return [replace(execution, waited=None) for execution in executed(served, replace(served[0].command, text=text), self.executor)]

    def _with_requests(self, slot: Slot, folder: Path, execution: Execution, served: Served) -> Execution:
        """Return a run with what its requests took; raise WorkloadError where some fail that do not on the other side."""
        if self.workloads[slot.point.workload].requests is None:
            return execution
        taken = requests.taken(execution, folder)
        printed = self.services.printed(served) if any(kind.failed for kind in taken.requests) else ""
        self.failures.add(slot.point, slot.side, taken.requests, printed)
        self.told |= self.failures.notes
        return taken

    @property
    def _aside(self) -> Path:
        """Return where programs of a placed build leave counts that nobody reads, as those of setups."""
        return self.room / "aside"

    def _require_same_inputs(self, slots: Sequence[Slot]) -> None:
        for slot in slots:
            self.inputs.require_unchanged(slot.point)

    def _warm_ups(self, slot: Slot) -> int:
        """Return how many runs are made and thrown away before that of `slot`: none where times are not reported."""
        place = slot.phase, slot.side, slot.point.id
        if slot.phase not in _WARMED or place in self._warm:
            return 0
        self._warm.add(place)
        return self.workloads[slot.point.workload].warmup

    def _check(self, slot: Slot, command: Command) -> None:
        """Run the workload's check after a run, with what that printed on its standard input; raise WorkloadError where it fails."""
        text = self.workloads[slot.point.workload].check
        if text is None or command.kept_output is None:
            return
        printed = command.kept_output if command.kept_output.exists() else None  # loads of both sides in turns have one output
        check = self._chore(slot, command, text, f"check of {command.where}", Purpose.CHECK)
        self.executor.execute(replace(check, input=printed))
        command.kept_output.unlink(missing_ok=True)

    def _kept(self, slot: Slot, command: Command) -> AbstractContextManager[dict[str, Shape]]:
        """Return what keeps the tree of a run as it is, and tells what that wrote: nothing where its target names none."""
        target = self.targets[slot.phase, slot.side]
        workload = self.workloads[slot.point.workload]
        if target.tree is None:
            if workload.prepare:
                self.executor.execute(self._chore(slot, command, workload.prepare, f"prepare of {command.where}", Purpose.PREPARE))
            return nullcontext({})
        if target.places is not None:
            self._aside.mkdir(exist_ok=True)
        setup, prepare = (
            self._chore(slot, command, text, f"{purpose} of {command.where}", purpose) if text else None
            for purpose, text in ((Purpose.SETUP, workload.setup), (Purpose.PREPARE, workload.prepare))
        )
        chores = Chores(workload.name, slot.point.id, slot.layout, setup, prepare)
        self.upkeep.set_aside(target.tree, target.byte_code)
        return self.upkeep.around(target.tree, command, chores, self.executor, target.home)

    def _inputs(self, slot: Slot) -> Mapping[str, Shape] | None:
        """Return what the setup of a run left in its tree."""
        tree = self.targets[slot.phase, slot.side].tree
        return None if tree is None else self.upkeep.inputs(tree, slot.point.id)

    def _chore(self, slot: Slot, command: Command, text: str, where: str, purpose: Purpose) -> Command:
        """Return a command in the tree of a run that is not measured and has no probes."""
        target = self.targets[slot.phase, slot.side]
        aside = target.places.environment(self._aside) if target.places else {}
        return replace(
            command,
            text=workloads.filled(text, self.inputs.located(slot.point)),
            environment={**target.surroundings(self.environment), **aside},
            exit_codes=(0,),
            where=where,
            purpose=purpose,
            kept_output=None,
        )

    def _served(self, slot: Slot, command: Command, seat: int) -> AbstractContextManager[Served]:
        """Return what has the services of a run up, nothing where it has none; which side has which `seat` is drawn, as the order is."""
        if not self.is_served(slot):
            return nullcontext(Served(command))
        if self.targets[slot.phase, slot.side].places is not None:
            self._aside.mkdir(exist_ok=True)
        situation = Situation(
            command=command,
            chore=self._chore(slot, command, "", command.where, Purpose.SERVICE),
            values=self.inputs.located(slot.point),
            names=self.workloads[slot.point.workload].services,
            client={**self.environment, **requests.environment()} if self.workloads[slot.point.workload].requests else None,
            patience=_WORST_SLOWDOWN if slot.phase is Phase.COUNTED else 1.0,
            seat=seat,
        )
        return self.services.around(situation, self.executor)

    @contextmanager
    def _watched(self, slots: Sequence[Slot]) -> Iterator[None]:
        if self.slow is None or slots[0].point.id in self._told:
            yield
            return
        timer = threading.Timer(LONG_S, self._tell, (slots,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _tell(self, slots: Sequence[Slot]) -> None:
        slot, limit = slots[0], self.limit_s(slots[0])
        self._told.add(slot.point.id)
        if self.slow is not None:
            sides = " or ".join(sorted(slot.side for slot in slots))
            is_usual = limit == self.workloads[slot.point.workload].timeout_s
            slow = "counting is slow" if slot.phase is Phase.COUNTED else "many times what it took when it was listed"
            why = "timeout_s of the workload" if is_usual else slow
            self.slow(
                f"one run of {slot.point.label} on {sides} has taken {LONG_S:g} s and goes on; it counts as hanging after {limit:g} s "
                f"({why}), and smaller parameters take less"
            )

    def limit_s(self, slot: Slot) -> float:
        """Return after how many seconds a run counts as hanging."""
        workload = self.workloads[slot.point.workload]
        if slot.phase is Phase.PLAIN:
            return min(workload.timeout_s, workload.plain_timeout_s)
        return workload.timeout_s * (_WORST_SLOWDOWN if slot.phase is Phase.COUNTED else 1.0)

    def _command(self, slot: Slot, folder: Path, number: int, beside: int) -> Command:
        """Return the command of a run that shares its CPU with so many, itself among them."""
        workload, target = self.workloads[slot.point.workload], self.targets[slot.phase, slot.side]
        steering = {"PERFDIFF_OUT": str(folder), "PERFDIFF_PLAN": str(target.plan), "PERFDIFF_SEED": f"{self.seed + number}"}
        return Command(
            text=requests.command(workload.requests, folder)
            if workload.requests
            else workloads.filled(target.command or workload.command, self.inputs.located(slot.point)),
            directory=target.directory,
            environment={
                **target.surroundings(self.environment),
                **target.drawn(slot, f"{self.seed}:{number}"),
                **(steering | dict(target.steering) if target.plan else {}),
                **(target.places.environment(folder) if target.places else {}),
            },
            timeout_s=beside * self.limit_s(slot),
            exit_codes=workload.exit_codes,
            where=f"{slot.side}{slot.phase.build}, {slot.point.label}",
            fixed_layout=target.fixed_layout,
            keyboard=target.keyboard,
            kept_output=folder / _OUTPUT if workload.check else None,
            features=printed.patterns(workload.features) if slot.phase is Phase.PLACED else {},
            own=target.tree.parent if target.tree is not None else None,
            echoes=Echoes.of((*slot.point.parameters.values(), *self.inputs.located(slot.point).values()), slot.point.command),
        )

    def _recordings(self, folder: Path) -> list[Recording]:
        """Return what the processes of a run recorded, and keep what they told."""
        said = remarks.read(folder)
        self.told |= dict.fromkeys(said.notes) | self.services.notes
        self.misplaced |= said.misplaced
        return [recording.read(path, sums_only=self.sums_only) for path in sorted(folder.glob("*.pdrec"))]

    def _stopped(self, slot: Slot, recordings: list[Recording]) -> list[Recording]:
        """Return recordings such that those of servers are complete, which end by a signal once all is answered."""
        if not self.is_served(slot):
            return recordings
        return [replace(recording, complete=recording.whole) for recording in recordings]


def _places(execution: Execution, counted: tuple[Ints, int], features: Mapping[str, float]) -> PlacesOfRun:
    exit_code = execution.behaviour.exit_code if execution.behaviour else 0
    return PlacesOfRun(counted[0], {**features, **execution.printed}, counted[1], execution.cpu_ns or execution.wall_ns, exit_code)


def _with_files(execution: Execution, files: Mapping[str, Shape], inputs: Mapping[str, Shape] | None) -> Execution:
    """Return a run with the files that it wrote in its tree, and those that its setup left there."""
    if execution.behaviour is None:
        return execution
    return replace(execution, behaviour=replace(execution.behaviour, files=files, inputs=inputs))


def _run(number: int, slot: Slot, execution: Execution, *, together: bool) -> Run:
    return Run(
        id=number,
        phase=slot.phase,
        point=slot.point.id,
        side=slot.side,
        block=slot.block,
        wall_ns=execution.wall_ns,
        cpu_ns=execution.cpu_ns or execution.wall_ns,  # kernels that count by ticks may say 0 of a short run
        max_rss_bytes=execution.max_rss_bytes,
        load=execution.load,
        steal=execution.steal,
        output=execution.output,
        waited=execution.waited,
        layout=slot.layout,
        together=together,
        services=execution.services,
        requests=execution.requests,
        behaviour=execution.behaviour,
        concurrency=execution.concurrency,
        delay_ns=execution.delay_ns,
        held_bytes=execution.held_bytes,
        kernel=execution.kernel,
    )
