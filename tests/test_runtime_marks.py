"""Calls between two timed ones that leave a mark in place of an entry: who calls whom, and times of those around them."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import numpy as np
import pytest

from perfdiff.records.plan import Mode, ProbePlan
from probed_runs import edges
from test_runtime import BUSY, CHAIN, COUNT, TIME, Build, build, library, probe, row, sample  # noqa: F401 - fixtures

pytestmark = pytest.mark.integration

MARKED = ProbePlan(Mode.TIME, period=16, marked=True)


@pytest.mark.parametrize("flags", [(), ("-DPD_CALLED",)], ids=["inline", "called"])
@pytest.mark.parametrize(
    "other", [TIME, ProbePlan(Mode.COUNT), MARKED, replace(MARKED, marked=False)], ids=["timed", "counted", "marked", "looked at"]
)
def test_callees_find_callers_without_an_entry(flags: tuple[str, ...], other: ProbePlan, build: Build) -> None:  # noqa: F811
    source = """
    __attribute__((noinline)) int leaf(int n) {PD_1 __asm__ volatile(""); return n; }
    __attribute__((noinline)) int middle(int n) {PD_2 int s = 0; for (int i = 0; i < 3; i++) s += leaf(i); return s + n; }
    __attribute__((noinline)) int upper(int n) {PD_3 return middle(n) + leaf(n) + middle(n); }
    int main(void) {PD_4 int s = 0; for (int i = 0; i < 1000; i++) s += upper(i) + middle(i); return s == 0; }
    """
    [record] = build(source, *map(probe, (1, 2, 3, 4)), flags=flags).run({1: other, 2: MARKED, 3: MARKED, 4: TIME})
    assert edges(record) == {(0, 4): 1, (4, 3): 1000, (4, 2): 1000, (3, 2): 2000, (3, 1): 1000, (2, 1): 9000}
    assert [row(record, number)["calls"] for number in (1, 2, 3, 4)] == [10_000, 3000, 1000, 1]
    assert [row(record, number)["unfinished"] for number in (1, 2, 3, 4)] == [0, 0, 0, 0]
    assert row(record, 2)["timed"] == pytest.approx(32 + (3000 - 32) / 16, abs=4)


def test_what_is_timed_below_a_mark_is_no_part_of_those_around_it(build: Build) -> None:  # noqa: F811
    source = (
        BUSY
        + """
    __attribute__((noinline)) void inner(void) {PD_1 busy(3000); }
    __attribute__((noinline)) void outer(void) {PD_2 busy(2000); inner(); inner(); }
    __attribute__((noinline)) void beside(void) {PD_4 busy(1000); }
    int main(void) {PD_3 for (int i = 0; i < 4000; i++) { busy(8000); outer(); beside(); } return 0; }
    """
    )
    program = build(source, *map(probe, (1, 2, 3, 4)))
    shares = []
    for entry in (replace(MARKED, marked=False), MARKED):
        seen = {record.pid for record in program.recordings()}
        record = next(each for each in program.run({1: entry, 2: entry, 3: TIME, 4: TIME}) if each.pid not in seen)
        inner, outer, main, beside = (row(record, number) for number in (1, 2, 3, 4))
        assert edges(record) == {(0, 3): 1, (3, 2): 4000, (2, 1): 8000, (3, 4): 4000}
        assert main["wall_ns"] - main["self_ns"] == pytest.approx(outer["wall_ns"] + beside["wall_ns"], rel=0.1)
        assert main["self_ns"] > 0.3 * main["wall_ns"]  # next to nothing where the time of `inner` is taken off here as well
        assert record.edges.wall_ns[record.edges.callee == 1].sum() == pytest.approx(inner["wall_ns"])
        # One call in 16 stands for the others, and any of them may be interrupted.
        assert outer["wall_ns"] - outer["self_ns"] == pytest.approx(inner["wall_ns"], rel=0.5)
        shares.append([each["wall_ns"] / main["wall_ns"] for each in (inner, outer, beside)])
    assert shares[1] == pytest.approx(shares[0], rel=0.5)


def test_what_marks_cost_is_taken_off(build: Build) -> None:  # noqa: F811
    source = """
    #include <stdio.h>
    #include <time.h>
    static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return (double)t.tv_sec * 1e9 + (double)t.tv_nsec; }
    __attribute__((noinline)) void called(void) {PD_1 __asm__ volatile(""); }
    __attribute__((noinline)) void many(void) {PD_2 for (int i = 0; i < 1000; i++) called(); }
    __attribute__((noinline)) void outer(void) {PD_3 many(); __asm__ volatile(""); }
    int main(void) {
        double least = 1e9;
        for (int i = 0; i < 500; i++) { double start = now(), took = (outer(), now() - start); least = took < least ? took : least; }
        printf("%f", least);
        return 0;
    }
    """
    program = build(source, *map(probe, (1, 2, 3)))
    entries = {1: ProbePlan(Mode.TIME, period=256, marked=True), 2: TIME, 3: sample()}  # right below a call that is kept, none is marked
    raw = subprocess.run([program.path], env=program.environment(entries), capture_output=True, check=True).stdout
    [record] = program.recordings()
    assert edges(record)[2, 1] == 500_000
    assert float(raw) > 1000  # a nanosecond a call at the very least
    assert np.nanmin(record.samples[3].wall_ns) < 0.5 * float(raw)  # the least disturbed of 500


def test_a_sampled_callers_callees_are_looked_at(build: Build) -> None:  # noqa: F811
    source = (
        BUSY
        + """
    __attribute__((noinline)) void callee(void) {PD_1 busy(2000); }
    __attribute__((noinline)) void caller(void) {PD_2 busy(4000); for (int i = 0; i < 3; i++) callee(); __asm__ volatile(""); }
    int main(void) {PD_3 for (int i = 0; i < 2000; i++) caller(); return 0; }
    """
    )
    [record] = build(source, *map(probe, (1, 2, 3))).run({1: replace(sample(period=64), marked=True), 2: sample(reservoir=200), 3: TIME})
    assert row(record, 1)["calls"] == edges(record)[2, 1] == 6000
    assert 4000 <= np.nanmedian(record.samples[2].self_ns) < 6000 < np.nanmedian(record.samples[2].wall_ns)


@pytest.mark.parametrize("entry", [TIME, MARKED, replace(sample(period=16), passing=True)], ids=["timed", "marked", "passing"])
def test_of_many_callees_of_a_sampled_call_those_that_are_left_out_leave_marks(entry: ProbePlan, build: Build) -> None:  # noqa: F811
    """Its own time is neither that of callees that are marked, nor that of what these call, whether looked at or passing."""
    source = (
        BUSY
        + """
    __attribute__((noinline)) void leaf(void) {PD_1 busy(5000); }
    __attribute__((noinline)) void callee(void) {PD_2 busy(1000); leaf(); leaf(); __asm__ volatile(""); }
    __attribute__((noinline)) void caller(void) {PD_3 busy(400000); for (int i = 0; i < 300; i++) callee(); __asm__ volatile(""); }
    int main(void) {PD_4 for (int i = 0; i < 100; i++) caller(); return 0; }
    """
    )
    callee = replace(sample(period=64), marked=True)
    [record] = build(source, *map(probe, (1, 2, 3, 4))).run({1: entry, 2: callee, 3: sample(reservoir=100), 4: TIME})
    assert edges(record)[4, 3] == 100
    assert edges(record)[3, 2] == row(record, 2)["calls"] == 30_000
    assert edges(record)[2, 1] == pytest.approx(60_000, abs=60 * 64)
    assert row(record, 1)["calls"] == 60_000
    calls = record.samples[3]
    assert calls.callee_calls.tolist() == [300] * 100
    assert np.nanmedian(calls.wall_ns) > 1_000_000
    # What the timed callees stand for varies, the more the busier the machine is.
    assert 300_000 < np.nanmedian(calls.self_ns) < 0.2 * np.nanmedian(calls.wall_ns)


@pytest.mark.parametrize("marked", [False, True])
def test_a_callee_with_several_callers_in_turn_leaves_marks(marked: bool, build: Build) -> None:  # noqa: F811
    """The program ends inside three calls: of those, the ones with an entry are unfinished."""
    source = """
    #include <stdlib.h>
    __attribute__((noinline)) int leaf(int n) {PD_1 if (n == 100000) exit(0); return n; }
    __attribute__((noinline)) int first(int n) {PD_2 return leaf(n) + n; }
    __attribute__((noinline)) int second(int n) {PD_3 return leaf(n) - n; }
    int main(void) {PD_4 int s = 0; for (int i = 1;; i++) s += first(i - 1) + second(i); return s; }
    """
    entry = replace(MARKED, period=256, marked=marked)
    [record] = build(source, *map(probe, (1, 2, 3, 4))).run({1: entry, 2: entry, 3: entry, 4: COUNT})
    assert edges(record) == {(0, 4): 1, (4, 2): 100_000, (4, 3): 100_000, (2, 1): 100_000, (3, 1): 100_000}
    assert [row(record, number)["unfinished"] for number in (1, 2, 3, 4)] == [not marked, 0, not marked, 1]


@pytest.mark.parametrize("flags", [(), ("-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2")], ids=["plain", "fortified"])
def test_marks_of_calls_that_longjmp_leaves_go(flags: tuple[str, ...], build: Build) -> None:  # noqa: F811
    source = """
    #include <setjmp.h>
    static jmp_buf back;
    __attribute__((noinline)) void leaf(void) {PD_1 __asm__ volatile(""); }
    __attribute__((noinline)) void fails(int n) {PD_2 leaf(); if (n) longjmp(back, 1); __asm__ volatile(""); }
    __attribute__((noinline)) void parse(int n) {PD_3 fails(n); __asm__ volatile(""); }
    __attribute__((noinline)) void wide(void) {PD_4 char room[512]; __asm__ volatile("" :: "r"(room)); leaf(); }
    int main(void) {PD_5 for (volatile int i = 0; i < 1000; i++) { if (!setjmp(back)) parse(i % 2); wide(); leaf(); } return 0; }
    """
    seldom = replace(MARKED, period=100_000)
    [record] = build(source, *map(probe, (1, 2, 3, 4, 5)), flags=flags).run({1: TIME, 2: seldom, 3: seldom, 4: TIME, 5: TIME})
    found = edges(record)
    assert {calls: found[calls] for calls in ((0, 5), (5, 3), (2, 1), (4, 1), (5, 1))} == {
        (0, 5): 1,
        (5, 3): 1000,
        (2, 1): 1000,
        (4, 1): 1000,
        (5, 1): 1000,
    }
    assert (
        found[5, 4] >= 1000 - 16
    )  # of the first 32 calls of `parse`, which have entries, half do not end: their frames lie above that of `wide`


def test_exceptions_take_marks_away(build: Build) -> None:  # noqa: F811
    source = """
    __attribute__((noinline)) void leaf() {PD_1 __asm__ volatile(""); }
    __attribute__((noinline)) void thrower(int n) {PD_2 leaf(); if (n % 2) throw n; __asm__ volatile(""); }
    __attribute__((noinline)) void between(int n) {PD_3 thrower(n); __asm__ volatile(""); }
    int main() {PD_4 int caught = 0;
        for (int i = 0; i < 1000; i++) { try { between(i); } catch (int) { caught++; } leaf(); }
        return caught != 500;
    }
    """
    [record] = build(source, *map(probe, (1, 2, 3, 4)), compiler="g++").run({1: TIME, 2: MARKED, 3: MARKED, 4: TIME})
    assert edges(record) == {(0, 4): 1, (4, 3): 1000, (3, 2): 1000, (2, 1): 1000, (4, 1): 1000}


def test_inlined_calls_leave_their_marks_in_order(build: Build) -> None:  # noqa: F811
    source = """
    __attribute__((noinline)) int leaf(int n) {PD_1 __asm__ volatile(""); return n; }
    static inline __attribute__((always_inline)) int inner(int n) {PD_2 return leaf(n); }
    static inline __attribute__((always_inline)) int middle(int n) {PD_3 char pad[64]; __asm__ volatile("" :: "r"(pad)); return inner(n); }
    __attribute__((noinline)) int upper(int n) {PD_4 return middle(n) + inner(n) + leaf(n); }
    int main(void) {PD_5 int s = 0; for (int i = 0; i < 500; i++) s += upper(i) + middle(i) + leaf(i); return s == 0; }
    """
    [record] = build(source, *map(probe, (1, 2, 3, 4, 5))).run({1: TIME, 2: MARKED, 3: MARKED, 4: MARKED, 5: TIME})
    assert edges(record) == {
        (0, 5): 1,
        (5, 4): 500,
        (5, 3): 500,
        (5, 1): 500,
        (4, 3): 500,
        (4, 2): 500,
        (4, 1): 500,
        (3, 2): 1000,
        (2, 1): 1500,
    }


@pytest.mark.parametrize("alternate", [False, True])
def test_signal_handlers_leave_marks_as_they_were(build: Build, *, alternate: bool) -> None:  # noqa: F811
    source = """
    #include <signal.h>
    #include <stdlib.h>
    #include <sys/time.h>
    static volatile long handled;
    __attribute__((noinline)) void leaf(void) {PD_1 __asm__ volatile(""); }
    __attribute__((noinline)) void in_handler(void) {PD_2 leaf(); __asm__ volatile(""); }
    static void handler(int number) { (void)number; in_handler(); handled++; }
    __attribute__((noinline)) void f(void) {PD_3 leaf(); __asm__ volatile(""); }
    int main(int argc, char **argv) {PD_4
        stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
        struct sigaction action = {.sa_handler = handler, .sa_flags = argc > 1 ? SA_ONSTACK : 0};
        struct itimerval every = {{0, 100}, {0, 100}};
        (void)argv;
        sigaltstack(&stack, 0);
        sigaction(SIGALRM, &action, 0);
        setitimer(ITIMER_REAL, &every, 0);
        while (handled < 300) f();
        every = (struct itimerval){{0, 0}, {0, 0}};
        setitimer(ITIMER_REAL, &every, 0);
        for (int i = 0; i < 1000; i++) leaf();
        return handled < 300;
    }
    """
    program = build(source, *map(probe, (1, 2, 3, 4)))
    [record] = program.run({1: TIME, 2: MARKED, 3: MARKED, 4: TIME}, *["alternate"] * alternate)
    found = edges(record)
    assert found[4, 1] == 1000
    assert found[2, 1] == row(record, 2)["calls"] >= 300
    assert found[3, 1] == row(record, 3)["calls"]
    assert sum(calls for (_, callee), calls in found.items() if callee == 2) == row(record, 2)["calls"]


@pytest.mark.parametrize("begin", ["fork()", "(int)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)"], ids=["fork", "system call"])
def test_a_child_that_begins_below_a_mark_has_calls_of_its_own_alone(build: Build, begin: str) -> None:  # noqa: F811
    source = """
    #include <signal.h>
    #include <sys/syscall.h>
    #include <sys/wait.h>
    #include <unistd.h>
    __attribute__((noinline)) void f(void) {PD_1 __asm__ volatile(""); }
    __attribute__((noinline)) int parted(int part) {PD_2
        int child = 0;
        f();
        if (part && !(child = BEGIN)) { for (int i = 0; i < 7; i++) f(); }
        return child;
    }
    int main(void) {
        int child = 1;
        for (int i = 0; i < 100 && child; i++) {
            child = parted(i == 50);
            if (i == 50 && child) waitpid(child, 0, 0);
            child = child || i != 50;
        }
        if (!child) f();
        return 0;
    }
    """.replace("BEGIN", begin)
    records = build("#define _GNU_SOURCE\n" + source, *map(probe, (1, 2))).run({1: MARKED, 2: MARKED})
    parent = next(record for record in records if record.pid == min(each.pid for each in records))
    assert edges(parent) == {(0, 2): 100, (2, 1): 100}
    (child,) = (record for record in records if record is not parent)
    assert edges(child) == {(0, 1): 8}
