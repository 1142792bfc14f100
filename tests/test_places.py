"""Exact counts of lines by the compilers' own counters: in any number of processes, threads, programs and libraries, however they end."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

import runtimes
from perfdiff.build.cache import BuildCache
from perfdiff.collect.built.workshop import Workshop
from perfdiff.config import BuildConfig
from perfdiff.errors import RecordingError
from perfdiff.languages.c.pack import C
from perfdiff.languages.c.threads import has_threads
from perfdiff.languages.packs import Packs
from perfdiff.progress import Silent
from perfdiff.records.schema import Phase, Side
from perfdiff.revisions.pins import resolve
from perfdiff.revisions.repository import find_repository
from placed_programs import PlacedTree, placed
from programs import git

pytestmark = pytest.mark.integration

WORK = "void work(long n) {\n  for (volatile long i = 0; i < n;)\n    i++; /* the body */\n}\n"
HEAD = "#define _GNU_SOURCE\n#include <pthread.h>\n#include <signal.h>\n#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\n"
BODY = "i++; /* the body */"

SORT = """\
#include <stdio.h>
#include <stdlib.h>
static void swap(int *a, int *b) {
  int t = *a; /* swapped */
  *a = *b;
  *b = t;
}
static void sort(int *x, int n) {
  for (int i = 0; i < n; i++) /* passes */
    for (int j = 0; j + 1 < n - i; j++) /* steps */
      if (x[j] > x[j + 1]) /* compares */
        swap(&x[j], &x[j + 1]);
}
int main(int argc, char **argv) {
  int n = atoi(argv[1]);
  int *x = malloc(n * sizeof *x);
  for (int i = 0; i < n; i++)
    x[i] = argc > 2 ? i : n - i; /* filled */
  sort(x, n);
  printf("%d\\n", n ? x[0] : 0);
  free(x);
  return 0;
}
"""

Make = Callable[..., PlacedTree]


@pytest.fixture(scope="module")
def runtime() -> Path:
    return runtimes.library()


@pytest.fixture(params=["gcc", "clang"])
def compiler(request: pytest.FixtureRequest) -> str:
    if not shutil.which(request.param):
        pytest.skip(f"needs {request.param}")
    return str(request.param)


@pytest.fixture
def make(tmp_path: Path, runtime: Path, compiler: str) -> Make:
    """Build a tree with the compiler of this test: `$CC` and `$CXX` in the commands."""
    names = {"gcc": ("gcc", "g++"), "clang": ("clang", "clang++")}[compiler]

    def made(sources: Mapping[str, str], commands: Sequence[str], *, threads: bool = False) -> PlacedTree:
        words = [command.replace("$CC", names[0]).replace("$CXX", names[1]) for command in commands]
        return placed(tmp_path, runtime, sources, words, threads=threads)

    return made


def program(make: Make, main: str, *, threads: bool = False, flags: str = "-O2") -> PlacedTree:
    """Build `prog` of `work` and a main function."""
    sources = {"main.c": f"{HEAD}void work(long);\n{main}", "work.c": WORK}
    return make(sources, [f"$CC {flags} -c main.c && $CC {flags} -c work.c && $CC {flags} -pthread main.o work.o -o prog"], threads=threads)


def test_bubble_sort_is_counted_to_the_last_swap(make: Make) -> None:
    tree = make({"sort.c": SORT}, ["$CC -O2 -c sort.c -o sort.o", "$CC sort.o -o sort"])
    backwards = tree.run("./sort 100", "backwards")
    assert [backwards.of(f"/* {text} */") for text in ("passes", "steps", "compares", "swapped", "filled")] == [101, 5050, 4950, 4950, 100]
    sorted_ = tree.run("./sort 100 sorted", "sorted")
    assert [sorted_.of(f"/* {text} */") for text in ("passes", "steps", "compares", "swapped", "filled")] == [101, 5050, 4950, 0, 100]
    nothing = tree.run("true", "nothing")
    assert set(nothing.by_place.values()) == {0}
    assert nothing.by_place.keys() == backwards.by_place.keys() == sorted_.by_place.keys()
    assert {place.function for place in tree.reader.places} == {"main", "sort", "swap"}
    assert tree.reader.sources["sort.c"][3] == "  int t = *a; /* swapped */"
    assert not list(tree.tree.rglob("*.gcda")) + list(tree.tree.rglob("*.profraw"))


def test_processes_of_a_run_add_up(make: Make) -> None:
    tree = program(make, "int main(int argc, char **argv) { (void)argc; work(atol(argv[1])); return 0; }\n")
    counts = tree.run("./prog 3; for i in 1 2 3 4 5 6 7 8; do ./prog 100 & done; wait; sh -c './prog 5'")
    assert (counts.of(BODY), counts.lost) == (808, 0)


def test_threads_lose_no_count(make: Make) -> None:
    main = """\
static void *run(void *n) { work((long)n); return NULL; }
int main(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, run, (void *)200000L);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  return 0;
}
"""
    # Without optimisation, as loops else add up what they counted at their end, where threads hardly ever meet.
    assert program(make, main, threads=True, flags="-O0").run("./prog").of(BODY) == 800_000


ENDS = {
    "return": ("return 0;", 0),
    "exit": ("exit(3);", 3),
    "_exit": ("_exit(4);", 4),
    "_Exit": ("_Exit(5);", 5),
    "quick_exit": ("quick_exit(6);", 6),
    "abort": ("abort();", -6),
    "fault": ("raise(SIGSEGV);", -11),
    "terminated": ("kill(getpid(), SIGTERM); for (;;) pause();", -15),
    "default asked for": ("signal(SIGINT, SIG_IGN); signal(SIGINT, SIG_DFL); raise(SIGINT);", -2),
    "exec": ('execl("/bin/true", "true", NULL);', 0),
    "exec that fails": ('execlp("/nowhere/true", "true", (char *)NULL); work(3); _exit(9);', 9),
    "stack overflow": ("return deeper(1);", -11),
}
DEEPER = "int deeper(volatile int n) { volatile char room[4096]; room[0] = n; return n > 0 ? deeper(n + 1) + room[0] : 0; }\n"


def test_counts_outlive_every_end(make: Make) -> None:
    cases = "".join(f"  case {number}: {text}\n" for number, (text, _) in enumerate(ENDS.values()))
    main = "int main(int argc, char **argv) {\n  (void)argc;\n  work(7);\n  switch (atoi(argv[1])) {\n"
    tree = program(make, f"{DEEPER}{main}{cases}  }}\n  return 1;\n}}\n")
    for number, (name, (_, status)) in enumerate(ENDS.items()):
        counts = tree.run(f"exec ./prog {number}", f"end{number}")
        assert (name, counts.status, counts.of(BODY), counts.lost) == (name, status, 10 if name == "exec that fails" else 7, 0)


def test_killed_process_is_missed(make: Make) -> None:
    counts = program(make, "int main(void) { work(7); kill(getpid(), SIGKILL); return 0; }\n").run("./prog; true")
    assert (counts.of(BODY), counts.lost) == (0, 1)


def test_own_handler_of_the_program_is_its_own(make: Make) -> None:
    main = """\
static volatile sig_atomic_t seen;
static void on(int number) { seen = number; }
int main(void) {
  struct sigaction former;
  if (sigaction(SIGTERM, NULL, &former) || former.sa_handler != SIG_DFL) return 2;
  if (signal(SIGTERM, on) != SIG_DFL || signal(SIGTERM, on) != on) return 3;
  raise(SIGTERM);
  work(4);
  return seen == SIGTERM ? 0 : 4;
}
"""
    counts = program(make, main).run("./prog")
    assert (counts.status, counts.of(BODY), counts.lost) == (0, 4, 0)


FORKS = """\
int main(void) {
  work(10);
  for (int i = 0; i < 3; i++) {
    pid_t child = i == 2 ? vfork() : fork();
    if (child == 0) {
      if (i == 2) execl("/bin/true", "true", NULL);
      work(100);
      if (i == 0) _exit(0);
      exit(0);
    }
    waitpid(child, NULL, 0);
    work(1);
  }
  return system("exit 3") == 0;
}
"""


def test_forked_children_count_once(make: Make) -> None:
    counts = program(make, FORKS).run("./prog")
    assert (counts.status, counts.of(BODY), counts.lost) == (0, 10 + 2 * 100 + 3, 0)


HOST = """\
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    void (*work)(long) = (void (*)(long))dlsym(library, "work");
    work(50);
    if (i == 1) dlclose(library);
  }
  _exit(0);
}
"""


def test_libraries_that_are_loaded_count_on_their_own(make: Make) -> None:
    other = WORK.replace("the body", "another body")
    library = "$CC -O2 -shared -fPIC"
    tree = make(
        {"host.c": HOST, "work.c": WORK, "other.c": other},
        [f"{library} work.c -o one.so", f"{library} other.c -o two.so", "$CC -O2 host.c -o host -ldl"],
    )
    counts = tree.run("./host ./one.so ./two.so")
    assert (counts.status, counts.of(BODY), counts.of("another body"), counts.of("_exit(0)")) == (0, 50, 50, 1)
    foreign = tree.run("python3 -c 'import ctypes, os; l = ctypes.CDLL(\"./one.so\"); l.work(4); os.fork() or l.work(20)'", "foreign")
    assert (foreign.of(BODY), foreign.lost) == (24, 0)


def test_linked_library_counts_beside_its_program(make: Make) -> None:
    tree = make(
        {"main.c": "void work(long);\nint main(void) { work(9); return 0; }\n", "work.c": WORK},
        ["$CC -O2 -shared -fPIC work.c -o libwork.so", "$CC -O2 main.c -L. -lwork -Wl,-rpath,$PWD -o prog"],
    )
    assert tree.run("./prog").of(BODY) == 9


def test_two_programs_with_the_same_functions_are_told_apart(make: Make) -> None:
    main = "void work(long);\nint main(void) {{ work({}); return 0; }}\n"
    tree = make(
        {"one.c": main.format(1), "two.c": main.format(20), "work.c": WORK},
        ["$CC -O2 -c work.c -o work.o", "$CC -O2 one.c work.o -o one", "$CC -O2 two.c work.o -o two"],
    )
    counts = tree.run("./one; ./one; ./two")
    assert (counts.of("work(1)"), counts.of("work(20)"), counts.of(BODY)) == (2, 1, 22)


CPLUSPLUS = {
    "many.h": "template <class T> T many(T n) {\n  T sum = 0;\n  for (T i = 0; i < n; i += 1)\n    sum += i; // added\n  return sum;\n}\n"
    "inline long half(long n) {\n  return n / 2; // halved\n}\n",
    "one.cpp": '#include "many.h"\nlong one(long n) { return many<long>(n) + half(n); }\n',
    "main.cpp": '#include "many.h"\n#include <cstdio>\n#include <stdexcept>\n#include <string>\n#include <vector>\nlong one(long);\n'
    "static void thrower(long n) {\n  if (n % 2)\n    throw std::runtime_error(std::to_string(n)); // thrown\n}\n"
    "int main(int argc, char **argv) {\n  std::vector<int> caught;\n  for (long i = 0; i < 6; i++)\n    try {\n      thrower(i);\n"
    "    } catch (const std::exception &) {\n      caught.push_back(1); // caught\n    }\n"
    '  std::printf("%ld %f %ld\\n", one(10 * argc), many<double>(4 * argc), half(argc));\n  return argv == nullptr;\n}\n',
}


def test_instances_are_summed_and_known_apart_and_inline_functions_are_summed_over_units(make: Make) -> None:
    tree = make(CPLUSPLUS, ["$CXX -O2 -c one.cpp -o one.o", "$CXX -O2 -c main.cpp -o main.o", "$CXX one.o main.o -o prog"])
    counts = tree.run("./prog")
    assert counts.functions("// added") == {"many": 14}
    assert counts.instances("// added") == {"many<double>": 4, "many<long>": 10}
    assert counts.functions("// halved") == {"half": 2}
    assert (counts.of("// thrown"), counts.of("// caught")) == (3, 3)
    assert {place.file for place in tree.reader.places} == {"main.cpp", "many.h", "one.cpp"}


MADE = 'long made(long n) {\n  return n + 1;\n}\n#line 1 "grammar.y"\nlong rule(long n) { return n + 2; }\n'
CALLS_MADE = "long made(long), rule(long);\nint main(int n, char **v) { return !v || made(rule(n)) == 0; }\n"


def test_generated_files_are_counted(make: Make, compiler: str) -> None:
    commands = ["mkdir out && cp grammar.txt out/made.c && cp main.txt out/main.c", "cd out && $CC -O2 -c made.c && $CC -O2 -c main.c"]
    tree = make({"grammar.txt": MADE, "main.txt": CALLS_MADE}, [*commands, "$CC out/made.o out/main.o -o prog"])
    counts = tree.run("./prog")
    found = {(place.function, place.file, place.line): count for place, count in counts.by_place.items()}
    rule = ("rule", "out/grammar.y", 1) if compiler == "gcc" else ("rule", "out/made.c", 5)  # clang's counters know nothing of #line
    assert (found["made", "out/made.c", 2], found[rule], found["main", "out/main.c", 2]) == (1, 1, 1)


def test_programs_that_the_build_runs_leave_nothing_in_the_tree(make: Make) -> None:
    gen = '#include <stdio.h>\nint main(void) { puts("int main(int made, char **v) { return !v; }"); return 0; }\n'
    tree = make({"gen.c": gen}, ["$CC gen.c -o gen", "./gen > made.c", "$CC made.c -o prog"])
    assert not [path for pattern in ("*.gcda", "*.profraw") for path in tree.tree.rglob(pattern)]
    counts = tree.run("./prog")
    assert {place.file: count for place, count in counts.by_place.items() if "main" in place.text} == {"gen.c": 0, "made.c": 1}


def test_static_program_counts_until_its_end(make: Make) -> None:
    counts = program(make, "int main(void) { work(8); _exit(0); }\n", flags="-O2 -static").run("./prog")
    assert (counts.of(BODY), counts.lost) == (8, 0)


def test_damaged_counts_are_told(make: Make, compiler: str) -> None:
    tree = program(make, "int main(void) { work(8); return 0; }\n")
    tree.run_only("./prog")
    name = "work.gcda" if compiler == "gcc" else "*.profraw"
    (file,) = (tree.folder / "run").rglob(name)
    file.write_bytes(file.read_bytes()[: 60 if compiler == "gcc" else -100])
    with pytest.raises(RecordingError) as caught:
        tree.read("run", 0, "")
    assert caught.value.slug == "places-damaged"


def test_what_cannot_be_counted_is_compiled_plainly_and_named(make: Make) -> None:
    tree = make(
        {
            "bare.c": "long bare(long n) { return n; }\n",
            "code.s": ".text\n",
            "main.c": "long bare(long);\nint main(void) { return (int)bare(0); }\n",
        },
        ["$CC -O2 -ffreestanding -c bare.c", "$CC -O2 main.c bare.o code.s -o prog"],
    )
    assert {(one.file, one.reason) for one in tree.uncounted} == {
        ("bare.c", "it is compiled to run without a C library"),
        ("code.s", "it is written in assembler"),
    }
    assert {place.file for place in tree.reader.places} == {"main.c"}
    assert tree.run("./prog").of("bare(0)") == 1


def test_lines_are_counted_where_the_path_of_the_cache_has_a_comma(tmp_path: Path, runtime: Path, compiler: str) -> None:
    shutil.copytree(runtime, tmp_path / "with, comma")
    files = {"main.c": "int main(void) { return 0; }\n"}
    tree = placed(tmp_path / "beside", tmp_path / "with, comma", files, [f"{compiler} -O2 main.c -o prog"])
    assert tree.uncounted == ()
    assert tree.run("./prog").of("return 0") == 1


@pytest.mark.parametrize(
    ("commands", "uncounted"),
    [(["$CC -O2 -nostdlib -static boot.c -o boot"], "boot.c"), (["$CC -O2 -c boot.c", "$CC -nostdlib -static boot.o -o boot"], "boot")],
)
def test_program_without_libc_costs_the_counts_of_no_other(make: Make, commands: Sequence[str], uncounted: str) -> None:
    files = {"boot.c": "void _start(void) { for (;;); }\n", "main.c": "int main(void) { return 0; }\n"}
    tree = make(files, [*commands, "$CC -O2 main.c -o prog"])
    ((file, reason),) = ((one.file, one.reason) for one in tree.uncounted)
    assert file == uncounted
    assert "does not " in reason
    assert tree.run("./prog").of("return 0") == 1


THREAD = "#include <pthread.h>\nint main(void) { pthread_t t; return pthread_create(&t, 0, 0, 0); }\n"


@pytest.mark.parametrize(
    ("source", "options", "threads"),
    [
        ("int main(void) { return 0; }", "-o prog", False),
        (THREAD, "-o prog", True),
        ("int main(void) { return 0; }", "-static -s -o prog", True),
        ("int f(void) { return 0; }", "-shared -fPIC -o libf.so", True),
        ('int main(void) { __asm__("nop"); return 0; }', "-fopenmp -o prog", False),
    ],
)
def test_threads_are_expected_where_they_can_be_started_or_nothing_is_known(
    tmp_path: Path, source: str, options: str, *, threads: bool
) -> None:
    (tmp_path / "a.c").write_text(source)
    subprocess.run(["gcc", *options.split(), "a.c"], cwd=tmp_path, check=True)
    assert has_threads(tmp_path) is threads


def test_workshop_builds_all_sides_with_counters(tmp_path: Path) -> None:
    """As a comparison does it: through the seam of languages, from git."""
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "sort.c").write_text(SORT)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "sort")
    root = runtimes.lent_to(tmp_path / "cache")
    with BuildCache(root) as cache:
        pair = resolve(find_repository(folder), ["HEAD"], snapshots=cache.root / "snapshots")
        environment = {name: value for name, value in os.environ.items() if name not in ("CC", "CXX", "CFLAGS")}
        config = BuildConfig("gcc -O2 sort.c -o sort", timeout_s=60)
        workshop = Workshop({Side.BASE: pair.base}, config, environment, cache, root, tmp_path, Packs(C()), Silent())
        built = workshop.placed(workshop.plain())[Side.BASE]
        assert workshop.placed(workshop.plain())[Side.BASE] == built
        reader = workshop.packs.places(built)
        (tmp_path / "run").mkdir()
        subprocess.run([built.folder / "sort", "10"], env=environment | reader.environment(tmp_path / "run"), check=True)
        counts = dict(zip(reader.places, reader.read(tmp_path / "run").tolist(), strict=True))
    assert {place.line: count for place, count in counts.items() if place.function == "swap"} == {3: 45, 4: 45, 5: 45, 6: 45, 7: 45}
    assert (built.uncounted, built.variant) == ((), Phase.PLACED)


OWN_OPTIONS = {
    "link-time optimisation": ["$CC -O2 -flto -c work.c", "$CC -O2 -flto -c main.c", "$CC -O2 -flto work.o main.o -o prog"],
    "precompiled header": ["$CC -O2 work.h", "$CC -O2 work.c main.c -o prog"],
    "errors for warnings": ["$CC -O2 -Wall -Wextra -Werror -pedantic -std=c11 work.c main.c -o prog"],
    "profile use": ["$CC -O2 -fprofile-use -Wno-missing-profile work.c main.c -o prog"],
    "own coverage": ["$CC -O2 --coverage work.c main.c -o prog"],
    "partial link": ["$CC -O2 -c work.c", "$CC -O2 -c main.c", "$CC -r -nostdlib work.o main.o -o all.o && $CC all.o -o prog"],
    "no standard libraries": ["$CC -O2 -shared -fPIC -nostdlib work.c -o libwork.so", "$CC main.c -L. -lwork -Wl,-rpath,$PWD -o prog"],
    "no default libraries": ["$CC -O2 -nodefaultlibs work.c main.c -lc -o prog"],
    "sanitizer": ["$CC -O1 -fsanitize=undefined work.c main.c -o prog"],
    "archive of removed objects": ["$CC -O2 -c work.c && ar rcs libwork.a work.o && rm work.o", "$CC main.c -L. -lwork -o prog"],
}


@pytest.mark.parametrize("commands", OWN_OPTIONS.values(), ids=OWN_OPTIONS.keys())
def test_options_of_the_project_stand_beside_counters(make: Make, commands: list[str]) -> None:
    main = '#include "work.h"\nint main(void) { work(7); return 0; }\n'
    tree = make({"work.h": "void work(long);\n", "work.c": f'#include "work.h"\n{WORK}', "main.c": main}, commands)
    counts = tree.run("./prog")
    assert (counts.status, counts.of(BODY), counts.of("work(7)"), tree.uncounted) == (0, 7, 1, ())
