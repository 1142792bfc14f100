"""What whole runs ask of the kernel: what is called more, what is not, who asks for it, and how that is told."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import findings as made
import runtimes
from counted_programs import project
from perfdiff import pipeline
from perfdiff.analysis.counts.library import Departure
from perfdiff.analysis.kernel_use import KernelCaller, KernelFinding, KernelRequest
from perfdiff.analysis.peaks import MemoryStanding
from perfdiff.analysis.verdicts.kernel import kernel_finding, with_callers
from perfdiff.collect.execution.executor import Command, ProcessExecutor
from perfdiff.progress import Silent
from perfdiff.records import left_open
from perfdiff.records.kernel_use import KernelUse, LeftOpen
from perfdiff.records.recording_file import DamageError
from perfdiff.records.schema import Phase, Point, Run, Side
from perfdiff.report import html, kernel_use, terminal
from perfdiff.report.document import build as document_of
from perfdiff.report.document import headline
from programs import first_two

POINTS = [Point(place, "load", {"n": n}, f"./load {n}") for place, n in enumerate((1000, 2000, 4000))]
QUIET = KernelUse(8, 2, 4000, 100, 300)


def runs(*reads: tuple[Sequence[int], Sequence[int]]) -> list[Run]:
    """Return runs at each point of base and head that read so often."""
    return [
        Run(0, Phase.PLAIN, point.id, side, block, 1e7, 1e7, 1e6, None, None, "", kernel=replace(QUIET, reads=number))
        for point, both in zip(POINTS, reads, strict=False)
        for side, numbers in zip(Side, both, strict=True)
        for block, number in enumerate(numbers)
    ]


def judged(*reads: tuple[Sequence[int], Sequence[int]]) -> KernelFinding:
    finding = kernel_finding(POINTS, runs(*reads))
    assert finding is not None
    return finding


@pytest.mark.parametrize(
    ("base", "head", "standing"),
    [
        ([8] * 5, [1008] * 5, MemoryStanding.MORE),
        ([8] * 5, [8] * 5, MemoryStanding.NOT_MORE),
        ([8] * 5, [20] * 5, MemoryStanding.NOT_MORE),
        ([1000] * 5, [1090] * 5, MemoryStanding.NOT_MORE),
        ([1008] * 5, [8] * 5, MemoryStanding.LESS),
        ([1000, 1100, 1200, 1300, 1400], [1500, 1600, 1700, 1800, 1900], MemoryStanding.OPEN),
        ([1000, 1010, 1020, 1030, 1040], [1500, 1510, 1520, 1530, 1540], MemoryStanding.MORE),
    ],
    ids=["more", "the same", "few more", "a little more", "less", "runs that vary by as much", "runs far apart"],
)
def test_more_is_asked_of_the_kernel_where_it_is_beyond_all_that_runs_differ_by(
    base: list[int], head: list[int], standing: MemoryStanding
) -> None:
    standings = {point.request: point.standing for point in judged((base, head)).points}
    assert standings.pop(KernelRequest.READS) is standing
    assert set(standings.values()) == {MemoryStanding.NOT_MORE}


def test_four_runs_a_side_tell_nothing() -> None:
    assert kernel_finding(POINTS, runs(([8] * 4, [1008] * 4))) is None


def test_requests_that_vary_are_hardly_ever_more() -> None:
    """2,000 comparisons of three points whose runs of both sides vary alike, by a third."""
    rng, more = np.random.default_rng(7), 0
    for _ in range(2000):
        sides = [tuple(rng.lognormal(6, 0.3, 5).astype(int).tolist() for _ in Side) for _ in POINTS]
        more += judged(*sides).worst is not None
    assert more <= 2


def test_reports_tell_what_is_asked_more_with_who_asks_and_how_it_grows() -> None:
    finding = judged(*(([8 + n // 100] * 5, [8 + n] * 5) for n in (1000, 2000, 4000)))
    finding = replace(finding, callers=(KernelCaller("load_item", "read", 10.0, 4000.0),))
    says = (
        "Asks more of the kernel: calls that read, 48 → 4008 at load n=4000, 0.01 → 1 for each unit of n: "
        "`load_item` calls `read` 3990 times more a run."
    )
    findings = replace(made.findings(), kernel=finding)
    assert says in headline(findings)
    assert "Asked of the kernel" in terminal.render(document_of(findings))
    assert "Asked of the kernel" in html.render(document_of(findings))
    assert kernel_use.answer(judged(([8] * 5, [8] * 5))) is None


def test_what_a_run_and_its_children_read_is_counted(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100_000)
    texts = ("/bin/true", "dd if=file of=out bs=1000 status=none")
    few, many = (ProcessExecutor().execute(Command(text, tmp_path, dict(os.environ), 30.0, (0,), "here")).kernel for text in texts)
    if few is None or many is None:
        pytest.skip("the kernel does not count what processes read")
    assert 100 <= many.reads - few.reads < 150
    assert 100 <= many.writes - few.writes < 110
    assert 100_000 <= many.read_bytes - few.read_bytes < 140_000


PROGRAM = """
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
static char text[1 << 16];
static int left;
static long load(long size) {
    int file = open("main.c", O_RDONLY);
    long got, all = 0;
    while ((got = read(file, text, STEP)) > 0) all += got;
    if (left < LEFT) left++;
    else close(file);
    return all + size;
}
int main(int argc, char **argv) {
    long sum = 0;
    for (int i = 0; i < 2000; i++) sum += load(argc);
    printf("%d\\n", sum > 0);
    return argc == 7 && argv[1] != 0;
}
"""
TOML = """build.command = "cc -O2 -g main.c -o main"
[[workload]]
name = "load"
command = "./main"
"""


@pytest.mark.integration
def test_a_head_that_reads_in_smaller_steps_is_told_with_who_reads(tmp_path: Path) -> None:
    files = {"main.c": PROGRAM.replace("STEP", "sizeof text").replace("LEFT", "0"), "perfdiff.toml": TOML}
    head = {"main.c": PROGRAM.replace("STEP", "100").replace("LEFT", "6")}
    outcome = pipeline.compare(first_two(tmp_path, (files, head)), Silent())
    kernel = outcome.findings.kernel
    assert kernel is not None
    assert kernel.worst is not None
    assert (kernel.worst.request, kernel.worst.low > 5000) == (KernelRequest.READS, True)
    assert [(caller.function, caller.callee) for caller in kernel.callers] == [("load", "read")]
    (descriptors,) = (point for point in kernel.points if point.request is KernelRequest.DESCRIPTORS)
    assert (descriptors.standing, descriptors.low, descriptors.high) == (MemoryStanding.MORE, 6, 6)


OPENING = """
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <thread>
#include <unistd.h>
static void open_all(int n) {PD_1
    for (int i = 0; i < n; i++) open("/dev/null", O_RDONLY);
}
int main(int argc, char **argv) {PD_1
    open_all(atoi(argv[1]));
    std::thread waits([] { pause(); });
    waits.detach();
    if (argc > 2) _exit(0);
    return 0;
}
"""


@pytest.mark.integration
def test_what_a_counted_process_has_open_is_counted_as_it_ends_by_exit(tmp_path: Path) -> None:
    built = project(tmp_path, runtimes.library(), {"a.cc": OPENING}, "g++ $F -O1 a.cc -o program -lpthread")
    few, many = (built.counted(f"./program {n}").recording.left_open for n in (3, 900))
    assert few is not None
    assert many is not None
    assert (many.descriptors - few.descriptors, few.threads, many.threads) == (897, 2, 2)
    assert built.counted("./program 3 leave").recording.left_open is None


def test_descriptors_that_head_leaves_open_are_told_with_what_no_longer_closes_them() -> None:
    opened = [
        Run(0, Phase.COUNTED, 0, side, block, 1e7, 1e7, 1e6, None, None, "", left_open=LeftOpen(5 + 100 * (side is Side.HEAD), 1))
        for side in Side
        for block in range(2)
    ]
    finding = kernel_finding(POINTS, opened)
    assert finding is not None
    assert [point.standing for point in finding.points] == [MemoryStanding.MORE, MemoryStanding.NOT_MORE]
    load = made.findings().functions[0]
    closing = Departure("close", POINTS[0], 1, 0, 100, 0, np.zeros(3), True, np.zeros(3), np.zeros(3))
    told = with_callers(finding, [load], {load.info.id: [closing, replace(closing, name="strlen")]})
    says = "file descriptors open at the end, 5 → 105 at load n=1000: `insert` calls `close` 100 times less a run."
    assert told is not None
    assert (kernel_use.answer(told) or "").endswith(says)


def test_a_damaged_block_of_what_was_open_is_an_error() -> None:
    assert left_open.parse([(0, (7).to_bytes(8, "little") + (2).to_bytes(8, "little"))]) == LeftOpen(7, 2)
    with pytest.raises(DamageError):
        left_open.parse([(24, b"short")])
    assert left_open.of_run([LeftOpen(7, 2), LeftOpen(3, 1)]) == LeftOpen(10, 3)
    assert left_open.of_run([LeftOpen(7, 2), None]) is None
