"""The runtime where threads meet, and where other processes have the CPU meanwhile."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perfdiff.languages import compiled
from perfdiff.languages.c import runtime_library
from probed_runs import edges
from test_runtime import BUSY, COUNT, TIME, Build, build, library, probe, row, sample  # noqa: F401 - fixtures

pytestmark = pytest.mark.integration


def test_calls_that_passed_before_a_thread_ended_are_counted(build: Build) -> None:  # noqa: F811
    source = """
    #include <pthread.h>
    __attribute__((noinline)) void f(void) {PD_1 __asm__ volatile(""); }
    static void *work(void *n) { for (int i = 0; i < 333; i++) f(); return n; }
    int main(void) {
        pthread_t thread;
        for (int i = 0; i < 100; i++) { pthread_create(&thread, 0, work, 0); pthread_join(thread, 0); }
        for (int i = 0; i < 77; i++) f();
        return 0;
    }
    """
    [record] = build(source, probe(1)).run({1: replace(sample(period=64), passing=True)})
    assert row(record, 1)["calls"] == 33377


def test_time_without_a_cpu_is_taken_off_and_time_asleep_is_not(build: Build) -> None:  # noqa: F811
    source = (
        BUSY
        + """
    #include <sched.h>
    #include <stdlib.h>
    #include <sys/wait.h>
    #include <unistd.h>
    __attribute__((noinline)) void f(void) {PD_1 busy(150000000); }
    __attribute__((noinline)) void g(void) {PD_2 usleep(50000); }
    int main(void) {
        cpu_set_t one; CPU_ZERO(&one); CPU_SET(0, &one);
        sched_setaffinity(0, sizeof one, &one);
        pid_t rival = fork();
        if (rival == 0) { busy(300000000); _exit(0); }
        f();
        waitpid(rival, NULL, 0);
        g();
        return 0;
    }
    """
    )
    [record] = build("#define _GNU_SOURCE\n" + source, probe(1), probe(2)).run({1: TIME, 2: TIME})
    f, g = row(record, 1), row(record, 2)
    assert f["wall_ns"] == pytest.approx(
        150e6, rel=0.3
    )  # it shared its CPU, and took twice as long by the clock, or longer on a busy machine
    assert g["wall_ns"] >= 50e6


def test_seconds_without_a_cpu_are_taken_off_a_call(build: Build) -> None:  # noqa: F811
    """Their product with the ticks of the call is more than 64 bits hold."""
    source = (
        BUSY
        + """
    #include <sched.h>
    #include <signal.h>
    #include <sys/wait.h>
    #include <unistd.h>
    __attribute__((noinline)) void f(void) {PD_1 busy(1000000000); }
    int main(void) {
        cpu_set_t one; CPU_ZERO(&one); CPU_SET(0, &one);
        sched_setaffinity(0, sizeof one, &one);
        pid_t rivals[4];
        for (int i = 0; i < 4; i++) if ((rivals[i] = fork()) == 0) for (;;) busy(1000000);
        f();
        for (int i = 0; i < 4; i++) { kill(rivals[i], SIGKILL); waitpid(rivals[i], NULL, 0); }
        return 0;
    }
    """
    )
    [record] = build("#define _GNU_SOURCE\n" + source, probe(1)).run({1: TIME})
    assert row(record, 1)["wall_ns"] == pytest.approx(1e9, rel=0.3)


def test_time_without_a_cpu_before_and_after_a_call_is_not_taken_off_it(build: Build) -> None:  # noqa: F811
    calls, call_ns = 4000, 300_000
    source = (
        BUSY
        + f"""
    #include <sched.h>
    #include <signal.h>
    #include <sys/wait.h>
    #include <unistd.h>
    __attribute__((noinline)) void f(void) {{PD_1 busy({call_ns}); }}
    int main(void) {{
        cpu_set_t one; CPU_ZERO(&one); CPU_SET(0, &one);
        sched_setaffinity(0, sizeof one, &one);
        pid_t rival = fork();
        if (rival == 0) for (;;) {{ busy(40000); usleep(30); }}
        for (int i = 0; i < {calls}; i++) f();
        kill(rival, SIGKILL);
        waitpid(rival, NULL, 0);
        return 0;
    }}
    """
    )
    [record] = build("#define _GNU_SOURCE\n" + source, probe(1)).run({1: sample(reservoir=calls)})
    wall_ns = record.samples[1].wall_ns
    assert (wall_ns[np.isfinite(wall_ns)] < 0.7 * call_ns).sum() <= calls / 1000


def test_time_without_a_cpu_before_a_call_is_not_taken_off_it_by_a_long_one_inside(build: Build) -> None:  # noqa: F811
    """The first look since that time is that of the long call: nobody has looked at the clocks while short ones ran."""
    calls, long_ns = 20_000, 200_000
    source = (
        BUSY
        + f"""
    #include <sched.h>
    #include <signal.h>
    #include <sys/wait.h>
    #include <unistd.h>
    __attribute__((noinline)) void inner(long ns) {{PD_2 busy(ns); }}
    __attribute__((noinline)) void outer(long ns) {{PD_1 inner(ns); busy(10000); }}
    int main(void) {{
        cpu_set_t one; CPU_ZERO(&one); CPU_SET(0, &one);
        sched_setaffinity(0, sizeof one, &one);
        pid_t rival = fork();
        if (rival == 0) for (;;) busy(1000000);
        for (int i = 0; i < {calls}; i++) outer(i % 100 < 2 ? {long_ns} : 0);
        kill(rival, SIGKILL);
        waitpid(rival, NULL, 0);
        return 0;
    }}
    """
    )
    [record] = build("#define _GNU_SOURCE\n" + source, probe(1), probe(2)).run({1: sample(reservoir=calls, period=16), 2: TIME})
    outer, wall_ns = row(record, 1), record.samples[1].wall_ns
    short_ns = float(np.nanmedian(wall_ns))
    assert outer["wall_ns"] == pytest.approx(calls * (short_ns + long_ns * 2 / 100), rel=0.25)
    assert outer["self_ns"] == pytest.approx(calls * short_ns, rel=0.25)


def test_time_without_a_cpu_while_a_probe_reads_is_taken_off_its_callers_once(build: Build) -> None:  # noqa: F811
    calls = 6000
    source = (
        BUSY
        + f"""
    #include <sched.h>
    #include <signal.h>
    #include <sys/wait.h>
    #include <unistd.h>
    __attribute__((noinline)) void inner(void) {{PD_2 busy(10000); }}
    __attribute__((noinline)) void outer(void) {{PD_1 inner(); busy(10000); }}
    int main(void) {{
        cpu_set_t one; CPU_ZERO(&one); CPU_SET(0, &one);
        sched_setaffinity(0, sizeof one, &one);
        pid_t rival = fork();
        if (rival == 0) for (;;) busy(1000000);
        for (int i = 0; i < {calls}; i++) outer();
        kill(rival, SIGKILL);
        waitpid(rival, NULL, 0);
        return 0;
    }}
    """
    )
    reads = probe(2, "pd_signed(&pd_frame_, 0, (pd_signed_t)(busy(60000), 1))")
    [record] = build("#define _GNU_SOURCE\n" + source, probe(1), reads).run({1: sample(period=16), 2: sample(1, reservoir=calls)})
    outer, inner = row(record, 1), row(record, 2)
    for number, found in ((1, outer), (2, inner)):
        assert 0.8 < found["wall_ns"] / (calls * float(np.nanmedian(record.samples[number].wall_ns))) < 1.3


def test_threads_are_summed_and_ended_ones_make_room(build: Build) -> None:  # noqa: F811
    source = """
    #include <pthread.h>
    __attribute__((noinline)) void f(long n) {PD_1 __asm__ volatile(""); }
    static void *work(void *n) {PD_2 for (long i = 0; i < 1000; i++) f(i); return n; }
    int main(void) {
        pthread_t threads[20];
        for (int round = 0; round < 10; round++) {
            for (int i = 0; i < 20; i++) pthread_create(&threads[i], 0, work, 0);
            for (int i = 0; i < 20; i++) pthread_join(threads[i], 0);
        }
        return 0;
    }
    """
    [record] = build(source, probe(1, "pd_signed(&pd_frame_, 0, (pd_signed_t)(n))"), probe(2)).run({1: sample(1, reservoir=50), 2: TIME})
    assert edges(record) == {(0, 2): 200, (2, 1): 200000}
    assert row(record, 2)["unfinished"] == 0
    samples = record.samples[1]
    assert 1 <= len(set(samples.thread.tolist())) <= 21
    assert samples.weight.sum() == pytest.approx(200000)


def test_waiting_for_and_holding_a_lock(build: Build) -> None:  # noqa: F811
    source = (
        BUSY
        + """
    #include <pthread.h>
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static pthread_barrier_t barrier;
    __attribute__((noinline)) void holder(void) {PD_1
        pthread_mutex_lock(&lock);
        pthread_barrier_wait(&barrier);
        busy(20000000);
        pthread_mutex_unlock(&lock);
    }
    __attribute__((noinline)) void waiter(void) {PD_2 pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); }
    static void *other(void *n) { pthread_barrier_wait(&barrier); waiter(); return n; }
    int main(void) {
        pthread_t thread;
        pthread_barrier_init(&barrier, 0, 2);
        pthread_create(&thread, 0, other, 0);
        holder();
        return pthread_join(thread, 0);
    }
    """
    )
    [record] = build(source, probe(1), probe(2)).run({1: TIME, 2: TIME})
    holder, waiter = row(record, 1), row(record, 2)
    assert holder["lock_hold_ns"] >= 20e6
    assert holder["lock_wait_ns"] == 0
    assert 0 < waiter["lock_wait_ns"] <= waiter["wall_ns"]
    assert waiter["lock_hold_ns"] < holder["lock_hold_ns"]


@pytest.mark.parametrize(
    ("lock", "take", "let_go"),
    [
        ("pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER", "mutex_timedlock(&lock, &until)", "mutex_unlock"),
        ("pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER", "mutex_clocklock(&lock, CLOCK_REALTIME, &until)", "mutex_unlock"),
        *(
            ("pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER", f"rwlock_{take}, &until)", "rwlock_unlock")
            for kind in ("rdlock", "wrlock")
            for take in (f"timed{kind}(&lock", f"clock{kind}(&lock, CLOCK_REALTIME")
        ),
    ],
)
def test_locks_that_are_waited_for_until_a_time_are_held_and_waited_for(build: Build, lock: str, take: str, let_go: str) -> None:  # noqa: F811
    """As by std::timed_mutex and std::shared_timed_mutex of C++."""
    source = (
        BUSY
        + f"""
    #include <pthread.h>
    static {lock};
    static struct timespec until;
    static void in(long ns) {{
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += (until.tv_nsec + ns) / 1000000000;
        until.tv_nsec = (until.tv_nsec + ns) % 1000000000;
    }}
    static int take(void) {{ return pthread_{take}; }}
    __attribute__((noinline)) void holder(void) {{PD_1
        in(0);
        if (!take()) {{ busy(20000000); pthread_{let_go}(&lock); }}
    }}
    __attribute__((noinline)) void waiter(void) {{PD_2 in(20000000); take(); }}
    static void *other(void *n) {{ waiter(); return n; }}
    int main(void) {{
        pthread_t thread;
        holder();
        pthread_{"rwlock_wrlock" if "rwlock" in lock else "mutex_lock"}(&lock);
        pthread_create(&thread, 0, other, 0);
        return pthread_join(thread, 0);
    }}
    """
    )
    [record] = build(source, probe(1), probe(2), flags=("-D_GNU_SOURCE",)).run({1: TIME, 2: TIME})
    holder, waiter = row(record, 1), row(record, 2)
    assert (holder["lock_hold_ns"] >= 20e6, holder["lock_wait_ns"]) == (True, 0)
    assert waiter["lock_wait_ns"] >= 15e6


def test_waiting_for_a_condition_is_not_holding_its_lock(build: Build) -> None:  # noqa: F811
    source = """
    #include <pthread.h>
    #include <time.h>
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    int main(void) {PD_1
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 30000000;
        if (until.tv_nsec >= 1000000000) { until.tv_nsec -= 1000000000; until.tv_sec++; }
        pthread_mutex_lock(&lock);
        while (!pthread_cond_timedwait(&never, &lock, &until)) { }
        return pthread_mutex_unlock(&lock);
    }
    """
    [record] = build(source, probe(1)).run({1: TIME})
    assert row(record, 1)["lock_wait_ns"] >= 25e6
    assert row(record, 1)["lock_hold_ns"] < 10e6


def test_threads_that_run_on_while_the_process_exits(build: Build) -> None:  # noqa: F811
    source = """
    #include <pthread.h>
    #include <stdlib.h>
    static pthread_barrier_t barrier;
    __attribute__((noinline)) void f(long n) {PD_1 free(malloc(8)); }
    static void *work(void *n) {PD_2 f(0); pthread_barrier_wait(&barrier); for (;;) f(1); return n; }
    int main(void) {
        pthread_t thread;
        pthread_barrier_init(&barrier, 0, 201);
        for (int i = 0; i < 200; i++) pthread_create(&thread, 0, work, 0);
        pthread_barrier_wait(&barrier);
        return 0;
    }
    """
    program = build(source, probe(1, "pd_signed(&pd_frame_, 0, (pd_signed_t)(n))"), probe(2), flags=("-fno-builtin",))
    [record] = program.run({1: sample(1, reservoir=20), 2: TIME})
    assert record.complete
    assert row(record, 2)["calls"] == row(record, 2)["unfinished"] == 200
    assert edges(record)[2, 1] == pytest.approx(row(record, 1)["calls"], abs=200)  # a thread may end between the two counts
    assert row(record, 2)["alloc_count"] >= 200


def test_a_call_that_its_thread_leaves_while_the_process_closes_it_is_no_call_of_the_root(tmp_path: Path) -> None:
    # The count of unfinished calls cannot be written at first: the thread, which the fault's handler stands for, leaves its call meanwhile.
    source = """
    #include <signal.h>
    #include <sys/mman.h>
    #include "runtime.h"
    static struct pd_thread thread;
    static struct pd_entry root, call;
    static void *totals;
    static void leave(int signal) { (void)signal; thread.top = &root; mprotect(totals, 4096, PROT_READ | PROT_WRITE); }
    int main(void)
    {
        static struct pd_local local = {.mode = PD_COUNT, .active = 1};
        struct sigaction action = {.sa_handler = leave, .sa_flags = (int)SA_RESETHAND};
        const uint64_t resources[PD_RESOURCES] = {0};

        totals = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        local.totals = totals;
        call.parent = &root;
        call.local = &local;
        thread.top = &call;
        sigaction(SIGSEGV, &action, NULL);
        pd_thread_close_calls(&thread, 0, resources);
        return thread.top == &root && local.totals->unfinished == 1 ? 0 : 1;
    }
    """
    (tmp_path / "a.c").write_text(source)
    # As it stands: optimised, the compiler may keep what it has read of the thread.
    sources = sorted(runtime_library.SOURCES.glob("*.c"))
    command = [
        "gcc",
        *compiled.FLAGS,
        "-O0",
        "-DPD_STATIC",
        f"-I{runtime_library.SOURCES}",
        "a.c",
        *sources,
        "-o",
        "program",
        "-pthread",
        "-ldl",
    ]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "program"], check=False).returncode == 0


def test_fork_from_one_of_many_threads(build: Build) -> None:  # noqa: F811
    source = """
    #include <pthread.h>
    #include <sys/wait.h>
    #include <unistd.h>
    __attribute__((noinline)) void f(void) {PD_1 __asm__ volatile(""); }
    static volatile int stop;
    static void *work(void *n) { while (!stop) f(); return n; }
    int main(void) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, 0);
        for (int i = 0; i < 20; i++) {
            pid_t child = fork();
            if (!child) { f(); f(); return 0; }
            int status;
            if (waitpid(child, &status, 0) != child || status) return 1;
        }
        stop = 1;
        for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
        return 0;
    }
    """
    records = build(source, probe(1)).run({1: TIME})
    assert len(records) == 21
    assert all(record.complete for record in records)
    assert sorted(row(record, 1)["calls"] for record in records)[:20] == [2] * 20


def test_fork_while_another_thread_reads_the_clock_leaves_the_child_its_times(build: Build) -> None:  # noqa: F811
    # A thread begins with one reading of the clock for its presence and five for the recording's pair of clocks: it stays in one of these.
    source = """
    #include <pthread.h>
    #include <sys/syscall.h>
    #include <sys/wait.h>
    #include <time.h>
    #include <unistd.h>
    static __thread int reads = 100;
    static volatile int waits, forked;
    int clock_gettime(clockid_t clock, struct timespec *now) {
        if (clock == CLOCK_MONOTONIC && ++reads == 5) { waits = 1; while (!forked) usleep(1000); }
        return (int)syscall(SYS_clock_gettime, clock, now);
    }
    __attribute__((noinline)) void f(void) {PD_1 __asm__ volatile(""); }
    static void *work(void *n) { reads = 0; f(); return n; }
    int main(void) {
        pthread_t thread;
        f();
        pthread_create(&thread, 0, work, 0);
        while (!waits) usleep(1000);
        pid_t child = fork();
        if (!child) { f(); return 0; }
        forked = 1;
        return waitpid(child, 0, 0) != child || pthread_join(thread, 0);
    }
    """
    records = build(source, probe(1), flags=("-D_GNU_SOURCE",)).run({1: TIME})
    assert [record.complete for record in records] == [True, True]
    assert all(row(record, 1)["wall_ns"] >= 0 for record in records)  # NaN where the clock was never read again
