"""Programs of all kinds over the software PMU: they do what they do otherwise, and what they did is counted."""

from __future__ import annotations

import contextlib
import re
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runtimes
from counted_programs import Project, counted, project
from perfdiff.languages.c import naming
from perfdiff.records import hot_lines, recording
from perfdiff.records.recording_file import DamageError
from probed_trees import compiled, probed, ran
from test_c_probes import CASES, Case, copied

Build = Callable[..., Project]


@pytest.fixture(scope="module")
def runtime() -> Path:
    return runtimes.library()


@pytest.fixture
def build(runtime: Path, tmp_path: Path) -> Build:
    def built(command: str, **files: str) -> Project:
        names = {name.replace("__", "."): text for name, text in files.items()}
        return project(tmp_path, runtime, names, command)

    return built


def numbers(text: str, word: str) -> list[int]:
    """Return the numbers behind a word in what a program said."""
    found = re.search(rf"^{word}((?: \d+)+)$", text, re.MULTILINE)
    assert found, text
    return [int(number) for number in found[1].split()]


@pytest.mark.integration
@pytest.mark.parametrize("case", CASES, ids=str)
def test_probed_program_does_what_it_does_without_probes(case: Case, runtime: Path, tmp_path: Path) -> None:
    plain, main = copied(case, tmp_path / "plain"), copied(case, tmp_path / "counted")
    compiler, clang = ("g++", "clang++") if main.suffix == ".cpp" else ("gcc", "clang")
    expected = ran(compiled(compiler, plain, *case.flags))
    tree = probed(main, case.flags)
    for name, level in ((compiler, "-O2"), (clang, "-O1")):
        if name == clang and "-fcoroutines" in case.flags:
            continue
        place = tmp_path / name
        place.mkdir()
        built = counted(place, runtime, main.parent, f"{name} {level} {' '.join(case.flags)} {main.name} -o program")
        assert not built.uncounted
        assert not built.log.dropped
        outcome = tree.run(built.tree / "program", place / "out")
        assert (outcome.status, outcome.output) == (expected.status, expected.output)
        assert len(outcome.met) > len(tree.probes) / 2
        assert all(np.nansum(record.totals.counters["blocks"]) > 0 for record in outcome.recordings if len(record.totals))


PLUGIN = """
#include <stdexcept>
#include <string>
thread_local int calls;
extern "C" int plug(int n) { calls++; if (n % 3 == 0) throw std::runtime_error("three " + std::to_string(n)); return calls * 100 + n; }
"""
LIBRARY = """
#include <atomic>
#include <string>
std::atomic<long> total;
std::atomic_flag once;
void add(const std::string &text) { total.fetch_add((long)text.size(), std::memory_order_relaxed); once.test_and_set(); }
"""
MAIN = """
#include <atomic>
#include <cstdio>
#include <dlfcn.h>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
extern std::atomic<long> total;
void add(const std::string &text);
struct Shape { virtual ~Shape() {} virtual int sides() const = 0; };
struct Square : Shape { int sides() const override { return 4; } };
static int work(int thread) {
    auto plug = (int (*)(int))dlsym(RTLD_DEFAULT, "plug");
    int sum = 0;
    for (int i = 0; i < 100; i++) {
        try { sum += plug(i); } catch (const std::exception &caught) { sum -= (int)std::string(caught.what()).size(); }
        add(std::string((size_t)(i + thread), 'x'));
    }
    return sum;
}
int main() {PD_1
    if (!dlopen("./plugin.so", RTLD_NOW | RTLD_GLOBAL)) { puts(dlerror()); return 1; }
    std::vector<std::thread> threads;
    std::vector<int> sums(4);
    for (int i = 0; i < 4; i++) threads.emplace_back([i, &sums] { sums[(size_t)i] = work(i); });
    for (auto &thread : threads) thread.join();
    std::map<std::string, int> words;
    for (int i = 0; i < 500; i++) words["key" + std::to_string(i * 7919 % 500)] += i;
    Shape *shape = new Square;
    unsigned long events[EVENTS] = {};
    COUNTS(events);
    for (int sum : sums) printf("%d ", sum);
    printf("%ld %zu %s %d\\n", total.load(), words.size(), words.begin()->first.c_str(), shape->sides());
    fprintf(stderr, "main %lu %lu %lu\\n", events[BLOCKS], events[LOADS], events[STORES]);
    delete shape;
    return 0;
}
"""


@pytest.mark.integration
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_exceptions_atomics_thread_locals_and_libraries_work(compiler: str, build: Build) -> None:
    built = build(
        f"{compiler} $F -O2 -fPIC -shared plugin.cc -o plugin.so && {compiler} $F -O2 -fPIC -c library.cc && "
        f"{compiler} -shared library.o -o liblibrary.so && "
        f"{compiler} $F -O2 -pthread main.cc -o program -L. -llibrary -Wl,-rpath,'$ORIGIN' -ldl",
        plugin__cc=PLUGIN,
        library__cc=LIBRARY,
        main__cc=MAIN,
    )
    assert not built.uncounted
    outcome = built.same()
    blocks, loads, stores = numbers(outcome.errors, "main")
    assert min(blocks, loads, stores) > 1000
    (record,) = [outcome.recording]
    assert record.totals.calls.tolist() == [1]


@pytest.mark.integration
def test_plug_in_of_a_foreign_program_is_counted_where_there_is_room_for_its_thread_local_data(build: Build) -> None:
    host = """
#include <dlfcn.h>
#include <stdio.h>
int main(void) {
    void *plugin = dlopen("./plugin.so", RTLD_NOW);
    long (*plug)(int) = plugin ? (long (*)(int))dlsym(plugin, "plug") : 0;
    if (!plug) { puts(dlerror()); return 1; }
    printf("%ld\\n", plug(1000));
    return 0;
}
"""
    plugin = """
#include <stdlib.h>
#include <string.h>
static long sums[100];
long plug(int n) {PD_1 for (int i = 0; i < n; i++) sums[i % 100] += i; char *text = strdup("hello"); n = (int)strlen(text); free(text);
    return sums[3] + n; }
"""
    real = shutil.which("gcc")
    command = f"gcc $F -O1 -fPIC -shared plugin.c -o plugin.so && {real} host.c -o program -ldl"
    outcome = build(command, plugin__c=plugin, host__c=host).same(GLIBC_TUNABLES="glibc.rtld.optional_static_tls=16384")
    assert outcome.status == 0
    assert outcome.recording.totals.counters["stores"].tolist()[0] >= 1000


@pytest.mark.integration
def test_link_time_optimisation_counts(build: Build) -> None:
    source = """
#include <stdio.h>
int square(int n);
int main(void) {PD_1
    unsigned long events[EVENTS] = {0};
    int sum = 0;
    for (int i = 0; i < 1000; i++) sum += square(i);
    COUNTS(events);
    printf("%d\\n", sum);
    fprintf(stderr, "main %lu\\n", events[BLOCKS]);
    return 0;
}
"""
    other = "int square(int n) { volatile int m = n; return m % 2 ? m * m : -m; }\n"
    built = build(
        "gcc $F -O2 -flto -c a.c && gcc $F -O2 -flto -c b.c && gcc -O2 -flto a.o b.o -o program",
        a__c=source,
        b__c=other,
    )
    assert numbers(built.same().errors, "main")[0] > 1000


@pytest.mark.integration
def test_program_that_replaces_malloc_works(build: Build) -> None:
    source = """
#include <stdio.h>
#include <string.h>
static char pool[1 << 20];
static volatile size_t used;
void *malloc(size_t size) { void *taken = pool + used; used += (size + 15) & ~(size_t)15; return used < sizeof pool ? taken : 0; }
void free(void *memory) { (void)memory; }
void *calloc(size_t n, size_t size) { return malloc(n * size); }
void *realloc(void *memory, size_t size) { void *moved = malloc(size); if (memory) memcpy(moved, memory, size); return moved; }
int main(void) {PD_1
    char *text = strdup("replaced");
    size_t before = used;
    text = realloc(text, 100);
    printf("%s %d\\n", text, used > before);
    return 0;
}
"""
    assert build("gcc $F -O1 a.c -o program", a__c=source).same().output == "replaced 1\n"


@pytest.mark.integration
def test_handlers_that_interrupt_counting_lose_nothing(build: Build) -> None:
    source = """
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
static volatile long handled, total, lines[4096];
static sigjmp_buf back;
static void tick(int signal) { (void)signal; for (int i = 0; i < 64; i++) lines[i * 8]++; handled++; }
static void fault(int signal) { (void)signal; siglongjmp(back, 1); }
int main(void) {PD_1
    unsigned long before[EVENTS] = {0}, after[EVENTS] = {0};
    struct itimerval often = {{0, 200}, {0, 200}};
    signal(SIGALRM, tick);
    signal(SIGSEGV, fault);
    setitimer(ITIMER_REAL, &often, NULL);
    COUNTS(before);
    while (handled < 50)
        for (int i = 0; i < 4096; i++) total += lines[i] != -1;
    COUNTS(after);
    if (!sigsetjmp(back, 1)) *(volatile int *)8 = 1;
    for (int i = 1; i < 64; i++) if (lines[i * 8] != lines[0]) return 3;
    printf("%d\\n", total % 4096 == 0);
    fprintf(stderr, "main %lu %ld %ld\\n", after[STORES] - before[STORES], total, handled * 65);
    return 0;
}
"""
    outcome = build("gcc $F -O1 a.c -o program", a__c=source).same()
    stores, total, handled = numbers(outcome.errors, "main")
    assert total + handled - 65 * 3 <= stores <= total + handled  # a handler may come before, between or behind the readings


@pytest.mark.integration
@pytest.mark.parametrize("handled", ["_exit(3);", "child = fork();", "child = fork(); if (!child) _exit(3);"])
def test_a_handler_that_interrupts_the_table_of_allocations_ends_or_forks_the_process(handled: str, build: Build) -> None:
    # The table grows, and gives back its former memory by the program's own function.
    source = """
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile long contended, is_armed;
static volatile pid_t child = -1;
static void *kept[1 << 17];
static void handle(int signal) { (void)signal; HANDLED }
int munmap(void *memory, size_t size) {
    if (is_armed) { is_armed = 0; raise(SIGALRM); }
    return (int)syscall(SYS_munmap, memory, size); }
static void *contend(void *none) { contended++; return none; }
int main(void) {PD_1
    pthread_t thread;
    int count = 0, status = 3 << 8;
    signal(SIGALRM, handle);
    contended++;
    pthread_create(&thread, 0, contend, 0);
    pthread_join(thread, 0);
    contended++;
    is_armed = 1;
    while (is_armed && count < 1 << 17) kept[count++] = malloc(16);
    while (count) free(kept[--count]);
    if (is_armed) return 1;
    if (child > 0) waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}
""".replace("HANDLED", handled)
    outcome = build("gcc $F -O1 -fno-builtin -pthread a.c -o program", a__c=source).counted("timeout 30 ./program")
    assert outcome.status == 3
    assert outcome.recording.complete


@pytest.mark.integration
def test_fork_without_exec_counts_in_both_processes(build: Build) -> None:
    source = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int stop;
static long work(int n) {PD_1 long *all = malloc(sizeof(long) * 1000), sum = 0; for (int i = 0; i < 1000; i++) all[i] = i * n;
    for (int i = 0; i < 1000; i++) sum += all[i]; free(all); return sum; }
static void *others(void *none) { while (!stop) work(1); return none; }
int main(void) {
    pthread_t thread;
    int status, failed = 0;
    pthread_create(&thread, 0, others, 0);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (!child) { work(3); _exit(work(2) == 999000 ? 7 : 1); }
        waitpid(child, &status, 0);
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != 7;
    }
    stop = 1;
    pthread_join(thread, 0);
    printf("%d %ld\\n", failed, work(1));
    return 0;
}
"""
    outcome = build("gcc $F -O1 -pthread a.c -o program", a__c=source).same()
    assert outcome.output == "0 499500\n"
    assert len(outcome.recordings) == 21


@pytest.mark.integration
def test_a_child_that_no_handler_knows_of_counts_for_itself_alone(build: Build) -> None:
    source = """
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static long text(int n) {PD_1 char said[30]; snprintf(said, sizeof(said), "%d", n); return atol(said); }
static int run(void *data) { long n = (long)data; return atol("0") == 0 && text(1) + text(2) == n ? 7 : 1; }
int main(void) {PD_1
    int failed = text(0) != 0 || atol("0") != 0;
    for (int i = 0; i < 4; i++) {
        int status = 0;
        long child = i % 2 ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : clone(run, (char *)malloc(65536) + 65536, SIGCHLD, (void *)3);
        if (!child) return run((void *)3);
        waitpid((int)child, &status, 0);
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != 7;
    }
    printf("%d %ld\\n", failed, text(4));
    return 0;
}
"""
    outcome = build("gcc $F -O1 -fno-builtin a.c -o program", a__c=source).same()
    assert outcome.output == "0 4\n"
    records = [recording.read(path) for path in outcome.recordings]
    calls = sorted((float(record.totals.calls.sum()), record.library.get((1, "snprintf"))) for record in records)
    assert calls == [(2, 2)] * 4 + [(3, 2)]
    assert all(record.complete for record in records)


@pytest.mark.integration
def test_threads_of_a_child_that_no_handler_knows_of_count_for_it(build: Build) -> None:
    source = """
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void *work(void *data) {PD_1 long *all = malloc(8000); for (int i = 0; i < 1000; i++) all[i] = (long)data; long x = all[9];
    free(all); return (void *)x; }
int main(void) {
    int failed = work((void *)1) != (void *)1;
    for (int i = 0; i < 30; i++) {
        int status = 0;
        long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (!child) {
            pthread_t threads[4];
            void *sum;
            for (long j = 0; j < 4; j++) pthread_create(&threads[j], 0, work, (void *)j);
            for (long j = 0; j < 4; j++) { pthread_join(threads[j], &sum); if (sum != (void *)j) _exit(1); }
            _exit(7);
        }
        waitpid((int)child, &status, 0);
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != 7;
    }
    printf("%d\\n", failed);
    return 0;
}
"""
    outcome = build("gcc $F -O1 -pthread a.c -o program", a__c=source).same()
    assert outcome.output == "0\n"
    records = [recording.read(path) for path in outcome.recordings]
    assert sorted(float(record.totals.calls.sum()) for record in records) == [1] + [4] * 30


@pytest.mark.integration
def test_two_hundred_threads_are_counted_apart(build: Build) -> None:
    source = """
#include <pthread.h>
#include <stdio.h>
static pthread_barrier_t all;
static long sums[200], stores[200];
static volatile long cells[200];
static void *run(void *data) {PD_1
    long number = (long)data, *mine = &sums[number];
    unsigned long before[EVENTS] = {0}, after[EVENTS] = {0};
    pthread_barrier_wait(&all);
    COUNTS(before);
    for (int i = 0; i < 100 + number; i++) cells[number] = i;
    COUNTS(after);
    *mine = cells[number];
    stores[number] = (long)(after[STORES] - before[STORES]);
    return 0;
}
int main(void) {
    pthread_t threads[200];
    long wrong = 0, sum = 0;
    pthread_barrier_init(&all, 0, 200);
    for (long i = 0; i < 200; i++) if (pthread_create(&threads[i], 0, run, (void *)i)) return 1;
    for (int i = 0; i < 200; i++) pthread_join(threads[i], 0);
    for (int i = 0; i < 200; i++) { sum += sums[i]; wrong += stores[i] != 100 + i; }
    printf("%ld\\n", sum);
    fprintf(stderr, "wrong %ld\\n", wrong);
    return 0;
}
"""
    outcome = build("gcc $F -O1 -pthread a.c -o program", a__c=source).same()
    assert numbers(outcome.errors, "wrong") == [0]
    assert len(outcome.recording.samples[1]) == 200


@pytest.mark.integration
def test_a_gibibyte_of_memory_is_counted_line_by_line(build: Build) -> None:
    source = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {PD_1
    size_t size = (size_t)1 << 30;
    unsigned long before[EVENTS] = {0}, after[EVENTS] = {0};
    char *memory = malloc(size);
    if (!memory) return 1;
    COUNTS(before);
    memset(memory, 1, size);
    COUNTS(after);
    printf("%d\\n", memory[size - 1]);
    fprintf(stderr, "main %lu %lu\\n", after[STORES] - before[STORES], after[LLC] - before[LLC]);
    return 0;
}
"""
    stores, misses = numbers(build("gcc $F -O1 a.c -o program", a__c=source).same().errors, "main")
    assert stores == 1
    assert 2**24 <= misses <= 2**24 + 1


@pytest.mark.integration
def test_objects_with_sanitizers_of_their_own_are_left_plain_and_named(build: Build) -> None:
    main = '#include <stdio.h>\nint f(int);\nint g(int);\nint main(void) {PD_1 printf("%d\\n", f(20) + g(3)); return 0; }\n'
    f = "#include <stdlib.h>\n#include <string.h>\n"
    f += "int f(int n) { char *a = malloc(n); memset(a, 1, n); n = a[n - 1]; free(a); return n; }\n"
    g = "int g(int n) { return n + 1; }\n"
    built = build(
        "gcc $F -O1 -fsanitize=address -c f.c && gcc $F -O1 -fsanitize=undefined -c g.c && gcc $F -O1 -c main.c && "
        "gcc -fsanitize=address,undefined main.o f.o g.o -o program",
        main__c=main,
        f__c=f,
        g__c=g,
    )
    assert built.uncounted == {"f.c": "its own -fsanitize=address stands in the way"}
    assert built.same().output == "5\n"


@pytest.mark.integration
def test_static_program_works_and_is_named(build: Build) -> None:
    source = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static volatile int sum;
int main(void) {PD_1
    unsigned long before[EVENTS] = {0}, after[EVENTS] = {0};
    COUNTS(before);
    for (int i = 0; i < 1000; i++) sum += i;
    COUNTS(after);
    char *text = strdup("static");
    printf("%d %s %zu\\n", sum, text, strlen(text));
    fprintf(stderr, "main %lu\\n", after[STORES] - before[STORES]);
    free(text);
    return 0;
}
"""
    built = build("gcc $F -O1 -static a.c -o program", a__c=source)
    assert built.uncounted == {"program": "it is linked statically: what the C library does with memory is not counted"}
    outcome = built.same()
    assert numbers(outcome.errors, "main") == [1000]
    assert outcome.recording.totals.calls.tolist() == [1]


@pytest.mark.integration
def test_what_cannot_be_instrumented_is_left_plain_and_named(build: Build) -> None:
    naked = '__attribute__((naked)) int low(int n) { __asm__("leal 1(%rdi), %eax\\n ret"); }\n'
    chosen = "static int one(void) { return 1; }\nstatic int (*choose(void))(void) { return one; }\n"
    chosen += 'int picked(void) __attribute__((ifunc("choose")));\n'
    assembler = ".globl two\ntwo:\n movl $2, %eax\n ret\n.section .note.GNU-stack\n"
    main = "// multifunction, with a naked pointer\nint low(int);\nint picked(void);\nint two(void);\n"
    main += "int main(void) {PD_1 return low(10) + picked() + two(); }\n"
    built = build(
        "gcc $F -O1 -c naked.c && gcc $F -O1 -c chosen.c && gcc -c two.s && gcc $F -O1 main.c naked.o chosen.o two.o -o program",
        naked__c=naked,
        chosen__c=chosen,
        two__s=assembler,
        main__c=main,
    )
    assert set(built.uncounted) == {"naked.c", "chosen.c", "two.s"}
    assert built.same().status == 14


STRINGS = r"""
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static uint64_t hash = 14695981039346656037u;
static void take(const void *memory, size_t size) { const unsigned char *b = memory; while (size--) hash = (hash ^ *b++) * 1099511628211u; }
static void number(long n) { take(&n, sizeof n); }
static int sign(int n) { return (n > 0) - (n < 0); }
static unsigned seed = 1;
static unsigned below(unsigned n) { seed = seed * 1103515245 + 12345; return (seed >> 16) % n; }
static void *(*volatile move)(void *, const void *, size_t) = memmove;
static char *(*volatile concatenate)(char *, const char *) = strcat;
static char *(*volatile end_copy)(char *, const char *) = stpcpy;
static char *(*volatile copy_some)(char *, const char *, size_t) = strncpy;
static char *(*volatile add_some)(char *, const char *, size_t) = strncat;
int main(void) {PD_1
    for (int round = 0; round < 2000; round++) {
        char a[200], b[200], c[600];
        unsigned n = below(120), m = below(120), k = below(120);
        for (unsigned i = 0; i < n; i++) a[i] = (char)('a' + below(3));
        for (unsigned i = 0; i < m; i++) b[i] = i < n && below(9) ? a[i] : (char)('a' + below(3));
        a[n] = b[m] = 0;
        memset(c, 'z', sizeof c);
        take(c, sizeof c);
        number((char *)memcpy(c + 7, a, n + 1) - c);
        move(c + k, c + 3, n);
        take(c, sizeof c);
        number((char *)mempcpy(c, b, m) - c);
        number(sign(memcmp(a, b, n < m ? n : m)));
        number(sign(strcmp(a, b)));
        number(sign(strncmp(a, b, k)));
        number((char *)memchr(a, 'b', n) ? (char *)memchr(a, 'b', n) - a : -1);
        number((char *)memrchr(a, 'b', n) ? (char *)memrchr(a, 'b', n) - a : -1);
        number(strchr(a, 'c') ? strchr(a, 'c') - a : -1);
        number(strchr(a, 0) - a);
        number(strrchr(a, 'c') ? strrchr(a, 'c') - a : -1);
        b[below(5)] = 0;
        number(strstr(a, b) ? strstr(a, b) - a : -1);
        number((long)strnlen(a, k) + (long)strlen(b));
        strcpy(c, a);
        concatenate(c, b);
        number(end_copy(c + 300, a) - c);
        copy_some(c + 350, a, k);
        add_some(c, a, k / 2);
        take(c, sizeof c);
        char *d = strdup(a), *e = strndup(a, k);
        take(d, strlen(d) + 1);
        take(e, strlen(e) + 1);
        free(d);
        free(e);
    }
    printf("%llx\n", (unsigned long long)hash);
    return 0;
}
"""


@pytest.mark.integration
@pytest.mark.parametrize("command", ["gcc $F -O0", "gcc $F -O2 -D_FORTIFY_SOURCE=2", "gcc $F -O2 -fno-builtin", "clang $F -O2"])
def test_memory_and_string_functions_do_their_work(command: str, build: Build) -> None:
    build(f"{command} a.c -o program", a__c=STRINGS).same()


@pytest.mark.integration
def test_memory_and_string_functions_count_the_lines_that_they_touch(build: Build) -> None:
    source = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char from[8192] __attribute__((aligned(64))), to[8192] __attribute__((aligned(64)));
static void evict(void) { static char large[1 << 21]; for (size_t i = 0; i < sizeof large; i += 64) ((volatile char *)large)[i]; }
#define SHOW(name, call) do { unsigned long before[EVENTS] = {0}, after[EVENTS] = {0}; \
    evict(); COUNTS(before); COUNTS(before); call; COUNTS(after); \
    printf(name " %lu %lu %lu\n", after[LOADS] - before[LOADS], after[STORES] - before[STORES], after[L1D] - before[L1D]); } while (0)
static volatile size_t size = 1000;
static int (*volatile compare)(const void *, const void *, size_t) = memcmp;
static size_t (*volatile length)(const char *) = strlen;
static char *(*volatile copy)(char *, const char *) = strcpy, *(*volatile pad)(char *, const char *, size_t) = strncpy;
static int (*volatile order)(const char *, const char *) = strcmp;
static void *(*volatile find)(const void *, int, size_t) = memchr;
int main(void) {PD_1
    for (int i = 0; i < 8192; i++) from[i] = to[i] = 'x';
    from[6000] = 'y';
    SHOW("memcpy", memcpy(to, from, size));
    SHOW("memset", memset(to, 'x', size));
    from[639] = 0;
    SHOW("memcmp", compare(from, to, 8000));
    SHOW("memchr", find(from, 'y', 8192));
    SHOW("strlen", length(from));
    SHOW("strcpy", copy(to, from));
    SHOW("strncpy", pad(to, from, 1280));
    SHOW("strcmp", order(from, to));
    return 0;
}
"""
    outcome = build("gcc $F -O1 a.c -o program", a__c=source).counted()
    shown = {word: numbers(outcome.output, word) for word in re.findall(r"^\w+", outcome.output, re.MULTILINE)}
    reads = {name: (loads, stores) for name, (loads, stores, _) in shown.items()}
    assert reads["memset"][1] == 1
    own = reads["memset"][0]  # of the size, and of function pointers
    assert reads == {
        "memcpy": (own + 1, 1), "memset": (own, 1), "memcmp": (own + 2, 0), "memchr": (own + 1, 0), "strlen": (own + 1, 0),
        "strcpy": (own + 1, 1), "strncpy": (own + 1, 1), "strcmp": (own + 2, 0),
    }  # fmt: skip
    lines = {name: misses for name, (_, _, misses) in shown.items()}
    assert {name: misses - lines["memset"] for name, misses in lines.items()} == {
        "memcpy": 16, "memset": 0, "memcmp": 20 - 16, "memchr": 94 - 16, "strlen": 10 - 16,
        "strcpy": 20 - 16, "strncpy": 30 - 16, "strcmp": 20 - 16,
    }  # fmt: skip


@pytest.mark.integration
def test_functions_work_while_the_program_is_still_being_linked(build: Build) -> None:
    early = """
#include <string.h>
static int (*volatile order)(const char *, const char *) = strcmp;
static size_t (*volatile length)(const char *) = strlen;
static int found(void) { return 40; }
static int lost(void) { return 1; }
static int (*choose(void))(void) {
    char copy[300], from[300];
    memset(from, 'a', 299);
    from[299] = 0;
    memcpy(copy, from, sizeof copy);
    memmove(copy + 1, copy, 298);
    return strlen(copy) == 299 && !strncmp(copy, from, 200) && strchr(copy, 0) && strstr(copy, "aa") ? found : lost;
}
int chosen(void) __attribute__((ifunc("choose")));
static int at_start;
__attribute__((constructor)) static void begin(void) { at_start = !order("same", "same") && length("four") == 4; }
int started(void) { return at_start + chosen(); }
"""
    between = "int started(void);\nint between(void) { return started() + 1; }\n"
    main = "int between(void);\nint main(void) {PD_1 return between(); }\n"
    real = shutil.which("gcc")
    built = build(
        f"{real} -O1 -fPIC -fno-builtin -shared early.c -o libearly.so && "
        f"{real} -O1 -fPIC -shared between.c -o libbetween.so -L. -learly -Wl,-rpath,'$ORIGIN' && "
        "gcc $F -O1 main.c -o program -L. -lbetween -Wl,-rpath,'$ORIGIN' -Wl,-rpath-link,.",
        early__c=early,
        between__c=between,
        main__c=main,
    )
    assert built.same().status == 42


ATOMICS = r"""
#include <stdio.h>
#define TRY(type) do { \
    _Alignas(16) static volatile type place = 5; type expected = 5, other = 9; int ok; \
    __atomic_store_n(&place, (type)7, __ATOMIC_RELEASE); show(__atomic_load_n(&place, __ATOMIC_ACQUIRE)); \
    show(__atomic_exchange_n(&place, (type)-3, __ATOMIC_ACQ_REL)); \
    show(__atomic_fetch_add(&place, 10, __ATOMIC_RELAXED)); show(__atomic_add_fetch(&place, 3, __ATOMIC_SEQ_CST)); \
    show(__atomic_fetch_sub(&place, 1, __ATOMIC_SEQ_CST)); show(__atomic_sub_fetch(&place, 4, __ATOMIC_RELAXED)); \
    show(__atomic_fetch_and(&place, (type)~1, __ATOMIC_SEQ_CST)); show(__atomic_fetch_or(&place, 65, __ATOMIC_SEQ_CST)); \
    show(__atomic_fetch_xor(&place, 33, __ATOMIC_SEQ_CST)); show(__atomic_fetch_nand(&place, 15, __ATOMIC_SEQ_CST)); \
    show(__atomic_nand_fetch(&place, 6, __ATOMIC_SEQ_CST)); show(place); \
    ok = __atomic_compare_exchange_n(&place, &expected, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED); show(ok); show(expected); \
    ok = __atomic_compare_exchange_n(&place, &expected, 2, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE); show(ok); show(place); \
    show(__sync_val_compare_and_swap(&place, 2, other)); show(__sync_bool_compare_and_swap(&place, 2, 1)); show(place); \
    show(__sync_lock_test_and_set(&place, 4)); __sync_lock_release(&place); show(place); \
    show(__sync_fetch_and_add(&place, 6)); __atomic_thread_fence(__ATOMIC_SEQ_CST); __atomic_signal_fence(__ATOMIC_SEQ_CST); } while (0)
static void show_(unsigned __int128 n) { printf("%llx%016llx ", (unsigned long long)(n >> 64), (unsigned long long)n); }
#define show(n) show_((unsigned __int128)(n))
int main(void) {PD_1
    unsigned long before[EVENTS] = {0}, after[EVENTS] = {0};
    COUNTS(before);
    TRY(unsigned char);
    COUNTS(after);
    TRY(unsigned short); TRY(unsigned); TRY(unsigned long); TRY(signed char); TRY(long);
#ifdef WIDE
    TRY(unsigned __int128);
#endif
    static _Bool flag;
    show(__atomic_test_and_set(&flag, __ATOMIC_SEQ_CST)); show(__atomic_test_and_set(&flag, __ATOMIC_SEQ_CST));
    __atomic_clear(&flag, __ATOMIC_SEQ_CST); show(flag);
    printf("\n");
    /* updates, compare-and-exchanges and the fence; neither loads nor stores that only release */
    return (after[LOADS] - before[LOADS] < 20 || after[ATOMICS] - before[ATOMICS] != 17) && PD_ATOMICS_SEEN;
}
"""


@pytest.mark.integration
@pytest.mark.parametrize("command", ["gcc $F -O0", "gcc $F -O2", "clang $F -O2", "gcc $F -O1 -DWIDE -mcx16", "clang $F -O1 -DWIDE -mcx16"])
def test_atomic_operations_have_their_results(command: str, build: Build) -> None:
    if "WIDE" in command and not shutil.which("gcc"):
        pytest.skip("no compiler with 16-byte atomics")
    source = "#ifdef PD_CALLED\n#define PD_ATOMICS_SEEN 1\n#else\n#define PD_ATOMICS_SEEN 0\n#endif\n" + ATOMICS
    library = " -latomic" if "WIDE" in command else ""
    assert build(f"{command} a.c -o program{library}", a__c=source).same().status == 0


@pytest.mark.integration
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_atomic_operations_of_threads_exclude_each_other(compiler: str, build: Build) -> None:
    source = """
#include <pthread.h>
#include <stdio.h>
static int lock, ticket, turn;
static long guarded, counted, taken;
static void *run(void *data) {PD_1
    for (int i = 0; i < 5000; i++) {
        while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) ;
        guarded++;
        __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
        __atomic_fetch_add(&counted, 2, __ATOMIC_RELAXED);
    }
    int mine = __atomic_fetch_add(&ticket, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != mine) ;
    taken += 7;
    __atomic_store_n(&turn, mine + 1, __ATOMIC_RELEASE);
    return data;
}
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, run, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    printf("%ld %ld %ld\\n", guarded, counted, taken);
    return 0;
}
"""
    assert build(f"{compiler} $F -O2 -pthread a.c -o program", a__c=source).same().output == "10000 20000 14\n"


@pytest.mark.integration
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_which_calls_are_kept_changes_no_counts_where_exceptions_may_pass(compiler: str, runtime: Path, tmp_path: Path) -> None:
    (tmp_path / "sources").mkdir()
    main = tmp_path / "sources" / "main.cpp"
    main.write_text("""
#include <stdexcept>
#include <string>
struct Words { int count = 0; void add(const char *word, int times); };
void Words::add(const char *word, int times)
{
    if (!word) throw std::runtime_error("no word");
    for (int i = 0; i < times; i++) count += (int)std::string(word).size();
}
int main()
{
    Words words;
    for (int i = 0; i < 3000; i++) words.add(i % 3 ? "short" : "rather long a word", i % 7);
    return words.count == 0;
}
""")
    tree = probed(main, ())
    built = counted(tmp_path, runtime, main.parent, f"{compiler} -O2 main.cpp -o program")
    blocks, kept = set(), set()
    for seed in range(3):
        (recording,) = tree.run(built.tree / "program", tmp_path / f"out{seed}", seed, own=True).recordings
        blocks.add(tuple(recording.totals.counters["blocks"].tolist()))
        kept.add(tuple(sorted(recording.samples[tree.probe("Words::add").id].call.tolist())))
    assert len(kept) == 3
    assert len(blocks) == 1, blocks


@pytest.mark.integration
def test_a_single_thread_counts_the_same_in_every_run(build: Build) -> None:
    source = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { struct node *next; char text[40]; };
int main(void) {PD_1
    struct node *list = 0;
    long sum = 0;
    for (int i = 0; i < 3000; i++) {
        struct node *one = malloc(sizeof *one);
        sprintf(one->text, "%d", i * 7919);
        one->next = list;
        list = one;
    }
    for (struct node *one = list; one; one = one->next) sum += (long)strlen(one->text);
    printf("%ld\\n", sum);
    return 0;
}
"""
    built = build("gcc $F -O2 a.c -o program", a__c=source)
    seen = set()
    for _ in range(4):
        totals = built.counted().recording.totals
        seen.add(tuple((name, values.tolist()[0]) for name, values in sorted(totals.counters.items())))
    (counts,) = seen
    assert dict(counts)["l1d_misses"] > 100


PAPI = """
#include <papi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static const char *const names[] = {"BLOCKS", "LOADS", "STORES", "ATOMICS", "DIVISIONS", "L1D_MISS", "L2_MISS", "LLC_MISS", "HITM",
    "HITM_FALSE", "REMOTE_DRAM",
    "ALLOC_COUNT", "ALLOC_BYTES"};
static volatile long shared[1024];
static void *volatile made;
static void *run(void *data) {PD_1
    int set = PAPI_NULL, wrong = 0;
    long long values[13] = {0}, first[13] = {0};
    unsigned long events[EVENTS] = {0};
    if (PAPI_register_thread() != PAPI_OK || PAPI_create_eventset(&set) != PAPI_OK) return (void *)1;
    for (int i = 0; i < 13; i++) {
        char name[64];
        sprintf(name, "sde:::perfdiff::%s", names[i]);
        if (PAPI_add_named_event(set, name) != PAPI_OK) return (void *)2;
    }
    if (PAPI_start(set) != PAPI_OK || PAPI_read(set, first) != PAPI_OK) return (void *)3;
    for (long i = 0; i < (long)data; i++) {
        for (int j = 0; j < 1024; j++) shared[j] += j;
        free(made = malloc(24));
        PAPI_read(set, values);
        pd_pmu_read(events);
        for (int j = 0; j < EVENTS; j++) wrong += values[j] != (long long)events[j];
    }
    wrong += values[11] - first[11] < (long)data || values[12] - first[12] < 24 * (long)data || values[0] < 1024 * (long)data;
    PAPI_stop(set, values);
    return (void *)(long)wrong;
}
int main(void) {
    pthread_t threads[3];
    void *wrong;
    long all = 0;
    if (PAPI_library_init(PAPI_VER_CURRENT) != PAPI_VER_CURRENT || PAPI_thread_init((unsigned long (*)(void))pthread_self)) return 2;
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, run, (void *)(10 + 20 * i));
    for (int i = 0; i < 3; i++) { pthread_join(threads[i], &wrong); all += (long)wrong; }
    printf("%ld\\n", all);
    return 0;
}
"""


@pytest.mark.integration
@pytest.mark.skipif(not Path("/usr/include/papi.h").exists(), reason="PAPI is not installed")
def test_papi_reads_the_counts_of_each_thread_exactly(build: Build) -> None:
    outcome = build("gcc $F -O1 -pthread a.c -o program -lpapi", a__c=PAPI).counted()
    assert (outcome.status, outcome.output) == (0, "0\n")


@pytest.mark.integration
@pytest.mark.skipif(not Path("/usr/include/papi.h").exists(), reason="PAPI is not installed")
def test_program_that_counts_by_papi_itself_still_does(build: Build) -> None:
    source = """
#include <papi.h>
#include <sde_lib.h>
#include <stdio.h>
static long long mine;
int main(void) {PD_1
    int set = PAPI_NULL;
    long long value = -1;
    void *library = papi_sde_init("own");
    papi_sde_register_counter(library, "MINE", PAPI_SDE_RO | PAPI_SDE_DELTA, PAPI_SDE_long_long, &mine);
    if (PAPI_library_init(PAPI_VER_CURRENT) != PAPI_VER_CURRENT || PAPI_create_eventset(&set)) return 1;
    if (PAPI_add_named_event(set, "sde:::own::MINE")) return 2;
    PAPI_start(set);
    mine += 42;
    PAPI_stop(set, &value);
    printf("%lld\\n", value);
    return 0;
}
"""
    assert build("gcc $F -O1 a.c -o program -lpapi -lsde", a__c=source).same().output == "42\n"


SHARING = """
#include <pthread.h>
#include <cstdio>
#include <cstdlib>
#include <vector>
struct counters { long hits; long misses; char gap[64]; long other; };
alignas(64) static counters shared[2];
alignas(64) static volatile long *places[4];
alignas(64) static pthread_barrier_t turn;
static void *run(void *data) {PD_1
    long number = (long)data;
    volatile long *mine[4] = {number ? &shared[1].hits : &shared[1].misses, places[1] + number, places[2] + number, places[3] + number};
    for (int round = 0; round < 40; round++) {
        pthread_barrier_wait(&turn);
        for (int place = 0; place < 4; place++) for (int i = 0; i < 10; i++) (*mine[place])++;
    }
    return nullptr;
}
int main() {
    alignas(64) volatile long local[8] = {0};
    std::vector<long> numbers(8);
    places[1] = local;
    places[2] = numbers.data();
    counters *made = new counters();
    places[3] = &made->hits;
    pthread_t threads[2];
    pthread_barrier_init(&turn, nullptr, 2);
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], nullptr, run, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], nullptr);
    printf("%ld %ld %ld\\n", local[0] + local[1], numbers[0] + numbers[1], made->hits + made->misses);
    delete made;
    return 0;
}
"""


@pytest.mark.integration
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_hot_lines_are_named_by_variable_field_allocation_and_stack(compiler: str, build: Build) -> None:
    built = build(f"{compiler} $F -O2 -pthread a.cc -o program", a__cc=SHARING)
    outcome = built.same()
    lines = naming.named(outcome.recording.lines, built.tree.resolve(), built.log.commands)
    said = {text for line in lines if line.line.hitm > 4 for text in line.says}
    assert "shared: [1].hits, [1].misses" in said
    assert "the stack of thread 0" in said
    assert "88 bytes allocated in main (a.cc:24): hits, misses" in said
    assert "64 bytes allocated in main (a.cc:21)" in said
    by_text = {text: line.line for line in lines for text in line.says}
    line = by_text["shared: [1].hits, [1].misses"]
    assert line.hitm_false == line.hitm
    assert {touch.written for touch in line.touches if touch.events > 4} == {0xFF << 24, 0xFF << 32}


PLACE = struct.pack("<II4Q", 2, 2**32 - 1, 0x1000, 48, 0x1234, 5) + b"/a/b\n\0\0\0"
CORE = struct.pack("<II3Q", 1, 0, 9, 0xFF, 0xFF00)
LINE = struct.pack("<6QII", 0x1000, 64, 9, 8, 0, 2, 1, 1) + CORE + PLACE


def test_a_block_of_a_line_is_read() -> None:
    (line,) = hot_lines.parse([(0, LINE)])
    assert (line.address, line.size, line.hitm, line.hitm_false, line.remote, line.missed) == (0x1000, 64, 9, 8, 0, 2)
    assert line.touches == (hot_lines.Touch(1, 9, 0xFF, 0xFF00),)
    assert line.places == (hot_lines.Allocation(0x1000, 48, hot_lines.CodeAddress("/a/b\n", 0x1234)),)


@settings(max_examples=300)
@given(st.data())
def test_damaged_blocks_of_lines_are_errors_or_lines(data: st.DataObject) -> None:
    block = bytearray(LINE)
    for _ in range(data.draw(st.integers(1, 6))):
        block[data.draw(st.integers(0, len(block) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(block)))
    with contextlib.suppress(DamageError):
        assert len(hot_lines.parse([(24, bytes(block[:end]))])) == 1
