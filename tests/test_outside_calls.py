"""Calls that leave the project's code, and divisions: counted exactly in real programs, read, kept, and told as causes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import runtimes
from counted_programs import Project, project
from perfdiff.collect.recordings.library import Departures
from perfdiff.languages.c import naming
from perfdiff.languages.c.pack import C
from perfdiff.records import recording
from perfdiff.records.recording_file import DamageError, decode

Build = Callable[..., Project]
OUTSIDE = 0  # of every probe: the start of a thread


@pytest.fixture(scope="module")
def runtime() -> Path:
    return runtimes.library()


@pytest.fixture
def build(runtime: Path, tmp_path: Path) -> Build:
    def built(command: str, **files: str) -> Project:
        return project(tmp_path, runtime, {name.replace("__", "."): text for name, text in files.items()}, command)

    return built


WORDS = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *volatile kept;
__attribute__((noinline)) static size_t work(char *text, int n) {PD_1
    size_t sum = 0;
    for (int i = 0; i < 101; i++) sum += strlen(text + i % 50);
    for (int i = 0; i < n; i++) { kept = malloc(8); free(kept); }
    for (int i = 0; i < 7; i++) sum += (size_t)write(2, "x", 1);
    return sum;
}
int main(int argc, char **argv) {
    char text[101];
    (void)argv;
    memset(text, 'a', 100);
    text[100] = 0;
    printf("%zu", work(text, 30 * argc));
    puts(text);
    return 0;
}
"""


@pytest.mark.integration
@pytest.mark.parametrize("command", ["gcc -O2", "clang -O2", "g++ -O1", "clang++ -O2", "gcc -O2 -Wl,-z,lazy", "gcc -O0 -no-pie"])
def test_calls_of_libraries_are_counted_by_name_and_caller(command: str, build: Build) -> None:
    name = "a.cc" if "++" in command else "a.c"
    outcome = build(f"{command} $F {name} -o program", **{name.replace(".", "__"): WORDS}).same()
    calls = outcome.recording.library
    inside = {symbol: made for (probe, symbol), made in calls.items() if probe != OUTSIDE}
    assert inside == {"strlen": 101, "malloc": 30, "free": 30, "write": 7}
    assert (OUTSIDE, "printf") in calls
    assert (OUTSIDE, "puts") in calls


NUMBERS = """
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
static volatile double results[3];
static long work(unsigned long n, const float *four, float *into) {PD_1
    long sum = 0;
    for (unsigned long i = 1; i <= n; i++) sum += (long)(1000003 % i) + (signed char)(100 / (signed char)i);
    for (unsigned long i = 1; i <= n; i++) {
        double part = 1.0 / (double)i; /* whether it is small is asked around the division */
        if (i > n / 2) sum += part < 0.01;
        results[0] = part;
    }
    results[1] = sqrt((double)n);
    results[2] = (double)((long double)n / 3.0L);
    for (int i = 0; i < 4; i++) into[i] = four[i] / (float)n;
    return sum;
}
int main(int argc, char **argv) {
    float four[4] = {1, 2, 3, 4}, into[4];
    (void)argv;
    printf("%ld ", work(99 + (unsigned long)argc, four, into));
    printf("%a %a %a %a\\n", results[0], results[1], results[2], (double)into[3]);
    return 0;
}
"""


@pytest.mark.integration
@pytest.mark.parametrize("command", ["gcc -Og -fno-math-errno", "gcc -O1 -fno-math-errno", "g++ -O2 -fno-math-errno -fno-tree-vectorize"])
def test_each_division_and_square_root_is_counted_once_and_gives_what_it_did(command: str, build: Build) -> None:
    name = "a.cc" if "++" in command else "a.c"
    outcome = build(f"{command} $F {name} -o program -lm", **{name.replace(".", "__"): NUMBERS}).same()
    (divisions,) = outcome.recording.totals.counters["divisions"].tolist()
    assert divisions == 100 + 100 + 100 + 1 + 1 + 4


@pytest.mark.integration
def test_a_division_of_vectors_is_one_instruction(build: Build) -> None:
    source = """
    typedef float four __attribute__((vector_size(16)));
    static four work(four up, four down) {PD_1 return up / down; }
    int main(int argc, char **argv) { (void)argv; four one = {(float)argc, 2, 3, 4}; return (int)work(one, one)[3] - 1; }
    """
    (divisions,) = build("gcc $F -O1 a.c -o program", a__c=source).same().recording.totals.counters["divisions"].tolist()
    assert divisions == 1


@pytest.mark.integration
@pytest.mark.parametrize("command", ["clang $F -O2 -c b.c && gcc $F -O2 a.c b.o -o program", "gcc $F -O2 -masm=intel a.c b.c -o program"])
def test_divisions_of_a_program_that_are_not_all_counted_are_absent(command: str, build: Build) -> None:
    first = """
    #include <stdio.h>
    unsigned other(const unsigned *one, unsigned two);
    static unsigned work(unsigned n) {PD_1 return 1000003 % n + other(&n, 3 + n); }
    int main(int argc, char **argv) { (void)argv; printf("%u\\n", work(7u * (unsigned)argc)); return 0; }
    """
    outcome = build(command, a__c=first, b__c="unsigned other(const unsigned *one, unsigned two) { return two / *one; }\n").same()
    counters = outcome.recording.totals.counters
    assert np.isnan(counters["divisions"]).all()
    assert (counters["blocks"] > 0).all()


@pytest.mark.integration
def test_what_lies_between_objects_of_the_project_is_not_outside_and_plugins_are_seen(build: Build) -> None:
    files = {
        "lib__c": "#include <stdlib.h>\nvoid *make(int n) { return calloc(1, (size_t)n); }\n",
        "plug__c": """
        #include <stdlib.h>
        void *make(int n);
        int plug(int n) { int i; for (i = 0; i < n; i++) free(make(n)); return i + atoi("4"); }
        """,
        "a__c": """
        #include <dlfcn.h>
        #include <stdio.h>
        static int work(int (*plug)(int)) {PD_1 return plug(9); }
        int main(void) {
            void *plugin = dlopen("./plug.so", RTLD_NOW);
            printf("%d\\n", plugin ? work((int (*)(int))dlsym(plugin, "plug")) : -1);
            return 0;
        }
        """,
    }
    command = (
        "gcc $F -O1 -fPIC -shared lib.c -o liblib.so && gcc $F -O1 -fPIC -shared plug.c -o plug.so -Wl,-rpath,. -L. -llib"
        " && gcc $F -O1 a.c -o program -Wl,-rpath,. -L. -llib -ldl"
    )
    outcome = build(command, **files).same()
    inside = {symbol: made for (probe, symbol), made in outcome.recording.library.items() if probe != OUTSIDE}
    assert inside == {"calloc": 9, "free": 9, "strtol": 1}


FOREIGN = """
#include <stdarg.h>
double many(int a, long b, double c, double d, double e, double f, double g, double h, double i, double j, int k, int l, int m, int n)
{
    return a + 2. * (double)b + 3 * c + 5 * d + 7 * e + 11 * f + 13 * g + 17 * h + 19 * i + 23 * j + 29. * k + 31. * l + 37. * m + 41. * n;
}
double varied(int count, ...)
{
    double sum = 0;
    va_list list;
    va_start(list, count);
    while (count--) sum = 3 * sum + va_arg(list, double);
    va_end(list);
    return sum;
}
#ifdef __x86_64__
typedef long wide __attribute__((vector_size(32)));
__attribute__((target("avx2"))) long folded(wide one, wide two)
{
    wide sum = one + 3 * two;
    return sum[0] ^ sum[1] << 3 ^ sum[2] << 7 ^ sum[3] << 11;
}
#endif
"""
HANDING_OVER = """
#include <setjmp.h>
#include <stdio.h>
double many(int a, long b, double c, double d, double e, double f, double g, double h, double i, double j, int k, int l, int m, int n);
double varied(int count, ...);
static jmp_buf place;
#ifdef __x86_64__
typedef long wide __attribute__((vector_size(32)));
__attribute__((target("avx2"))) long folded(wide one, wide two);
__attribute__((target("avx2"), noinline)) static long fold(int n) {
    wide one = {n, 2, 3, 4}, two = {5, 6, 7, 8 + n};
    return folded(one, two);
}
#endif
static int work(int n) {PD_1
    printf("%.17g %.17g\\n", many(n, 2, 3.5, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14), varied(8, 1., 2., 3., 4., 5., 6., 7., 8. * n));
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) printf("%lx\\n", fold(n));
#endif
    if (!_setjmp(place)) _longjmp(place, n);
    return n;
}
int main(void) {
    int sum = 0;
    for (int i = 1; i < 4; i++) sum += work(i);
    return sum;
}
"""


@pytest.mark.integration
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_arguments_of_counted_calls_arrive_as_they_were(compiler: str, build: Build) -> None:
    """The first call of each function takes another way than later ones; both keep general and vector registers."""
    plain = shutil.which("gcc")
    command = f"{plain} -O1 -fPIC -shared foreign.c -o libforeign.so && {compiler} $F -O1 a.c -o program -Wl,-rpath,. -L. -lforeign"
    outcome = build(command, foreign__c=FOREIGN, a__c=HANDING_OVER).same()
    assert outcome.status == 6
    assert outcome.recording.library[1, "many"] == 3
    assert outcome.recording.library[1, "_setjmp"] == 3


@pytest.mark.integration
def test_calls_of_threads_and_of_children_add_up(build: Build) -> None:
    source = """
    #include <pthread.h>
    #include <stdlib.h>
    #include <sys/wait.h>
    #include <unistd.h>
    static void *volatile kept[4];
    static void *work(void *data) {PD_1
        for (long i = 0; i < 20000; i++) free(kept[(long)data] = malloc(8));
        return 0;
    }
    int main(void) {
        pthread_t threads[3];
        int status;
        for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, (void *)i);
        for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
        if (!fork()) { work((void *)3); exit(0); }
        wait(&status);
        return status;
    }
    """
    outcome = build("gcc $F -O1 -pthread a.c -o program", a__c=source).same()
    made = sorted(record.library.get((1, "malloc"), 0.0) for record in map(recording.read, outcome.recordings))
    assert made == [20000, 60000]


@pytest.mark.integration
@pytest.mark.parametrize("options", ["", "-fno-plt"])
def test_a_function_that_may_be_called_past_the_count_is_named_and_not_counted(options: str, build: Build) -> None:
    source = """
    #include <stdlib.h>
    #include <string.h>
    static char text[64] = "what is sorted";
    typedef int order(const void *, const void *);
    static int work(const char *other) {PD_1
        qsort(text, 14, 1, (order *)strcmp);
        return strcmp(text, other);
    }
    int main(int argc, char **argv) { (void)argc; return work(argv[0]) > 0; }
    """
    found = build(f"gcc $F -O1 {options} a.c -o program", a__c=source).same().recording
    assert "strcmp" in found.unseen
    assert (1, "strcmp") not in found.library
    assert ("qsort" in found.unseen, found.library.get((1, "qsort"))) == ((True, None) if options else (False, 1.0))


@pytest.fixture(scope="module")
def recorded(runtime: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = project(tmp_path_factory.mktemp("recorded"), runtime, {"a.c": WORDS}, "gcc $F -O1 a.c -o program")
    (path,) = built.counted().recordings
    return path


@pytest.mark.integration
def test_a_call_of_a_function_without_a_name_is_damage(recorded: Path) -> None:
    data = recorded.read_bytes()
    _, contents = decode(data)
    numbers = {int(edge["callee"]) for _, edges in contents.library for edge in edges}
    unknown = max(numbers) + 1000
    edge = next(edges[:1] for _, edges in contents.library if len(edges))
    damaged = edge.copy()
    damaged["callee"] = unknown
    with pytest.raises(DamageError, match="without a name"):
        decode(data.replace(edge.tobytes(), damaged.tobytes()))


@pytest.mark.integration
def test_names_of_which_calls_are_unseen_on_one_side_are_told_on_neither(recorded: Path) -> None:
    found = recording.read(recorded)
    run = type("Run", (), {"id": 3})()
    departures = Departures()
    departures.add(run, [found, replace(found, library={}, unseen=frozenset(("malloc",)))])
    calls = departures.named(C())
    table = {calls.names[at]: made for at, made in zip(calls.callee.tolist(), calls.calls.tolist(), strict=True)}
    assert table == {"strlen": 101, "free": 30, "write": 7}
    assert set(calls.run.tolist()) == {3}


def test_functions_are_named_as_programmers_write_them() -> None:
    symbols = (
        "strlen",
        "__printf_chk",
        "__isoc99_sscanf",
        "__memcpy_chk",
        "_Znwm",
        "_ZdlPvm",
        "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_appendEPKcm",
    )
    names = ("strlen", "printf", "sscanf", "memcpy", "operator new", "operator delete", "std::string::_M_append")
    assert naming.readable(symbols) == names
