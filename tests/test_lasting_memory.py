"""Memory that is still allocated as programs end: who asked for it, what head keeps more, and where nobody knows."""

from __future__ import annotations

import contextlib
import itertools
import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import findings as made
import runtimes
from counted_programs import Project, project
from perfdiff import pipeline, units
from perfdiff.analysis.lasting import LastingFinding
from perfdiff.analysis.peaks import MemoryFinding, MemoryStanding
from perfdiff.analysis.verdicts.lasting import lasting_finding
from perfdiff.collect.recordings.lasting import LastingRuns, SideCode
from perfdiff.languages.c import naming
from perfdiff.languages.c.pack import C
from perfdiff.languages.protocol import FunctionDefinition, Probe
from perfdiff.progress import Silent
from perfdiff.records import lasting_blocks, recording
from perfdiff.records.hot_lines import CodeAddress
from perfdiff.records.lasting import LastingMemory, LastingSite
from perfdiff.records.lasting_blocks import InterpretedLine, LastingBlocks
from perfdiff.records.recording_file import DamageError
from perfdiff.records.schema import Phase, Point, Run, Side
from perfdiff.report import html, json_report, lasting_memory, markdown, terminal
from perfdiff.report.document import build as document_of
from perfdiff.report.document import headline
from programs import first_two

Build = Callable[..., Project]

KEEPING = """
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>
struct node { node *next; char text[40]; };
node *first;
void *places[64];
static std::vector<long> numbers;
static void keep(int n) {PD_1
    for (int i = 0; i < n; i++) {
        node *made = (node *)malloc(sizeof *made);
        made->next = first;
        first = made;
    }
}
static void keep_many() {
    places[0] = calloc(3, 7);
    places[1] = realloc(malloc(5), 100);
    places[2] = new long[4];
    if (posix_memalign(&places[3], 64, 33)) abort();
    places[4] = strdup("twelve bytes");
    free(places[5] = malloc(1000));
    places[6] = realloc(malloc(11), 0);
    numbers.resize(10);
}
int main(int argc, char **argv) {PD_1
    keep(atoi(argv[1]));
    keep_many();
    std::unique_ptr<long> freed(new long(argc));
    const char *way = argc > 2 ? argv[2] : "";
    if (!strcmp(way, "_exit")) _exit(0);
    if (!strcmp(way, "quick")) quick_exit(0);
    if (!strcmp(way, "abort")) abort();
    if (!strcmp(way, "fork")) {
        pid_t child = fork();
        if (!child) { keep(2); exit(0); }
        int status;
        waitpid(child, &status, 0);
    }
    return 0;
}
"""


@pytest.fixture
def build(tmp_path: Path) -> Build:
    def built(command: str, **files: str) -> Project:
        return project(tmp_path, runtimes.library(), {name.replace("__", "."): text for name, text in files.items()}, command)

    return built


def summed(built: Project, path: Path) -> dict[tuple[str, int], tuple[int, int]] | None:
    """Return blocks and bytes by function and line of the project; None where they are not known."""
    blocks = recording.read(path).lasting
    if blocks is None:
        return None
    calls = naming.allocations(blocks, built.tree.resolve())
    sums: dict[tuple[str, int], tuple[int, int]] = {}
    for block, call in zip(blocks, calls, strict=True):
        if call is not None:
            before = sums.get((call.function, call.line), (0, 0))
            sums[call.function, call.line] = (before[0] + block.blocks, before[1] + block.bytes)
    return sums


@pytest.mark.integration
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_what_is_still_allocated_at_exit_is_summed_by_the_line_that_asked_for_it(compiler: str, build: Build) -> None:
    built = build(f"{compiler} $F -O2 -fno-inline-functions a.cc -o program", a__cc=KEEPING)
    (path,) = built.same("./program 5").recordings
    sums = summed(built, path)
    assert sums is not None
    by_line = {line: kept for (_, line), kept in sums.items()}
    assert by_line == {15: (5, 240), 21: (1, 21), 22: (1, 100), 23: (1, 32), 24: (1, 33), 25: (1, 13)}
    (path,) = built.same("./program 500").recordings
    assert sum(size for _, size in (summed(built, path) or {}).values()) == 500 * 48 + 199


@pytest.mark.integration
@pytest.mark.parametrize("way", ["_exit", "quick", "abort"])
def test_what_a_process_keeps_that_does_not_end_by_exit_is_not_known(way: str, build: Build) -> None:
    built = build("g++ $F -O2 a.cc -o program", a__cc=KEEPING)
    assert built.same(f"./program 5 {way}").recording.lasting is None


@pytest.mark.integration
def test_a_child_keeps_what_it_asked_for_itself(build: Build) -> None:
    built = build("g++ $F -O2 a.cc -o program", a__cc=KEEPING)
    blocks = [summed(built, path) or {} for path in built.same("./program 5 fork").recordings]
    assert sorted(sum(number for number, _ in sums.values()) for sums in blocks) == [2, 10]


@pytest.mark.integration
@pytest.mark.parametrize("options", ["-static", "-DOWN"])
def test_what_a_program_keeps_whose_allocations_are_not_seen_is_not_known(options: str, build: Build) -> None:
    own = '#ifdef OWN\nextern "C" void *malloc(size_t) { static char all[9999], *next = all; return next += 48; }\n#endif\n'
    source = KEEPING.replace("struct node", f"{own}struct node", 1) if "OWN" in options else KEEPING
    built = build(f"g++ $F -O2 {options} a.cc -o program", a__cc=source)
    outcome = built.counted("./program 0")
    assert [recording.read(path).lasting for path in outcome.recordings] == [None]


PATH = b"/a/program\0\0\0\0\0\0"
BLOCK = struct.pack("<II4Q", 7, 0, 5, 240, 0x1234, 10) + PATH


def test_a_block_of_lasting_memory_is_read() -> None:
    assert lasting_blocks.parse([(0, BLOCK)]) == (LastingBlocks(CodeAddress("/a/program", 0x1234), 7, 5, 240),)
    line = struct.pack("<II4Q", 0, 1, 5, 240, 33, 10) + b"/a/main.py"
    assert lasting_blocks.parse([(0, line)]) == (LastingBlocks(InterpretedLine("/a/main.py", 33), 0, 5, 240),)


@settings(max_examples=300)
@given(st.data())
def test_damaged_blocks_of_lasting_memory_are_errors_or_blocks(data: st.DataObject) -> None:
    block = bytearray(BLOCK)
    for _ in range(data.draw(st.integers(1, 6))):
        block[data.draw(st.integers(0, len(block) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(block)))
    with contextlib.suppress(DamageError):
        assert len(lasting_blocks.parse([(24, bytes(block[:end]))])) == 1


C_PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct item { long value; char text[88]; };
static struct item *ring[16], **cache, *last;
static long sum, filled, room;
static struct item *parse(long i) {
    struct item *item = malloc(sizeof *item);
    snprintf(item->text, sizeof item->text, "item %ld", i);
    item->value = i * 7 % 13;
    return item;
}
static void remember(struct item *item) {
    free(ring[item->value]);
    ring[item->value] = item;
}
static int check(long i) {
    char *text = strdup("some text");
    if (i % 2) {
        free(text);
        return 1;
    }
    free(text);
    return 0;
}
static void handle(long i) {
    struct item *item = parse(i);
    sum += item->value + check(i);
    free(item);
}
int main(int argc, char **argv) {
    for (long i = 0; i < atol(argv[1]); i++) handle(i);
    for (int i = 0; i < 16; i++) free(ring[i]);
    free(cache);
    return sum < argc;
}
"""
CC_PROGRAM = """
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>
struct node { std::shared_ptr<node> other; long values[10]; };
static long sum;
static std::vector<long *> pool;
static long *numbers(long n) {
    long *all = new long[8];
    all[n % 8] = n;
    return all;
}
static void pair(long n) {
    auto first = std::make_shared<node>();
    first->values[n % 10] = n;
    first->other = nullptr;
    sum += first->values[3];
}
static void handle(long n) {
    long *all = numbers(n);
    sum += all[3];
    delete[] all;
    pair(n);
}
int main(int argc, char **argv) {
    for (long i = 0; i < atol(argv[1]); i++) handle(i);
    for (long *all : pool) delete[] all;
    return sum < argc;
}
"""
REMEMBERS = ("    free(item);\n}", "    remember(item);\n}")
CACHES = """    if (filled == room) cache = realloc(cache, (room = room ? 2 * room : 64) * sizeof *cache);
    cache[filled++] = item;
}"""
FORGETS = ("    free(item);\n}", "}")
ELSEWHERE = [("parse(long", "read_in(long"), ("= parse(", "= read_in(")]
# What changes from base to head, the function and the start of the line that keeps more then, and bytes for each unit of n.
LEAKS = {
    "free is forgotten": (C_PROGRAM, [], [FORGETS], "parse", "struct item *item = malloc", 96),
    "one way out frees nothing": (C_PROGRAM, [], [("        free(text);\n", "")], "check", "char *text = strdup", 5),
    "a ring becomes a cache": (C_PROGRAM, [REMEMBERS], [(REMEMBERS[0], CACHES)], "parse", "struct item *item = malloc", 96),
    "what is replaced is not freed": (
        C_PROGRAM,
        [REMEMBERS],
        [REMEMBERS, ("    free(ring[item->value]);\n", "")],
        "parse",
        "struct item *item = malloc",
        96,
    ),
    "more is kept of each": (C_PROGRAM, [FORGETS], [FORGETS, ("text[88]", "text[120]")], "parse", "struct item *item = malloc", 32),
    "delete is forgotten": (CC_PROGRAM, [], [("    delete[] all;\n    pair", "    pair")], "numbers", "long *all = new long[8]", 64),
    "shared pointers in a ring": (CC_PROGRAM, [], [("= nullptr", "= first")], "pair", "auto first = std::make_shared", 112),
}
HARMLESS = {
    "the same leak": (C_PROGRAM, [FORGETS], [FORGETS, ("* 7 % 13", "* 5 % 13")]),
    "the same leak elsewhere": (C_PROGRAM, [FORGETS], [FORGETS, *ELSEWHERE]),
    "freed in another order": (C_PROGRAM, [], [(FORGETS[0], "    free(last);\n    last = item;\n}"), ("free(cache)", "free(last)")]),
    "more is allocated and freed": (C_PROGRAM, [], [(FORGETS[0], "    free(item);\n    free(malloc(4096));\n    free(parse(i));\n}")]),
    "kept until the end": (CC_PROGRAM, [], [("    delete[] all;\n    pair", "    pool.push_back(all);\n    pair")]),
}
SIZES = (500, 1000, 2000)
POINTS = [Point(place, "items", {"n": n}, f"./program {n}") for place, n in enumerate(SIZES)]


def changed(text: str, changes: Sequence[tuple[str, str]]) -> str:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def compared(folder: Path, base: str, head: str) -> LastingFinding:
    """Build both programs counted, run each twice at each size, and return what stays allocated."""
    command = "g++ $F -O2 a.cc -o program" if "#include <string>" in base else "gcc $F -O2 a.c -o program"
    runs: list[Run] = []
    collected, trees = LastingRuns(), {}
    for side, text in zip(Side, (base, head), strict=True):
        (folder / side).mkdir()
        built = project(folder / side, runtimes.library(), {command.split()[3]: text}, command)
        trees[side] = [tree.resolve() for tree in (built.tree, built.folder / "plain")]
        for point, repeated in itertools.product(POINTS, range(2)):
            run = Run(len(runs), Phase.COUNTED, point.id, side, repeated, 1e7, 1e7, 1e6, None, None, "")
            runs.append(run)
            collected.add(run, [built.counted(point.command).recording])
    finding = lasting_finding(POINTS, runs, collected.named(C(), {side: SideCode(*both, {}, {}) for side, both in trees.items()}))
    assert finding is not None
    return finding


@pytest.mark.integration
@pytest.mark.parametrize("case", LEAKS)
def test_what_head_keeps_more_is_told_with_its_line(case: str, tmp_path: Path) -> None:
    program, base, head, function, line, growth = LEAKS[case]
    finding = compared(tmp_path, changed(program, base), changed(program, head))
    assert finding.standing is MemoryStanding.MORE
    assert finding.utmost is not None
    assert finding.utmost.point == POINTS[-1]
    assert finding.utmost.low == finding.utmost.high == pytest.approx(growth * SIZES[-1], rel=0.01)
    keeper = next(iter(finding.keepers))
    assert (keeper.function, keeper.text.startswith(line)) == (function, True), keeper
    (over_n,) = finding.lines
    assert over_n.head[1] - over_n.base[1] == pytest.approx(growth, rel=0.1)
    assert f" → {units.size(over_n.head[1])} for each unit of n: `{function}` (a." in (lasting_memory.answer(finding) or "")
    back = compared(tmp_path / "base", changed(program, head), changed(program, base)) if case == "free is forgotten" else None
    assert back is None or (back.standing, back.keepers[0].head_bytes) == (MemoryStanding.LESS, 0)


@pytest.mark.integration
@pytest.mark.parametrize("case", HARMLESS)
def test_what_is_kept_alike_or_freed_again_is_nothing(case: str, tmp_path: Path) -> None:
    program, base, head = HARMLESS[case]
    finding = compared(tmp_path, changed(program, base), changed(program, head))
    assert finding.standing is MemoryStanding.NOT_MORE
    assert {point.high for point in finding.points} == {0}
    assert lasting_memory.answer(finding) is None


def judged(*sizes: tuple[Sequence[int], Sequence[int]]) -> LastingFinding | None:
    """Return what is found where runs of base and head, at each size, end with so many bytes."""
    memories, runs = [], []
    for point, both in zip(POINTS, sizes, strict=False):
        for side, ends in zip(Side, both, strict=True):
            for size in ends:
                memories.append(LastingMemory((len(runs),), (LastingSite("keep", "a.c", 7, "malloc", 1, size),) if size else ()))
                runs.append(Run(len(runs), Phase.COUNTED, point.id, side, 0, 1e7, 1e7, 1e6, None, None, ""))
    return lasting_finding(POINTS, runs, memories)


@pytest.mark.parametrize(
    ("sizes", "standing"),
    [
        ([([0, 0], [5000, 5000]), ([0, 0], [9000, 9000]), ([0, 0], [17000, 17000])], MemoryStanding.MORE),
        ([([5000, 5000], [0, 0]), ([9000, 9000], [0, 0]), ([17000, 17000], [0, 0])], MemoryStanding.LESS),
        ([([0, 0], [5000, 5000]), ([0, 0], [5000, 5000]), ([0, 0], [5000, 5000])], MemoryStanding.NOT_MORE),
        ([([0, 0], [70000, 70000]), ([0, 0], [70000, 70000]), ([0, 0], [70000, 70000])], MemoryStanding.MORE),
        ([([0, 90000], [70000, 200000]), ([0, 0], [0, 0]), ([0, 0], [0, 0])], MemoryStanding.OPEN),
        ([([0, 9000], [290000, 300000]), ([0, 0], [0, 0]), ([0, 0], [0, 0])], MemoryStanding.MORE),
    ],
    ids=["grows", "grew", "little", "much", "runs that overlap", "runs far apart"],
)
def test_more_stays_where_it_grows_or_is_much_whatever_runs_are_compared(
    sizes: list[tuple[list[int], list[int]]], standing: MemoryStanding
) -> None:
    finding = judged(*sizes)
    assert finding is not None
    assert finding.standing is standing


def test_a_point_with_one_known_run_of_a_side_is_not_known() -> None:
    finding = judged(([0, 0], [90000]), ([0, 0], [90000, 90000]))
    assert finding is not None
    assert finding.unknown == ("items n=500", "items n=2000")
    assert judged(([0], [90000])) is None


def test_reports_tell_what_stays_and_where_nobody_knows() -> None:
    finding = judged(([0, 0], [48000, 48000]), ([0, 0], [96000, 96000]), ([0, 0], [192000, 192000]))
    findings = replace(made.findings(), lasting=finding)
    sizes = "Stays allocated at the end: 0 B → 192 kB at items n=2000, 0 B → 96 B for each unit of n"
    says = f"{sizes}: `keep` (a.c, line 7: `malloc`) 192 kB more."
    document = document_of(findings)
    assert says in headline(findings)
    assert " ".join(terminal.render(document).split()).count(says) == 1
    assert f"linear. {says}" in headline(findings)
    assert sizes in markdown.render(document)
    assert sizes in html.render(document)
    assert json.loads(json_report.render(document))["lasting_memory"]["functions"][0]["head_bytes"] == 192000
    peak = MemoryFinding((), (), (), 0.1, decides=True, unknown=("items n=500",))
    unknown = "What stays allocated at the end is not known: counted runs of C and C++ tell it"
    assert unknown in " ".join(terminal.render(document_of(replace(findings, lasting=None, memory=peak))).split())
    assert "What stays" not in headline(replace(findings, lasting=None, memory=peak))


def test_what_a_library_asked_for_goes_by_the_function_that_was_open_and_what_the_linker_keeps_by_none(tmp_path: Path) -> None:
    opened = FunctionDefinition("read_in", "read_in", ("read_in",), "a.c", 1, 0, 1, 2, "", "", "")
    library, linker = CodeAddress(str(tmp_path / "libc.so.6"), 16), CodeAddress(str(tmp_path / "ld-linux-x86-64.so.2"), 16)
    blocks = (
        LastingBlocks(library, 1, 2, 240),
        LastingBlocks(linker, 1, 9, 2448),
        LastingBlocks(library, 0, 1, 4096),
        LastingBlocks(None, 1, 1, 8),
    )
    recordings = [replace(recording_of(tmp_path), lasting=blocks), replace(recording_of(tmp_path), lasting=())]
    run = Run(4, Phase.COUNTED, 0, Side.HEAD, 0, 1e7, 1e7, 1e6, None, None, "")
    collected = LastingRuns()
    collected.add(run, recordings)
    collected.add(replace(run, id=5), [*recordings, replace(recording_of(tmp_path), lasting=None)])
    (memory,) = collected.named(C(), {Side.HEAD: SideCode(tmp_path, tmp_path, {1: Probe(1, opened, (), ())}, {})})
    assert memory == LastingMemory((4,), (LastingSite("read_in", "a.c", None, "", 3, 248),))


def test_a_line_that_an_interpreter_tells_of_goes_by_the_innermost_function_around_it(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import json\nclass All:\n    def read(self):\n        self.all = [1]\n")
    texts = {
        "All": (2, "class All:\n    def read(self):\n        self.all = [1]"),
        "All.read": (3, "def read(self):\n        self.all = [1]"),
    }
    functions = [
        FunctionDefinition(name, name, (name,), "a.py", line, 0, 1, 2, text, "", "", language="python")
        for name, (line, text) in texts.items()
    ]
    blocks = tuple(LastingBlocks(InterpretedLine(str(tmp_path / "a.py"), line), 0, line, 100 * line) for line in (1, 4))
    collected = LastingRuns()
    collected.add(Run(1, Phase.COUNTED, 0, Side.HEAD, 0, 1e7, 1e7, 1e6, None, None, ""), [replace(recording_of(tmp_path), lasting=blocks)])
    (memory,) = collected.named(C(), {Side.HEAD: SideCode(tmp_path, tmp_path, {}, {"a.py": functions})})
    assert memory.sites == (
        LastingSite("All.read", "a.py", 4, "self.all = [1]", 4, 400),
        LastingSite("<module>", "a.py", 1, "import json", 1, 100),
    )


def recording_of(folder: Path) -> recording.Recording:
    """Return the recording of a process that was killed before it wrote anything."""
    (folder / "7-1.pdrec").touch()
    return recording.read(folder / "7-1.pdrec")


CACHED = """
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unordered_map>
struct table { std::unordered_map<long, std::string> texts; };
static table *all = new table;
static long text_of(long i) {
    auto &text = all->texts[i % 64];
    if (text.empty()) text = "a text that is longer than any short one " + std::to_string(i);
    return (long)text.size();
}
int main(int argc, char **argv) {
    long sum = 0;
    for (long i = 0; i < atol(argv[1]); i++) sum += text_of(i);
    printf("%d\\n", sum > 7);
    fflush(stdout);
    LEAVE(0);
}
"""
TOML = """build.command = "g++ -O2 -g main.cc -o main"
compare.memory = 0.1
[[workload]]
name = "texts"
command = "./main {n}"
parameters = { n = [1000, 4000, 10000] }
"""


@pytest.mark.integration
@pytest.mark.parametrize("leave", ["return", "_exit"])
def test_a_cache_without_bound_is_told_by_its_function_where_processes_end_by_exit(leave: str, tmp_path: Path) -> None:
    base = CACHED.replace("LEAVE", leave).replace("#include <string>", "#include <string>\n#include <unistd.h>")
    files = {"main.cc": base, "perfdiff.toml": TOML}
    outcome = pipeline.compare(first_two(tmp_path, (files, {"main.cc": base.replace("i % 64", "i")})), Silent())
    lasting = outcome.findings.lasting
    if leave == "_exit":
        assert lasting is None
        return
    assert lasting is not None
    assert lasting.standing is MemoryStanding.MORE
    keeper = lasting.keepers[0]
    assert (keeper.function.partition("(")[0], keeper.file) == ("text_of", "main.cc")
    (line,) = lasting.lines
    assert line.head[1] - line.base[1] > 80
    assert "Stays allocated at the end" in headline(outcome.findings)
