"""Events through the real libpapi, call by call: software-defined ones everywhere, the kernel's and hardware's where they can be had."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import runtimes
from perfdiff.collect.hosts import machine
from perfdiff.collect.hosts.machine import Pmu
from perfdiff.records import plan, recording
from perfdiff.records.plan import Mode, ProbePlan
from perfdiff.records.recording import Recording

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not shutil.which("papi_avail"), reason="needs PAPI: apt-get install libpapi-dev libsde1 papi-tools"),
]

FIRST = 2  # page faults of a thread's first reading, which one of two counters may see
SAMPLED = ProbePlan(Mode.SAMPLE, 1, True, 100_000, 1, 0)  # so many that events are read in all calls
SYSTEM = {"cpu_ns", "page_faults", "switches"}
PROBES = "\n".join(
    f"#define PD_{number} PD_FRAME({number}); int pd_probe_ __attribute__((unused)) ="
    " pd_enter(&pd_frame_) ? (pd_signed(&pd_frame_, 0, (pd_signed_t)(n)), pd_start(&pd_frame_)) : 0;"
    for number in (1, 2)
)
# Counters of the program's own: one that every thread has for itself, one of the process, a level that falls.
COUNTING = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <sde_lib.h>
static __thread long long own;
static long long total, level = 1000;
static long long read_own(void *unused) { (void)unused; return own; }
__attribute__((unused)) static void count(void)
{
    void *handle = papi_sde_init("program");
    papi_sde_register_counter_cb(handle, "OWN", PAPI_SDE_RO | PAPI_SDE_INSTANT, PAPI_SDE_long_long, read_own, 0);
    papi_sde_register_counter(handle, "TOTAL", PAPI_SDE_RO | PAPI_SDE_DELTA, PAPI_SDE_long_long, &total);
    papi_sde_register_counter(handle, "LEVEL", PAPI_SDE_RO | PAPI_SDE_INSTANT, PAPI_SDE_long_long, &level);
}
__attribute__((noinline)) int work(int n) {PD_1
    for (int i = 0; i < n; i++) { own += 3; __atomic_add_fetch(&total, 1, __ATOMIC_RELAXED); }
    level -= n;
    return n;
}
__attribute__((noinline)) char *touch(int n) {PD_2
    char *pages = aligned_alloc(4096, 4096UL * n);
    for (int i = 0; i < n; i++) pages[4096 * i] = 1;
    return pages;
}
"""


@dataclass(frozen=True, slots=True)
class Program:
    """A built program, run with events."""

    path: Path
    library: Path

    def run(self, *events: str) -> list[Recording]:
        folder = self.path.parent / "out"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        plan.write(folder / "plan", {1: SAMPLED, 2: SAMPLED})
        steering = {"PERFDIFF_OUT": str(folder), "PERFDIFF_PLAN": str(folder / "plan"), "PERFDIFF_SEED": "7"}
        steering |= {"PERFDIFF_EVENTS": ",".join(events)} if events else {}
        paths = {"LD_LIBRARY_PATH": str(self.library)}
        ended = subprocess.run([self.path], env=os.environ | steering | paths, capture_output=True, timeout=60, check=False)
        assert (ended.returncode, ended.stderr) == (0, b"")
        return [recording.read(path) for path in sorted(folder.glob("*.pdrec"))]


Build = Callable[..., Program]


@pytest.fixture(scope="module")
def library() -> Path:
    return runtimes.library()


@pytest.fixture
def build(library: Path, tmp_path: Path) -> Build:
    def compiled(main: str, *flags: str) -> Program:
        header, source, path = tmp_path / "probes.h", tmp_path / "program.c", tmp_path / "program"
        header.write_text(f'#pragma GCC system_header\n#include "perfdiff_probe.h"\n{PROBES}\n')
        source.write_text(COUNTING + main + "\n")
        command = ["gcc", "-O2", "-Wall", "-Werror", "-pthread", "-I", library, "-include", header, source, "-o", path]
        subprocess.run([*command, "-L", library, "-lperfdiff", "-lsde", *flags], check=True)
        return Program(path, library)

    return compiled


def inputs(record: Recording, number: int = 1) -> list[int]:
    return [int(value) for value in record.samples[number].cells[:, 0]]


def counted(record: Recording, event: str, number: int = 1) -> list[float]:
    return record.samples[number].counters[event].tolist()


WORK = "int main(void) { count(); for (int n = 0; n < 50; n++) work(10 * n); free(touch(100)); return 0; }"


def test_software_defined_events_are_exact_per_call(build: Build) -> None:
    [record] = build(WORK).run("sde:::program::OWN", "sde:::program::TOTAL")
    ns = inputs(record)
    assert counted(record, "sde:::program::OWN") == [3 * n for n in ns]
    assert counted(record, "sde:::program::TOTAL") == ns
    assert record.totals.counters["sde:::program::TOTAL"].tolist() == [sum(ns), 0]


def test_each_thread_reads_its_own_and_a_new_one_resets_none(build: Build) -> None:
    main = """
    static void *thread(void *data) { for (int i = 0; i < 5; i++) for (int n = 0; n < 400; n++) work(n); return data; }
    int main(void) {
        pthread_t threads[8];
        count();
        for (int i = 0; i < 8; i++) { pthread_create(&threads[i], 0, thread, 0); work(1000); }
        for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
        return 0;
    }
    """
    [record] = build(main).run("sde:::program::OWN", "sde:::program::TOTAL")
    assert counted(record, "sde:::program::OWN") == [3 * n for n in inputs(record)]
    total = np.array(counted(record, "sde:::program::TOTAL"))
    assert (total >= inputs(record)).all()  # what other threads count meanwhile is in it
    assert (total <= 8 * 1000 + 8 * 5 * sum(range(400))).all()


def test_event_that_nobody_registers_and_level_that_falls_are_absent(build: Build) -> None:
    [record] = build(WORK).run("sde:::program::NOBODYS", "sde:::program::LEVEL")
    assert np.isnan(counted(record, "sde:::program::NOBODYS")).all()
    level = dict(zip(inputs(record), counted(record, "sde:::program::LEVEL"), strict=True))
    assert level.pop(0) == 0
    assert np.isnan(list(level.values())).all()


def test_events_of_the_kernel_are_counted_by_thread(build: Build) -> None:
    main = """
    static void *thread(void *data) { free(touch(300)); return data; }
    int main(void) {
        pthread_t other;
        pthread_create(&other, 0, thread, 0); free(touch(100)); pthread_join(other, 0);
        return 0;
    }
    """
    [record] = build(main).run("perf::PAGE-FAULTS")
    if "perf::PAGE-FAULTS" not in record.samples[2].counters:
        pytest.skip("PAPI counts nothing of the kernel's here")
    faults = counted(record, "perf::PAGE-FAULTS", 2)
    assert faults == pytest.approx(counted(record, "page_faults", 2), abs=FIRST)  # what the kernel told of the thread by itself
    assert sorted(round(value / 100) for value in faults) == [1, 3]


def test_unknown_and_impossible_events_are_left_out_and_the_rest_is_counted(build: Build) -> None:
    [record] = build(WORK).run("PAPI_TOT_INZ", "perf::NO-SUCH", "sde:::program::OWN", "", "x" * 200)
    assert set(record.samples[1].counters) == SYSTEM | {"sde:::program::OWN"}
    assert counted(record, "sde:::program::OWN") == [3 * n for n in inputs(record)]


def test_instructions_are_counted_where_there_is_a_pmu(build: Build) -> None:
    [record] = build(WORK).run("PAPI_TOT_INS")
    if machine.pmu() is not Pmu.PRESENT:
        assert set(record.samples[1].counters) == SYSTEM
        return
    slopes = np.diff(counted(record, "PAPI_TOT_INS")[10:]) / 10
    assert 4 <= np.median(slopes) <= 20  # instructions of an iteration
    assert abs(slopes - np.median(slopes)).max() < 1


def test_child_of_a_fork_counts_for_itself(build: Build) -> None:
    main = """
    int main(void) {
        count(); work(10); free(touch(200));
        if (fork() == 0) { for (int n = 20; n < 40; n++) work(n); free(touch(50)); _exit(0); }
        work(15); free(touch(25));
        wait(0);
        return 0;
    }
    """
    records = build(main).run("sde:::program::OWN", "perf::PAGE-FAULTS")
    assert sorted(inputs(record) for record in records) == [[10, 15], list(range(20, 40))]
    for record in records:
        assert counted(record, "sde:::program::OWN") == [3 * n for n in inputs(record)]
        if "perf::PAGE-FAULTS" in record.samples[2].counters:
            assert counted(record, "perf::PAGE-FAULTS", 2) == pytest.approx(counted(record, "page_faults", 2), abs=FIRST)


def test_program_with_papi_of_its_own_is_left_alone(build: Build) -> None:
    main = """
    #include <papi.h>
    int main(void) {
        int set = PAPI_NULL;
        long long value = 0;
        count();
        if (PAPI_library_init(PAPI_VER_CURRENT) != PAPI_VER_CURRENT || PAPI_create_eventset(&set) != PAPI_OK) return 1;
        if (PAPI_add_named_event(set, "sde:::program::TOTAL") != PAPI_OK || PAPI_start(set) != PAPI_OK) return 2;
        work(100);
        return PAPI_stop(set, &value) != PAPI_OK || value != 100;
    }
    """
    [record] = build(main, "-lpapi").run("sde:::program::OWN", "perf::PAGE-FAULTS")
    assert set(record.samples[1].counters) == SYSTEM


def test_probed_malloc_of_the_program_keeps_papi_away(build: Build) -> None:
    main = """
    static _Alignas(16) char room[1 << 24];
    static size_t used;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static __attribute__((noinline)) void *take(unsigned long n) {PD_1 /* deadlocks where it is called by itself */
        pthread_mutex_lock(&lock);
        void *taken = room + (used += (n + 31) & ~15UL);
        work(1);
        pthread_mutex_unlock(&lock);
        return taken;
    }
    void *malloc(size_t n) { return take(n); }
    void *calloc(size_t n, size_t m) { return take(n * m); }
    void *realloc(void *old, size_t n) { return take(n); }
    void free(void *p) {}
    static void *thread(void *data) { return malloc(10) ? data : 0; }
    int main(void) { pthread_t other; pthread_create(&other, 0, thread, 0); pthread_join(other, 0); return 0; }
    """
    [record] = build(main, "-Wl,-E").run("sde:::program::OWN", "perf::PAGE-FAULTS")
    assert set(record.samples[1].counters) == SYSTEM


def test_hundreds_of_threads_leave_the_target_its_descriptors(build: Build) -> None:
    main = """
    #include <sys/resource.h>
    static pthread_barrier_t all, opened;
    static void *thread(void *data) { free(touch(3)); pthread_barrier_wait(&all); pthread_barrier_wait(&opened); return data; }
    int main(void) {
        pthread_t threads[200];
        pthread_barrier_init(&all, 0, 201); pthread_barrier_init(&opened, 0, 201);
        for (int i = 0; i < 200; i++) if (pthread_create(&threads[i], 0, thread, 0)) return 1;
        pthread_barrier_wait(&all);
        for (int i = 0; i < 190; i++) if (dup(0) < 0) return 2;
        pthread_barrier_wait(&opened);
        for (int i = 0; i < 200; i++) pthread_join(threads[i], 0);
        return 0;
    }
    """
    program = build(main)
    program.path.rename(program.path.with_name("real"))
    program.path.write_text(f'#!/bin/sh\nulimit -n 256\nexec "{program.path.with_name("real")}"\n')
    program.path.chmod(0o755)
    [record] = program.run("perf::PAGE-FAULTS")
    if "perf::PAGE-FAULTS" in record.samples[2].counters:
        faults = np.array(counted(record, "perf::PAGE-FAULTS", 2))
        assert 0 < np.isnan(faults).sum() < 200
        present = ~np.isnan(faults)
        assert faults[present] == pytest.approx(np.array(counted(record, "page_faults", 2))[present], abs=FIRST)


def test_signal_handler_within_a_reading_does_not_hang(build: Build) -> None:
    main = """
    #include <signal.h>
    #include <sys/time.h>
    static volatile int handled;
    static void handle(int signal) { (void)signal; work(5); handled++; }
    int main(void) {
        struct itimerval often = {{0, 200}, {0, 200}};
        count();
        signal(SIGALRM, handle);
        setitimer(ITIMER_REAL, &often, 0);
        for (int i = 0; handled < 300 && i < 100000000; i++) work(i % 3);
        setitimer(ITIMER_REAL, &(struct itimerval){0}, 0);
        return handled < 300;
    }
    """
    [record] = build(main).run("sde:::program::OWN", "perf::PAGE-FAULTS")
    assert record.complete


def test_without_events_papi_is_not_loaded(build: Build) -> None:
    main = """
    #include <string.h>
    int main(void) {
        char line[500];
        FILE *maps = fopen("/proc/self/maps", "r");
        work(1);
        while (fgets(line, sizeof(line), maps)) if (strstr(line, "libpapi")) return 1;
        return fclose(maps);
    }
    """
    [record] = build(main).run()
    assert set(record.samples[1].counters) == SYSTEM


def test_statically_linked_program_counts_without_papi(library: Path, tmp_path: Path) -> None:
    header, source, path = tmp_path / "probes.h", tmp_path / "program.c", tmp_path / "program"
    header.write_text(f'#pragma GCC system_header\n#include "perfdiff_probe.h"\n{PROBES}\n')
    source.write_text("int work(int n) {PD_1 return n; }\nint main(void) { return work(0); }\n")
    subprocess.run(["gcc", "-static", "-I", library, "-include", header, source, "-o", path, "-L", library, "-lperfdiff"], check=True)
    [record] = Program(path, library).run("PAPI_TOT_INS", "perf::PAGE-FAULTS")
    assert set(record.samples[1].counters) == SYSTEM


@pytest.mark.parametrize(
    "closing",
    [
        "for (int i = 3; i < 64; i++) close(i);",
        "close_range(3, 64, 0);",
        "closefrom(3);",
        "for (int i = 3; i < 64; i++) dup2(0, i);",
        "for (int i = 3; i < 64; i++) dup3(0, i, 0);",
    ],
)
def test_target_that_closes_all_descriptors_keeps_its_own_files(build: Build, closing: str) -> None:
    main = """
    #include <fcntl.h>
    #include <string.h>
    int main(void) {
        char line[200] = {0};
        int file, ends[2];
        free(touch(5));
        CLOSING
        file = open("/proc/self/comm", O_RDONLY);
        if (file > 8 && file < 64) return 2;
        if (pipe(ends) || write(ends[1], "0123456789012345678901234567890123456789", 40) != 40) return 3;
        for (int i = 0; i < 3; i++) free(touch(5));
        if (read(ends[0], line, 200) != 40 || strncmp(line, "0123456789", 10)) return 4;
        return read(file, line, 200) <= 0;
    }
    """
    [record] = build(main, "-D_GNU_SOURCE", f"-DCLOSING={closing}").run("perf::PAGE-FAULTS")
    if "perf::PAGE-FAULTS" in record.samples[2].counters:
        first, *others = counted(record, "perf::PAGE-FAULTS", 2)
        assert first == counted(record, "page_faults", 2)[0] > 0
        assert np.isnan(others).all()


def test_descriptors_that_are_only_marked_to_be_closed_still_count(build: Build) -> None:
    main = """
    #include <linux/close_range.h>
    int main(void) {
        free(touch(5));
        close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
        for (int i = 0; i < 3; i++) free(touch(5));
        return 0;
    }
    """
    [record] = build(main, "-D_GNU_SOURCE").run("perf::PAGE-FAULTS")
    if "perf::PAGE-FAULTS" in record.samples[2].counters:
        assert counted(record, "perf::PAGE-FAULTS", 2)[1:] == counted(record, "page_faults", 2)[1:]


def test_program_that_is_executed_inherits_no_descriptor(build: Build) -> None:
    main = 'int main(void) { free(touch(5)); execl("/bin/sh", "sh", "-c", "test ! -e /proc/self/fd/3", (char *)0); return 1; }'
    assert build(main).run("perf::PAGE-FAULTS")
