"""Calls without a frame on the C stack, as an interpreter enters them: told apart by keys, on one shadow stack with C calls."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import runtimes
from perfdiff.records import plan, recording
from perfdiff.records.plan import Mode, ProbePlan
from perfdiff.records.recording import Recording
from probed_runs import edges, totals

pytestmark = pytest.mark.integration

PROGRAM = """
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
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

static __attribute__((noinline)) void moving(unsigned probe, const void *key) {
    struct pd_frame call = {probe, 0, 0, 0};
    if (!pd_passes(probe) && pd_enter_moving(&call, key)) pd_start(&call);
}

static __attribute__((noinline)) void below(unsigned probe, const void *key, int depth) {
    volatile char room[16384] = {0};
    if (depth) below(probe, key, depth - 1); else moving(probe, key);
    room[0]++;
}

static void moved(void) {
    below(1, &keys[0], 1);
    moving(2, &keys[1]);
    compiled();
    pd_leave_keyed(2, &keys[1]);
    pd_leave_keyed(1, &keys[0]);
    below(1, &keys[0], 10);
    moving(2, &keys[1]);
    pd_leave_keyed(2, &keys[1]);
}

static void resumed(void) {
    moving(1, &keys[0]);
    moving(2, &keys[1]);
    pd_resume_keyed(1, &keys[0]);
    pd_resume_keyed(1, &keys[3]);
    moving(3, &keys[2]);
    pd_leave_keyed(3, &keys[2]);
    pd_leave_keyed(1, &keys[0]);
}

static void paused(void) {
    pd_waits_tell();
    moving(1, &keys[0]);
    pd_pause_begin();
    usleep(20000);
    pd_pause_end();
    pd_wait_begin();
    usleep(5000);
    pd_wait_end();
    pd_leave_keyed(1, &keys[0]);
}

static atomic_int is_inside;

static void work(double ms) {
    struct timespec now;
    double end = 0;
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        if (!end) end = now.tv_sec * 1e3 + now.tv_nsec / 1e6 + ms;
    } while (now.tv_sec * 1e3 + now.tv_nsec / 1e6 < end);
}

static void *collecting(void *unused) {
    while (!is_inside) usleep(100);
    usleep(3000);
    pd_pause_begin();
    work(40);
    pd_pause_end();
    return unused;
}

/* On one CPU, and so nice that whoever else has something to do there has it for itself. */
static pthread_t beside_a_collector(void) {
    cpu_set_t all, one;
    pthread_t collector;
    int cpu = 0;
    sched_getaffinity(0, sizeof(all), &all);
    while (!CPU_ISSET(cpu, &all)) cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
    pthread_create(&collector, NULL, collecting, NULL);
    setpriority(PRIO_PROCESS, 0, 19);
    return collector;
}

/* From then on it is asked at a call's start, too, what the thread has lost, and the recording has room for it. */
static void long_call(unsigned probe) {
    moving(probe, &keys[3]);
    work(1);
    pd_leave_keyed(probe, &keys[3]);
}

static void starved(void) {
    pthread_t collector = beside_a_collector();
    long_call(1);
    moving(1, &keys[0]);
    is_inside = 1;
    work(20);
    pd_leave_keyed(1, &keys[0]);
    pthread_join(collector, NULL);
}

static void starved_while_reading(void) {
    pthread_t collector = beside_a_collector();
    struct pd_frame call = {2, 0, 0, 0};
    long_call(1);
    long_call(2);
    moving(1, &keys[0]);
    pd_enter_moving(&call, &keys[1]);
    is_inside = 1;
    work(20);
    pd_start(&call);
    work(20);
    pd_leave_keyed(2, &keys[1]);
    pd_leave_keyed(1, &keys[0]);
    pthread_join(collector, NULL);
}

static void *call_left;

static void *leaving(void *unused) {
    work(3);
    begin(1, &keys[0]);
    moving(2, &keys[1]);
    work(5);
    call_left = pd_detach(0);
    begin(1, &keys[2]);
    pd_leave_keyed(1, &keys[2]);
    return unused;
}

static void *going_on(void *unused) {
    work(20);
    begin(3, &keys[3]);
    pd_leave_keyed(3, &keys[3]);
    pd_attach(call_left);
    work(5);
    moving(3, &keys[2]);
    pd_leave_keyed(3, &keys[2]);
    pd_leave_keyed(2, &keys[1]);
    pd_leave_keyed(1, &keys[0]);
    return unused;
}

static void in_thread(void *(*function)(void *)) {
    pthread_t thread;
    pthread_create(&thread, NULL, function, NULL);
    pthread_join(thread, NULL);
}

static void carried(void) {
    in_thread(leaving);
    usleep(30000);
    in_thread(going_on);
}

static void never_carried_on(void) {
    in_thread(leaving);
    usleep(30000);
}

static void *waiting(void *unused) {
    begin(1, &keys[0]);
    call_left = pd_detach(1);
    return unused;
}

static void carried_after_a_wait(void) {
    pd_waits_tell();
    in_thread(waiting);
    begin(3, &keys[3]);
    pd_wait_begin();
    usleep(30000);
    pd_wait_end();
    pd_leave_keyed(3, &keys[3]);
    pd_attach(call_left);
    pd_leave_keyed(1, &keys[0]);
}

static void kept_waiting(void) {
    pd_waits_tell();
    begin(1, &keys[0]);
    pd_wait_begin();
    usleep(5000);
    call_left = pd_detach(0);
    begin(3, &keys[3]);
    pd_wait_end();
    pd_leave_keyed(3, &keys[3]);
    usleep(10000);
    pd_attach(call_left);
    pd_wait_end();
    pd_leave_keyed(1, &keys[0]);
    if (pd_detach(1)) begin(2, &keys[1]); /* nothing is open that could be left */
}

int main(void) {
    CASE();
    printf("%d%d\\n", pd_is_off(1), pd_is_off(99));
    return 0;
}
"""


def run(folder: Path, case: str, entry: ProbePlan) -> Recording:
    """Compile the program for one of its cases and return what it records."""
    library = runtimes.library()
    (folder / "program.c").write_text(PROGRAM)
    command = [
        "gcc",
        "-O2",
        "-Wall",
        "-Wno-unused-function",
        f"-DCASE={case}",
        f"-isystem{library}",
        "program.c",
        "-o",
        "program",
        "-pthread",
    ]
    subprocess.run([*command, f"-L{library}", f"-Wl,-rpath,{library}", "-lperfdiff"], cwd=folder, check=True)
    plan.write(folder / "plan", dict.fromkeys((1, 2, 3), entry))
    steering = {"PERFDIFF_OUT": str(folder), "PERFDIFF_PLAN": str(folder / "plan")}
    ended = subprocess.run([folder / "program"], env=steering, capture_output=True, text=True, check=True)
    assert ended.stdout == "01\n"
    (path,) = folder.glob("*.pdrec")
    return recording.read(path)


SAMPLED = ProbePlan(Mode.SAMPLE, reservoir=10, features=2)


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
    record = run(tmp_path, "many", ProbePlan(Mode.TIME, period=100, passing=True))
    assert totals(record, "calls") == {1: 5000, 2: 5000}
    assert sum(totals(record, "unfinished").values()) == 0
    assert totals(record, "timed")[1] < 200


def test_a_recording_that_was_ended_takes_no_calls(tmp_path: Path) -> None:
    record = run(tmp_path, "ended", SAMPLED)
    assert totals(record, "calls") == {1: 1}
    assert totals(record, "unfinished") == {1: 1}
    assert record.complete


def test_a_call_whose_frame_has_moved_up_the_stack_a_little_is_still_open(tmp_path: Path) -> None:
    record = run(tmp_path, "moved", SAMPLED)
    assert edges(record) == {(0, 1): 2, (1, 2): 1, (2, 3): 1, (0, 2): 1}
    assert totals(record, "unfinished") == {1: 1, 2: 0, 3: 0}


def test_a_call_that_goes_on_has_no_calls_inside(tmp_path: Path) -> None:
    record = run(tmp_path, "resumed", SAMPLED)
    assert edges(record) == {(0, 1): 1, (1, 2): 1, (1, 3): 1}
    assert totals(record, "unfinished") == {1: 0, 2: 1, 3: 0}


def test_a_pause_of_all_threads_is_no_calls_time_and_a_wait_that_is_told_is(tmp_path: Path) -> None:
    record = run(tmp_path, "paused", SAMPLED)
    assert 5e6 < record.totals.wall_ns[0] < 20e6
    assert 5e6 < record.totals.lock_wait_ns[0] < 20e6


def test_a_pause_that_keeps_a_thread_from_its_cpu_is_taken_off_once(tmp_path: Path) -> None:
    record = run(tmp_path, "starved", SAMPLED)
    assert 15e6 < totals(record, "wall_ns")[1] < 30e6


def test_a_pause_while_inputs_are_read_is_no_time_of_the_call_or_its_caller(tmp_path: Path) -> None:
    record = run(tmp_path, "starved_while_reading", SAMPLED)
    assert 15e6 < totals(record, "wall_ns")[1] < 30e6
    assert 15e6 < totals(record, "wall_ns")[2] < 30e6


DETAILED = ProbePlan(Mode.SAMPLE, detail=True, reservoir=10, features=2)


def test_calls_that_another_thread_ends_have_the_time_and_the_work_of_both(tmp_path: Path) -> None:
    record = run(tmp_path, "carried", DETAILED)
    assert edges(record) == {(0, 1): 2, (1, 2): 1, (2, 3): 1, (0, 3): 1}
    assert sum(totals(record, "unfinished").values()) == 0
    assert record.threads == 2  # the calls' own, and one that both threads of the system had while they carried none of these
    lasted = max(record.samples[1].wall_ns)
    assert lasted > 60e6  # 5 ms here, 50 ms of waiting for the thread that worked elsewhere, 5 ms there
    assert 10e6 <= max(record.samples[1].counters["cpu_ns"]) < 15e6
    assert 10e6 <= record.samples[2].counters["cpu_ns"][0] < 15e6


def test_calls_that_nobody_goes_on_with_last_until_the_end(tmp_path: Path) -> None:
    record = run(tmp_path, "never_carried_on", SAMPLED)
    assert totals(record, "unfinished") == {1: 1, 2: 1}
    assert totals(record, "wall_ns")[2] > 35e6
    assert record.complete


def test_calls_wait_from_when_they_are_left_where_that_is_said(tmp_path: Path) -> None:
    record = run(tmp_path, "carried_after_a_wait", SAMPLED)
    assert 30e6 < totals(record, "lock_wait_ns")[1] <= totals(record, "wall_ns")[1]
    assert 30e6 < totals(record, "lock_wait_ns")[3] <= totals(record, "wall_ns")[3]


def test_a_wait_goes_with_the_calls_that_wait_and_is_nobody_elses(tmp_path: Path) -> None:
    record = run(tmp_path, "kept_waiting", SAMPLED)
    assert totals(record, "calls") == {1: 1, 3: 1}
    assert 15e6 < totals(record, "lock_wait_ns")[1] <= totals(record, "wall_ns")[1]
    assert totals(record, "lock_wait_ns")[3] == 0
