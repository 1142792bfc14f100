"""The software PMU's counts, where theory says exactly what they are."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable

import pytest

import runtimes
from perfdiff.languages.c import runtime_library

pytestmark = pytest.mark.integration

EVENTS = ("blocks", "loads", "stores", "atomics", "divisions", "l1d", "l2", "llc", "hitm", "hitm_false", "remote")
USUAL = "l1d=32768/8,l2=1048576/16,llc=33554432/16,line=64,nodes=1"
LINE = 64
ABSENT = 2**64 - 1
Counts = dict[str, int]
Runner = Callable[..., list[Counts]]

# COUNTED prints what a statement counted in its thread, a line each.
HEADER = """
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
void pd_pmu_read(uint64_t events[11]);
__attribute__((noinline, no_sanitize("thread"))) static void report(const uint64_t *before, const uint64_t *after)
{
    char text[256], *end = text;
    for (int event = 0; event < 11; event++)
        end += sprintf(end, "%lu ", after[event] == UINT64_MAX ? UINT64_MAX : after[event] - before[event]);
    puts(text);
    fflush(stdout);
}
#define COUNTED(...) \\
    do { \\
        uint64_t before_[11], after_[11]; \\
        pd_pmu_read(before_); \\
        __VA_ARGS__; \\
        pd_pmu_read(after_); \\
        report(before_, after_); \\
    } while (0)
__attribute__((noinline)) static void scan(volatile long *from, long bytes, long step)
{
    for (long i = 0; i < bytes / 8; i += step / 8)
        (void)from[i];
}
__attribute__((noinline)) static void fill(volatile long *from, long bytes, long step)
{
    for (long i = 0; i < bytes / 8; i += step / 8)
        from[i] = 1;
}
static long *pages(long bytes)
{
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}
"""


@pytest.fixture(scope="module", params=["calls", "inline"])
def counted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """Return what builds a program with `body` after HEADER, runs it and returns what its COUNTED statements printed."""
    folder = tmp_path_factory.mktemp("counts")
    library = runtimes.library()
    including = ["-include", library / runtime_library.INLINE_HEADER] if request.param == "inline" else []

    def run(body: str, *arguments: object, machine: str = USUAL, prefix: tuple[str, ...] = ()) -> list[Counts]:
        source, program = folder / "program.c", folder / "program"
        source.write_text(HEADER + body)
        linking = ["-L", library, "-lperfdiff_counted", f"-Wl,-rpath,{library}", "-lpthread"]
        subprocess.run(["gcc", f"-specs={library / runtime_library.SPECS}", *including, "-O2", source, "-o", program, *linking], check=True)
        command = [*prefix, program, *map(str, arguments)]
        ended = subprocess.run(command, env=os.environ | {"PERFDIFF_PMU": machine}, capture_output=True, text=True, check=True, timeout=60)
        return [dict(zip(EVENTS, map(int, line.split()), strict=True)) for line in ended.stdout.splitlines()]

    return run


def misses(counts: Counts) -> tuple[int, int, int]:
    return counts["l1d"], counts["l2"], counts["llc"]


def test_first_scan_misses_once_a_line(counted: Runner) -> None:
    (counts,) = counted("int main(void) { long *a = pages(1 << 20); COUNTED(scan(a, 1 << 20, 8)); }")
    assert counts["loads"] == 2**20 // 8
    assert counts["stores"] == 0
    assert misses(counts) == (2**20 // LINE,) * 3


@pytest.mark.parametrize(
    ("kib", "missing"), [(16, (0, 0, 0)), (256, (1, 0, 0)), (8192, (1, 1, 0)), (65536, (1, 1, 1))], ids=["l1d", "l2", "llc", "memory"]
)
def test_second_scan_misses_where_the_data_does_not_fit(counted: Runner, kib: int, missing: tuple[int, int, int]) -> None:
    body = "int main(int n, char **a) { long size = atol(a[1]) << 10, *p = pages(size); scan(p, size, 64); COUNTED(scan(p, size, 64)); }"
    (counts,) = counted(body, kib)
    lines = kib * 1024 // LINE
    assert misses(counts) == tuple(lines * level for level in missing)


def test_loop_counts_its_blocks_loads_and_stores(counted: Runner) -> None:
    body = """
    static volatile long a[100], b[100];
    __attribute__((noinline)) static void copy(long n) { for (long i = 0; i < n; i++) { a[i] = b[i]; __asm__ volatile(""); } }
    int main(void) { COUNTED(copy(10)); COUNTED(copy(90)); }
    """
    short, long = counted(body)
    assert [long[event] - short[event] for event in ("blocks", "loads", "stores")] == [80, 80, 80]
    assert (short["loads"], short["stores"]) == (10, 10)


def test_access_across_lines_is_one_load_of_two_lines(counted: Runner) -> None:
    body = """
    struct packed { char before[60]; volatile long across; } __attribute__((packed));
    int main(void) { struct packed *p = (void *)pages(4096); COUNTED((void)p->across); COUNTED((void)p->across); }
    """
    first, second = counted(body)
    assert (first["loads"], *misses(first)) == (1, 2, 2, 2)
    assert (second["loads"], *misses(second)) == (1, 0, 0, 0)


def test_wild_pointer_to_misaligned_word_touches_both_lines(counted: Runner) -> None:
    body = "int main(void) { char *p = (char *)pages(4096); COUNTED((void)*(volatile long *)(p + 60)); }"
    (counts,) = counted(body)
    assert (counts["loads"], *misses(counts)) == (1, 2, 2, 2)


# Two threads take turns, by semaphores, which are not counted: each adds to its own of two places.
TURNS = """
#define ROUNDS 500
static volatile long places[64] __attribute__((aligned(256)));
static sem_t mine[2];
static int distance;
static void *add(void *argument)
{
    long self = (long)argument;
    COUNTED(
    for (int round = 0; round < ROUNDS; round++) {
        sem_wait(&mine[self]);
        places[self * distance]++;
        sem_post(&mine[1 - self]);
    }
    sem_wait(&mine[self]); sem_post(&mine[1 - self]));
    return NULL;
}
int main(int count, char **arguments)
{
    pthread_t thread;
    distance = atoi(arguments[1]);
    sem_init(&mine[0], 0, 1);
    sem_init(&mine[1], 0, 0);
    pthread_create(&thread, NULL, add, (void *)1);
    add((void *)0);
    pthread_join(thread, NULL);
}
"""


@pytest.mark.parametrize(("distance", "shared", "false"), [(0, 1, 0), (1, 1, 1), (8, 0, 0)], ids=["true", "false", "padded"])
def test_sharing_is_told_by_the_bytes(counted: Runner, distance: int, shared: int, false: int) -> None:
    both = counted(TURNS, distance)
    assert len(both) == 2
    assert sum(counts["hitm"] for counts in both) == pytest.approx(shared * (2 * 500 - 1), abs=3)
    assert sum(counts["hitm_false"] for counts in both) == pytest.approx(false * (2 * 500 - 1), abs=3)


@pytest.mark.parametrize("access", ["scan", "fill"])
def test_consumer_hits_each_line_that_a_running_producer_wrote(counted: Runner, access: str) -> None:
    body = f"""
    static void *consume(void *data) {{ COUNTED({access}(data, 1000 * 64, 64)); return NULL; }}
    int main(void) {{
        pthread_t thread;
        long *data = pages(1000 * 64);
        fill(data, 1000 * 64, 64);
        pthread_create(&thread, NULL, consume, data);
        pthread_join(thread, NULL);
    }}
    """
    (counts,) = counted(body)
    assert counts["hitm"] == 1000
    assert counts["hitm_false"] == 0
    assert misses(counts) == (1000, 1000, 0)


def test_thread_that_ends_writes_its_lines_back(counted: Runner) -> None:
    body = """
    static void *produce(void *data) { fill(data, 1000 * 64, 64); return NULL; }
    int main(void) {
        pthread_t thread;
        long *data = pages(1000 * 64);
        pthread_create(&thread, NULL, produce, data);
        pthread_join(thread, NULL);
        COUNTED(scan(data, 1000 * 64, 64));
    }
    """
    (counts,) = counted(body)
    assert counts["hitm"] == 0
    assert misses(counts) == (1000, 1000, 0)


@pytest.mark.parametrize(("nodes", "remote"), [(1, 0), (2, 1)])
def test_memory_touched_by_the_wrong_thread_is_remote(counted: Runner, nodes: int, remote: int) -> None:
    body = """
    #define SIZE (1 << 20)
    static void *work(void *data) {
        long *wrong = data, *right = wrong + SIZE / 8;
        fill(right, SIZE, 64);
        COUNTED(scan(wrong, SIZE, 64));
        COUNTED(scan(right, SIZE, 64));
        return NULL;
    }
    int main(void) {
        pthread_t thread;
        long *data = pages(2 * SIZE);
        fill(data, SIZE, 64);
        pthread_create(&thread, NULL, work, data);
        pthread_join(thread, NULL);
    }
    """
    wrong, right = counted(body, machine=f"l1d=4096/4,l2=16384/8,llc=65536/16,line=64,nodes={nodes}")
    lines = 2**20 // LINE
    assert (wrong["llc"], wrong["remote"]) == (lines, remote * lines)
    assert (right["llc"], right["remote"]) == (lines, 0)


WORK = """
struct node { struct node *next; long values[3]; };
int main(void)
{
    struct node *head = NULL;
    COUNTED(
    for (int i = 0; i < 30000; i++) {
        struct node *node = malloc(sizeof(*node) + rand() % 64);
        *node = (struct node){head, {i}};
        head = node;
    }
    for (int round = 0; round < 3; round++)
        for (struct node *node = head; node; node = node->next)
            node->values[0] += node->values[1]);
}
"""


def test_counts_are_identical_in_all_runs_of_one_layout(counted: Runner) -> None:
    fixed = ("setarch", "-R")
    if not shutil.which("setarch") or subprocess.run([*fixed, "true"], capture_output=True, check=False).returncode:
        pytest.skip("address randomisation cannot be switched off here")
    runs = [counted(WORK, prefix=fixed) for _ in range(5)]
    assert runs[0][0]["l2"] > 0
    assert runs == [runs[0]] * 5


def test_randomised_addresses_hardly_move_counts(counted: Runner) -> None:
    runs = [counted(WORK)[0] for _ in range(5)]
    for event in ("blocks", "loads", "stores"):
        assert len({run[event] for run in runs}) == 1
    for event in ("l1d", "l2", "llc"):
        values = [run[event] for run in runs]
        assert max(values) - min(values) <= 8  # where the stack begins within its line, and its page


def test_child_of_a_fork_starts_with_empty_caches(counted: Runner) -> None:
    body = """
    int main(void) {
        long *data = pages(8192);
        fill(data, 8192, 64);
        if (!fork()) {
            COUNTED(scan(data, 8192, 64));
            _exit(0);
        }
        wait(NULL);
        COUNTED(scan(data, 8192, 64));
    }
    """
    child, parent = counted(body)
    assert misses(child) == (8192 // LINE,) * 3
    assert misses(parent) == (0, 0, 0)


@pytest.mark.parametrize("machine", ["nonsense", "l1d=1000/0", "line=128", "l1d=2097152/8", "l1d=32768/8;l2=1048576/16"])
def test_caches_of_no_machine_are_absent_and_the_rest_is_counted(counted: Runner, machine: str) -> None:
    (counts,) = counted("int main(void) { long *a = pages(4096); COUNTED(scan(a, 4096, 8)); }", machine=machine)
    assert counts["loads"] == 512
    assert all(counts[event] == ABSENT for event in ("l1d", "l2", "llc", "hitm", "hitm_false", "remote"))


def test_sets_that_are_no_power_of_two_keep_the_capacity(counted: Runner) -> None:
    """48 KiB with 12 ways have 64 sets, 96 KiB with 12 ways 128; 40 KiB with 4 become 128 sets of 5."""
    body = "int main(void) { long *a = pages(40960); scan(a, 40960, 64); COUNTED(scan(a, 40960, 64)); }"
    for ways in ("49152/12", "98304/12", "40960/4"):
        (counts,) = counted(body, machine=f"l1d={ways}")
        assert counts["l1d"] == 0


def test_accesses_of_signal_handlers_are_counted(counted: Runner) -> None:
    body = """
    static volatile long sink[8 * 16], handled;
    static const struct itimerval often = {{0, 200}, {0, 200}}, never;
    static void handler(int signal) {
        (void)signal;
        for (int i = 0; i < 16; i++) sink[8 * i] = i;
        handled++;
    }
    int main(void) {
        long *data = pages(1 << 22), rounds = 0;
        signal(SIGALRM, handler);
        COUNTED(
        setitimer(ITIMER_REAL, &often, NULL);
        for (; handled < 200; rounds++) fill(data, 1 << 22, 4096);
        setitimer(ITIMER_REAL, &never, NULL));
        printf("0 0 %ld 0 0 0 0 0 0 0 0\\n", rounds * 1024 + 17 * handled);
    }
    """
    counts, expected = counted(body)
    assert counts["stores"] == expected["stores"]


def test_hundreds_of_threads_each_have_a_core(counted: Runner) -> None:
    body = """
    #define THREADS 300
    static pthread_barrier_t all;
    static void *work(void *argument) {
        long *own = argument;
        pthread_barrier_wait(&all);
        COUNTED(scan(own, 65536, 64); scan(own, 16384, 64); scan(own, 16384, 64));
        pthread_barrier_wait(&all);
        return NULL;
    }
    int main(void) {
        static pthread_t threads[THREADS];
        long *data = pages(THREADS * 65536L);
        pthread_barrier_init(&all, NULL, THREADS);
        for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, data + i * 8192);
        for (long i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    }
    """
    threads = counted(body)
    assert len(threads) == 300
    assert {misses(counts) for counts in threads} == {(1024 + 256, 1024, 1024)}


def test_a_gibibyte_of_touched_memory_is_counted_in_little_memory(counted: Runner) -> None:
    body = """
    #include <string.h>
    int main(void) {
        char line[256];
        long *data = pages(1L << 30), most = 0;
        FILE *status;
        COUNTED(scan(data, 1L << 30, 64));
        status = fopen("/proc/self/status", "r"); /* resource usage would include the process that this one was before exec */
        while (status && fgets(line, sizeof(line), status))
            if (!strncmp(line, "VmHWM:", 6)) most = atol(line + 6);
        printf("%ld 0 0 0 0 0 0 0 0 0 0\\n", most);
    }
    """
    counts, usage = counted(body)
    assert misses(counts) == (2**30 // LINE,) * 3
    assert 0 < usage["blocks"] < 64 * 1024  # KiB


def test_accesses_before_main_and_while_a_thread_ends_are_counted(counted: Runner) -> None:
    body = """
    static pthread_key_t key;
    static long *data;
    static void end(void *own) { COUNTED(scan(own, 4096, 64)); }
    static void *work(void *unused) { pthread_setspecific(key, data); return unused; }
    __attribute__((constructor(101))) static void early(void) {
        long *own = data = pages(4096);
        COUNTED(scan(own, 4096, 64));
    }
    int main(void) {
        pthread_t thread;
        pthread_key_create(&key, end);
        pthread_create(&thread, NULL, work, NULL);
        pthread_join(thread, NULL);
    }
    """
    early, ending = counted(body)
    assert (early["loads"], *misses(early)) == (64, 64, 64, 64)
    assert (ending["loads"], *misses(ending)) == (64, 64, 64, 0)
