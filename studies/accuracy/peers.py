"""The same questions put to other tools, side by side: which function, what growth, and how often a difference where there is none?

Two programs with a known change: one where a loop over each element became five times as costly, one where appending to a list became
quadratic. Pairs without a difference are the first program's base, built and measured twice.
"""

from __future__ import annotations

import time
from pathlib import Path

import programs
from perfdiff import pipeline
from perfdiff.progress import Silent
from studies.accuracy.null import ALARMS, compared
from studies.support import figures, inputs, peers
from studies.support.peers import Answer, Peer, UnavailableError
from studies.support.sizes import Size, anew, say, share

QUESTIONS = ("coefficient", "list-append")
NULL = "coefficient"
NULLS = {Size.QUICK: 2, Size.SHORT: 10, Size.LONG: 20, Size.FULL: 100}
FIRST_SEED = 8_000_000
METRIC = "self_ns"


class Perfdiff:
    """perfdiff with its defaults, on the fixtures' own workloads; base against base takes every function for changed."""

    name = "perfdiff"

    def __init__(self, room: Path) -> None:
        self._room = room
        self._seed = FIRST_SEED

    def ask(self, program: str, base: str, head: str, folder: Path) -> Answer:
        """Compare two revisions."""
        if base == head:
            self._seed += 1
            return Answer(compared(program, (base, head), self._seed, self._room).verdict in ALARMS)
        findings = pipeline.compare(inputs.request(program, self._room, base, head), Silent()).findings
        first = next((function for function in findings.functions if function.rank == 1), None)
        annotation = first.metrics[METRIC].head if first else None
        return Answer(findings.verdict in ALARMS, first.info.name if first else None, annotation.cost_class.value if annotation else None)


def told(answer: Answer, guilty: str, growth: str) -> tuple[str, str]:
    """Return in words whether function and growth are right."""
    if not answer.differs:
        return "sees none", "sees none"
    named = "says none" if answer.function is None else "right" if answer.function == guilty else f"**{answer.function}**"
    said = "says none" if answer.growth is None else "right" if answer.growth == growth else f"**{answer.growth}**"
    return named, said


def asked(peer: Peer, size: Size, folder: Path) -> tuple[list[str], float]:
    """Put all questions to a tool; return the cells of its row and the seconds of one answer."""
    cells: list[str] = []
    start = time.perf_counter()
    for program in QUESTIONS:
        expected = next(case.expected for case in programs.cases() if case.name == program)
        cells += told(peer.ask(program, "base", "head", anew(folder)), expected["guilty"], expected["class"]["head"])
        say(f"{peer.name}, {program}: {cells[-2:]}")
    start = time.perf_counter()
    alarms = sum(peer.ask(NULL, "base", "base", anew(folder)).differs for _ in range(NULLS[size]))
    seconds = (time.perf_counter() - start) / NULLS[size]
    say(f"{peer.name}: {alarms} alarms in {NULLS[size]} pairs, {seconds:.1f} s each")
    return [*cells, share(alarms, NULLS[size])], seconds


def run(size: Size, room: Path) -> None:
    """Print the table."""
    questions = [f"{program}: {what}" for program in QUESTIONS for what in ("function", "growth")]
    with figures.printed("(f) Other tools", "tool", *questions, "false alarms", "seconds a comparison") as table:
        for peer in (Perfdiff(room), *peers.all_peers(room / "peers")):
            try:
                cells, seconds = asked(peer, size, room / "peers" / "at-work")
            except UnavailableError as error:
                say(f"{peer.name} is skipped: {error}")
                table.remarks.append(f"{peer.name} is skipped: {error}")
                continue
            table.add(peer.name, *cells, f"{seconds:.1f}")
        table.remarks += [
            f"hyperfine: {peers.RUNS} runs each at n = {peers.LARGEST:,}, Welch's test at {peers.LEVEL}, as in its own script. uftrace: "
            f"one traced run each, a difference is more than {peers.LEVEL:.0%} of the first function listed, as it has no test. Extra-P: "
            f"{peers.MODELLED_RUNS} runs at {len(peers.SIZES)} sizes, a difference is another class of growth. compare.py: "
            f"{peers.REPETITIONS} repetitions of benchmarks written for the purpose, its U test at {peers.LEVEL}.",
            " ".join(peers.NOT_ASKED),
        ]
