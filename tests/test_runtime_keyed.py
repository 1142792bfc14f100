"""Calls without a frame on the C stack, as an interpreter enters them: told apart by keys, on one shadow stack with C calls."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import runtimes
from perfdiff.records import plan, recording
from perfdiff.records.plan import Entry, Mode
from perfdiff.records.recording import Recording

pytestmark = pytest.mark.integration

PROGRAM = """
#include <stdio.h>
#include <unistd.h>
#include "perfdiff_probe.h"

static char keys[4];

static __attribute__((noinline)) void begin(unsigned probe, const void *key) {
    struct pd_frame call = {probe, 0, 0, 0};
    if (pd_passes(probe) || !pd_enter_keyed(&call, key)) return;
    pd_unsigned(&call, 0, probe * 10);
    if (pd_type_of(&call, 1, key)) pd_type_tell(key, "module.Kind");
    pd_start(&call);
}

static __attribute__((noinline)) void compiled(void) {
    struct pd_frame frame __attribute__((cleanup(pd_leave))) = {3, 0, 0, 0};
    pd_enter(&frame);
}

static __attribute__((noinline)) void inside(int depth) {
    volatile char room[512] = {0};
    if (depth) inside(depth - 1); else compiled();
    room[0]++;
}

static void nested(void) {
    begin(1, &keys[0]);
    begin(2, &keys[1]);
    inside(0);
    inside(20);
    pd_leave_keyed(2, &keys[1]);
    inside(0);
    pd_leave_keyed(1, &keys[0]);
    begin(1, &keys[2]);
    pd_leave_keyed(1, &keys[2]);
}

static void lost(void) {
    begin(1, &keys[0]);
    begin(2, &keys[1]);
    pd_leave_keyed(1, &keys[0]);
    begin(1, &keys[0]);
    begin(1, &keys[0]);
    pd_leave_keyed(1, &keys[0]);
    pd_leave_keyed(1, &keys[3]);
}

static void many(void) {
    for (int i = 0; i < 5000; i++) {
        begin(1, &keys[0]);
        begin(2, &keys[1]);
        pd_leave_keyed(2, &keys[1]);
        pd_leave_keyed(1, &keys[0]);
    }
}

static void ended(void) {
    begin(1, &keys[0]);
    pd_end();
    begin(1, &keys[1]);
    pd_leave_keyed(1, &keys[0]);
}

int main(void) {
    CASE();
    printf("%d%d\\n", pd_is_off(1), pd_is_off(99));
    return 0;
}
"""


def run(folder: Path, case: str, entry: Entry) -> Recording:
    """Compile the program for one of its cases and return what it records."""
    library = runtimes.library()
    (folder / "program.c").write_text(PROGRAM)
    command = ["gcc", "-O2", "-Wall", "-Wno-unused-function", f"-DCASE={case}", f"-isystem{library}", "program.c", "-o", "program"]
    subprocess.run([*command, f"-L{library}", f"-Wl,-rpath,{library}", "-lperfdiff"], cwd=folder, check=True)
    plan.write(folder / "plan", dict.fromkeys((1, 2, 3), entry))
    steering = {"PERFDIFF_OUT": str(folder), "PERFDIFF_PLAN": str(folder / "plan")}
    ended = subprocess.run([folder / "program"], env=steering, capture_output=True, text=True, check=True)
    assert ended.stdout == "01\n"
    (path,) = folder.glob("*.pdrec")
    return recording.read(path)


def totals(record: Recording, name: str) -> dict[int, float]:
    return dict(zip(record.totals.probe.tolist(), getattr(record.totals, name).tolist(), strict=True))


def edges(record: Recording) -> dict[tuple[int, int], float]:
    pairs = zip(record.edges.caller.tolist(), record.edges.callee.tolist(), strict=True)
    return dict(zip(pairs, record.edges.calls.tolist(), strict=True))


SAMPLED = Entry(Mode.SAMPLE, reservoir=10, features=2)


def test_c_calls_and_keyed_calls_find_their_callers(tmp_path: Path) -> None:
    record = run(tmp_path, "nested", SAMPLED)
    assert edges(record) == {(0, 1): 2, (1, 2): 1, (2, 3): 2, (1, 3): 1}
    assert sum(totals(record, "unfinished").values()) == 0
    assert record.samples[1].cells[:, 0].tolist() == [10, 10]
    assert [record.types[int(cell)] for cell in record.samples[1].cells[:, 1]] == ["module.Kind"] * 2
    assert record.complete


def test_a_keyed_call_whose_end_was_not_told_is_dropped(tmp_path: Path) -> None:
    record = run(tmp_path, "lost", SAMPLED)
    assert totals(record, "calls") == {1: 3, 2: 1}
    assert totals(record, "unfinished") == {1: 1, 2: 1}
    assert edges(record) == {(0, 1): 3, (1, 2): 1}


def test_calls_that_pass_the_gate_are_left_without_an_entry(tmp_path: Path) -> None:
    record = run(tmp_path, "many", Entry(Mode.TIME, period=100, passing=True))
    assert totals(record, "calls") == {1: 5000, 2: 5000}
    assert sum(totals(record, "unfinished").values()) == 0
    assert totals(record, "timed")[1] < 200


def test_a_recording_that_was_ended_takes_no_calls(tmp_path: Path) -> None:
    record = run(tmp_path, "ended", SAMPLED)
    assert totals(record, "calls") == {1: 1}
    assert totals(record, "unfinished") == {1: 1}
    assert record.complete
