"""What calls of PHP functions do, counted without a clock: instructions, memory, and calls of what is not the project's, by name."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import php_lines
import php_programs
import runtimes
from perfdiff.languages.php import extension, places, start
from perfdiff.records.plan import Mode, ProbePlan
from probed_runs import Outcome

pytestmark = pytest.mark.integration

MAIN = """<?php
require __DIR__ . "/vendor/lib.php";
function inner($n) {
    $total = 0;
    for ($i = 0; $i < $n; $i++) {
        $total += $i;
    }
    return $total;
}
function outer($n) {
    for ($i = 0; $i < $n; $i++) {
        inner($i);
    }
    helper($n);
}
function helper($n) {
    $date = new DateTime("2020-01-01");
    for ($i = 0; $i < $n; $i++) {
        preg_match("/a/", "abc");
        $date->format("Y");
        Lib\\Texts::upper("abc");
    }
    try {
        new DateTime("no date");
    } catch (Exception $e) {
    }
}
foreach (array_slice($argv, 1) as $n) {
    outer((int) $n);
}
"""
LIB = """<?php
namespace Lib;
class Texts {
    static function upper($text) {
        return strtoupper(trim($text));
    }
}
"""
BOTH = {"main.php::inner": ["number $n"], "main.php::outer": ["number $n"]}


@cache
def module() -> Path:
    return extension.build_counting(php_programs.interpreter(), runtimes.library(), "gcc", runtimes.KEPT)


def counted(
    room: Path,
    main: str,
    *arguments: str,
    probed: Mapping[str, Sequence[str]] = BOTH,
    options: Sequence[str] = (),
    more: Mapping[str, str] | None = None,
) -> Outcome:
    """Run a program with probes in some functions, all calls of which are counted and kept. What lies in `vendor` is not the project's."""
    program = php_programs.program(room, {"main.php": main, "vendor/lib.php": LIB}, probed)
    host = places.PhpLineCounter(php_programs.interpreter().executable, php_lines.module(), os.environ)
    reader = places.places(program.tree, ["main.php"], host, room / "lines.sheet")
    ready = replace(program, module=module())
    entry = ProbePlan(Mode.SAMPLE, reservoir=1000, own=True)
    return ready.run(*options, "main.php", *arguments, mode=entry, more={start.LINES: str(reader.sheet), **(more or {})})


def test_each_call_has_its_own_instructions(tmp_path: Path) -> None:
    outcome = counted(tmp_path, MAIN, "10", "20")
    assert (outcome.status, outcome.errors) == (0, "")
    recording = outcome.only
    inner, outer = (recording.samples[number].counters["opcodes"].tolist() for number in (1, 2))
    per_step = inner[2] - inner[1]
    assert per_step >= 3, "a comparison, an addition and an increment"
    assert inner == [inner[0] + per_step * n for n in (*range(10), *range(20))]
    least, step = 10, outer[1] - outer[0]
    assert step % 10 == 0
    assert step / 10 >= least, "each element is a step of a loop of its own, and one of `helper`, which has no probe"
    assert [word for word, _ in outcome.notes] == ["version"]


def test_calls_that_leave_the_project_are_counted_at_their_caller(tmp_path: Path) -> None:
    library = counted(tmp_path, MAIN, "10", "20").only.library
    names = ("preg_match", "DateTime::format", "Lib\\Texts::upper")
    assert {name: library[2, name] for name in names} == dict.fromkeys(names, 30.0)
    assert library[2, "DateTime::__construct"] == 4.0
    assert not {name for caller, name in library if caller and name in ("strtoupper", "trim")}, "what these call is their own"


def test_two_runs_count_the_same(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    first, second = (counted(room, MAIN, "30", "7").only for room in (tmp_path, tmp_path / "again"))
    assert first.library == second.library
    for counter in ("opcodes", "objects"):
        assert first.totals.counters[counter].tolist() == second.totals.counters[counter].tolist()
        assert first.totals.counters[counter].sum() > 0


ALLOCATING = """<?php
class Kept { public $items; }
class Node { public $other; }
function inner($n) {
    $made = [];
    for ($i = 0; $i < $n; $i++) {
        $made[] = str_repeat("x", 1000 + $i);
    }
    return $made;
}
function outer($n) {
    $kept = new Kept;
    $kept->items = inner($n);
    return $kept;
}
function still($n) {
    $s = 0;
    for ($i = 0; $i < $n; $i++) {
        $s += $i % 3;
    }
    return $s;
}
function cyclic($n) {
    for ($i = 0; $i < $n; $i++) {
        $one = new Node;
        $one->other = $one;
    }
}
function collects() {
    return gc_collect_cycles();
}
outer(300);
outer(500);
still(1000);
$before = gc_status()["runs"];
cyclic(25000);
echo gc_status()["runs"] - $before;
cyclic(100);
collects();
"""
MEMORY = {f"main.php::{name}": [] for name in ("inner", "outer", "still", "cyclic", "collects")}


def test_each_call_has_the_memory_that_it_asks_for_itself(tmp_path: Path) -> None:
    samples = counted(tmp_path, ALLOCATING, probed=MEMORY).only.samples
    inner, outer, still = (samples[number].counters["objects"].tolist() for number in (1, 2, 3))
    # A string an element, and an array that doubles from 8 on.
    assert [n + 1 <= found <= n + 12 for n, found in zip((300, 500), inner, strict=True)] == [True, True]
    assert (samples[1].counters["object_bytes"] >= 1000 * samples[1].counters["objects"] * 0.9).all()
    assert outer == [1.0, 1.0], "what `inner` asks for is not its caller's"
    assert still == [0.0]


HOLDING = r"""<?php
function hold($n) {
    $all = [];
    for ($i = 0; $i < $n; $i++) {
        $all[] = str_repeat("x", 10000) . $i;
    }
    return count($all);
}
function stream($n) {
    for ($i = 0; $i < $n; $i++) {
        $one = str_repeat("x", 10000) . $i;
    }
    return $i;
}
function around($n) {
    $mine = str_repeat("y", 100000);
    hold($n);
    stream($n);
    hold(10);
    return strlen($mine);
}
function keep($n) {
    static $kept = [];
    $kept[] = str_repeat("z", $n);
}
function leaves($n) {
    $all = str_repeat("v", $n);
    throw new Exception("left");
}
around(100);
stream(100);
hold(50);
keep(200000);
keep(100000);
try { leaves(300000); } catch (Exception $e) { }
"""


def test_each_call_has_the_most_memory_that_is_in_use_at_once(tmp_path: Path) -> None:
    names = ("hold", "stream", "around", "keep", "leaves")
    samples = counted(tmp_path, HOLDING, probed={f"main.php::{name}": [] for name in names}).only.samples
    hold, stream, around, keep, leaves = (samples[number].counters["peak_bytes"] for number in range(1, 6))
    page = 4096  # the engine takes whole ones for what is larger than most of one
    string = 3 * page
    assert hold == pytest.approx([101 * string, 11 * string, 51 * string], rel=0.02), "what was given back is no later call's"
    assert (stream < 4 * string).all(), "what is not in use at once is no sum"
    assert around == pytest.approx([25 * page + 101 * string], rel=0.02), "its callees' peak, on top of its own"
    assert keep == pytest.approx([49 * page, 25 * page], rel=0.02), "above what was in use at a call's start"
    assert leaves == pytest.approx([74 * page], rel=0.02), "calls that an exception leaves have theirs"


def test_another_allocator_has_no_peak(tmp_path: Path) -> None:
    samples = counted(tmp_path, HOLDING, probed={"main.php::hold": []}, more={"USE_ZEND_ALLOC": "0"}).only.samples
    assert np.isnan(samples[1].counters["peak_bytes"]).all()
    assert (samples[1].counters["objects"] > 0).all()


def test_collections_of_garbage_are_counted_and_timed_where_they_happen(tmp_path: Path) -> None:
    outcome = counted(tmp_path, ALLOCATING, probed=MEMORY)
    samples = outcome.only.samples
    counters = {number: {name: found.tolist() for name, found in samples[number].counters.items()} for number in (3, 4, 5)}
    assert counters[4]["collections"] == [float(outcome.output), 0.0]
    assert counters[4]["collections"][0] >= 2
    assert counters[4]["collecting_ns"][0] > 0
    first, second = counters[4]["objects"]
    assert 25000 <= first <= 25010, "what a collection asks for is left out"
    assert second == 100.0
    assert counters[5]["collections"] == [1.0]
    assert counters[3]["collections"] == [0.0]


TIMED = """<?php
function named($n) {
    for ($i = 0; $i < $n; $i++) {
        usleep(2000);
        hash("sha256", str_repeat("x", 100000));
        array_map("twice", [1, 2]);
        try {
            new DateTimeZone("nowhere");
        } catch (Exception $e) {
        }
    }
}
function twice($x) {
    return 2 * $x;
}
named(40);
"""


def test_calls_that_leave_the_project_are_timed_where_no_code_of_it_runs_in_them(tmp_path: Path) -> None:
    found = counted(tmp_path, TIMED, probed={"main.php::named": []}).only
    took = {name: (timed, ns / timed) for (caller, name), (timed, ns) in found.library_ns.items() if caller == 1}
    # Calls that other processes may have interrupted, and of which that is not known, have no time.
    assert all(20 <= took[name][0] <= 40 for name in ("usleep", "hash", "DateTimeZone::__construct")), "one that throws has ended"
    assert took["usleep"][1] >= 2e6, "waiting is part of it"
    assert took["hash"][1] > 10_000
    assert found.library[1, "array_map"] == 40.0
    assert "array_map" not in took, "in its calls the project's own function runs"


def test_counting_sees_the_same_with_and_without_the_engines_cache_and_compiler(tmp_path: Path) -> None:
    rooms = [tmp_path / name for name in ("cached", "compiled")]
    for room in rooms:
        room.mkdir()
    cached = ("-d", "opcache.enable=1", "-d", "opcache.enable_cli=1", "-d", "opcache.optimization_level=0")
    compiled = (*cached, "-d", "opcache.jit_buffer_size=32M", "-d", "opcache.jit=tracing")
    found = [
        counted(room, MAIN, "10", "20", options=options).only
        for room, options in zip((tmp_path, *rooms), ((), cached, compiled), strict=True)
    ]
    first, *others = [recording.samples[1].counters["opcodes"].tolist() for recording in found]
    assert others[0] == others[1], "machine code of the engine's compiler counts nothing, so that there is none"
    assert len(first) == len(others[0])
    assert all(each.library[2, "preg_match"] == 30.0 for each in found)
