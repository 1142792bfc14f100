"""Memory that is still allocated as programs end: who asked for it, what head keeps more, and where nobody knows."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runtimes
from counted_programs import Project, project
from perfdiff.languages.c import naming
from perfdiff.records import lasting_blocks, recording
from perfdiff.records.hot_lines import Spot
from perfdiff.records.lasting_blocks import LastingBlocks
from perfdiff.records.recording_file import DamageError

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
    assert lasting_blocks.parse([(0, BLOCK)]) == (LastingBlocks(Spot("/a/program", 0x1234), 7, 5, 240),)


@settings(max_examples=300)
@given(st.data())
def test_damaged_blocks_of_lasting_memory_are_errors_or_blocks(data: st.DataObject) -> None:
    block = bytearray(BLOCK)
    for _ in range(data.draw(st.integers(1, 6))):
        block[data.draw(st.integers(0, len(block) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(block)))
    with contextlib.suppress(DamageError):
        assert len(lasting_blocks.parse([(24, bytes(block[:end]))])) == 1
