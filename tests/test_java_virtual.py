"""Calls in virtual threads, which leave the thread of the system that carries them while they wait, and go on in another one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import java_programs
from perfdiff.records.plan import Mode, ProbePlan
from probed_runs import calls, edges, totals
from test_java_counting import OWN, made

NEWEST = java_programs.found()[max(java_programs.found())]

pytestmark = [pytest.mark.integration, pytest.mark.skipif(NEWEST.feature < 21, reason="needs a JVM of Java 21 or later")]

PROGRAM = """
import java.util.concurrent.locks.ReentrantLock;
class Main {
    static final ReentrantLock lock = new ReentrantLock();
    static void busy(long us) { long end = System.nanoTime() + us * 1000; while (System.nanoTime() < end) { } }
    static int sleeps(int n) throws Exception { busy(200); Thread.sleep(10); busy(200); return n; }
    static int locks(int n) throws Exception { lock.lock(); try { Thread.sleep(2); } finally { lock.unlock(); } return n; }
    static int fails(int n) throws Exception { Thread.sleep(1); if (n < 100) throw new IllegalStateException(); return n; }
    static int deep(int n) throws Exception { if (n == 0) { Thread.sleep(1); return 0; } return 1 + deep(n - 1); }
    static int all(int n) throws Exception {
        sleeps(n);
        locks(n);
        try { fails(n); } catch (IllegalStateException expected) { }
        return deep(20);
    }
    static void one() { try { for (int i = 0; i < 3; i++) all(i); } catch (Exception e) { throw new Error(e); } }
    public static void main(String[] arguments) throws Exception {
        Thread[] threads = new Thread[Integer.parseInt(arguments[0])];
        Runnable one = Main::one;
        for (int t = 0; t < threads.length; t++)
            threads[t] = (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, one);
        for (Thread thread : threads) thread.join();
        System.out.print("done");
    }
}
"""
METHODS = ["Main all (I)I", "Main sleeps (I)I", "Main locks (I)I", "Main fails (I)I", "Main deep (I)I"]
ALL, SLEEPS, LOCKS, FAILS, DEEP = range(1, 6)
DETAILED = ProbePlan(Mode.SAMPLE, detail=True, reservoir=1000)


def test_calls_go_with_their_threads(tmp_path: Path) -> None:
    program = java_programs.program(tmp_path, java_programs.jdk(), {"Main.java": PROGRAM}, dict.fromkeys(METHODS, ()))
    outcome = program.run("-cp", ".", "Main", "40", java=NEWEST.java, mode=DETAILED)
    record = outcome.only
    assert (outcome.output, outcome.notes) == ("done", ())
    assert calls(record) == {ALL: 120, SLEEPS: 120, LOCKS: 120, FAILS: 120, DEEP: 21 * 120}
    assert sum(totals(record, "unfinished").values()) == 0
    callees = dict.fromkeys([(ALL, SLEEPS), (ALL, LOCKS), (ALL, FAILS), (ALL, DEEP)], 120)
    assert edges(record) == {(0, ALL): 120, **callees, (DEEP, DEEP): 20 * 120}
    sleeping, locking = record.samples[SLEEPS], record.samples[LOCKS]
    assert len(sleeping.wall_ns) == 120
    assert min(sleeping.wall_ns) > 10e6  # also while nobody carried it
    assert 0.2e6 < np.median(sleeping.counters["cpu_ns"]) < 2e6  # what its carriers worked for others is not in it
    assert np.median(sleeping.lock_wait_ns) == 0
    assert np.median(locking.lock_wait_ns) > 4e6  # 39 others take 2 ms each
    assert (locking.lock_wait_ns <= locking.wall_ns).all()


def test_calls_of_more_threads_than_may_wait_are_counted_and_told(tmp_path: Path) -> None:
    program = java_programs.program(tmp_path, java_programs.jdk(), {"Main.java": PROGRAM}, {"Main all (I)I": ()})
    outcome = program.run("-cp", ".", "Main", "700", java=NEWEST.java)
    assert [word for word, _ in outcome.notes] == ["virtual"]
    assert calls(outcome.only) == {1: 2100}
    assert 0 < totals(outcome.only, "unfinished")[1] < 2100
    assert outcome.only.threads < 600


def test_counts_leave_them_out_and_say_so(tmp_path: Path) -> None:
    outcome = made(tmp_path, PROGRAM, "Main sleeps (I)I").run("-cp", ".", "Main", "3", java=NEWEST.java, mode=OWN)
    assert outcome.notes == (("virtual", "counts leave out calls in virtual threads"),)
    assert calls(outcome.only) == {}
