"""Outcomes of conditions in PHP functions: which conditions are planned, and that each call tells what really came out."""

from __future__ import annotations

import json
import signal
import subprocess
import urllib.request
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import php_programs
import php_servers
import probed_runs
from perfdiff.languages.php import index
from perfdiff.languages.php.branches import plan_branches
from perfdiff.languages.php.syntax import parse
from perfdiff.languages.protocol import BranchPlan, FunctionDefinition, Probe
from perfdiff.languages.syntax_trees import inner
from perfdiff.records.plan import Mode, ProbePlan
from php_programs import Program

MAIN = r"""<?php
function f($x) { return $x; }
class Box { public $held = 3; public $none; static function is(int $x): bool { return $x > 1; } }
function judged($n, $mode = null, $box = null, bool $strict = false) {
    $seen = [];
    if ($mode === null && !$strict) {
        $kind = 'plain';
    } elseif ($mode !== null || $n > 5) {
        $kind = 'given';
    } else {
        $kind = 'none';
    }
    while ($n > 0 && count($seen) < 40) {
        $seen[] = $n % 3 ? ($n % 2 == 0 ? 'a' : 'b') : 'c';
        if ($n == 4) { $n--; continue; }
        if (!($n != 7 and $n < 9) || f($n) === 2)
            $n -= 2;
        else
            $n--;
    }
    do { $n++; } while (!($n >= 3));
    for ($i = 0, $j = 5; $i < $j; $i++) { if ($i & 1) continue; if (isset($seen[$i], $seen[$i + 1]) && $seen[$i] == 'a') $j--; }
    for ($i = 0; f($i), $i < 3; $i++);
    for (;;) { if ($i++ > 5) break; }
    foreach ($seen as $key => $one):
        if ($key % 4): $kind .= $one; elseif ($one): $kind = $one; endif;
    endforeach;
    if ($box?->held) { $kind .= 'h'; }
    if (!$box?->none) { $kind .= 'n'; }
    if (!!$n) { $kind .= '!'; }
    if ((bool) $box) { $kind .= 'x'; }
    if ($strict == true) { $kind .= 's'; }
    if ($strict === false) { $kind .= 't'; }
    if (($found = strpos($kind, 'a')) !== false) { $kind .= 'f'; }
    if (
        $n > 1
        && (
            $mode
            || $box instanceof Box
        )
        && !empty($seen)
    ) {
        $kind .= 'm';
    }
    switch ($n) {
        case 1: $kind .= '1'; break;
        case f(3): if ($mode) { $kind .= '3'; } break;
        default: $kind .= $mode ?: 'd';
    }
    $say = match (true) { $n > 5 => 'large', $n > 2 && $mode => 'middle', default => 'small' };
    if ($say === 'small') { $kind .= '.'; }
    $late = function ($y) use ($n) { return $y > $n ? 1 : 2; };
    $more = $n && $mode || $strict;
    if ($more) { $kind .= $late(2); }
    if (Box::is($n) && Box::is(f($n) - 1)) { $kind .= 'b'; }
    if ($n ? $mode : $strict) { $kind .= 'q'; }
    if (!($mode ?? !$strict)) { $kind .= 'y'; }
    if (is_string($mode) xor $strict) { $kind .= 'z'; }
    $i = 0;
    do { if (!is_string($mode)) { $i++; } $i++; } while (!is_int($mode) && $i < 4);
    do { $i--; } while ($i > 0 and !isset($given) and !in_array($i, $seen, true) and !$box instanceof Box);
    do { $i++; } while (!is_null($mode) && !($box === null) && $i < 5 && $i !== 3);
    if (!$i) { if (!is_array($seen)) { return ''; } elseif (!isset($seen[0])) { $kind .= '0'; } }
    if (null === $mode): $kind .= 'N'; elseif ($mode === 'e' || 'long' === $mode): $kind .= 'E'; endif;
    for ($i = 0, $k = 9; $i < 3 && $k > 3; $i++, $k--) { if ($i === 1) break; }
    while (!($i > 3 || $k === 1) && !empty($seen)) { $i += $k % 2 ? 2 : 1; }
    while (list($key, $one) = [$n, $i] and $i++ < 7) { if ($one > 4): continue; else: $k++; endif; }
    try {
        if ($n > 100) { throw new Exception('x'); }
        return $kind;
    } finally {
        if ($n) { $n = 2; }
    }
}
function generated($n) {
    for ($i = 0; $i < $n; $i++) {
        if ($i == 2) { yield $i; }
        if ($i > 2) yield 1;
    }
}
function texts($value, $undefined = false) {
    if ($value) { return 1; }
    if ($value === '') { return 2; }
    if (!$value && $undefined) { return 3; }
    return 4;
}
if (!function_exists('late')) { function late($x) { return $x ? 1 : 0; } }
foreach ([[4], [3, 'e', null, true], [9, null, new Box], [30, 'long', new Box, true]] as $given) {
    judged(...$given);
}
judged(0, '', null, false);
judged(1, 'x', new Box, false);
foreach (generated(6) as $one) { }
foreach ([1, 0, '', 'a', '0', null, [], [1], 2.5, new Box] as $value) { texts($value); texts($value, $value); }
for ($i = 0; $i < 70; $i++) { if ($i % 7 == 1) late($i); }
"""
NAMES = ("judged", "generated", "texts", "late", "{main}")
CACHED = ("-d", "opcache.enable_cli=1", "-d", "opcache.enable=1", "-d", "opcache.file_update_protection=0")
COMPILED = (*CACHED, "-d", "opcache.jit_buffer_size=16M", "-d", "opcache.jit=tracing")


def definitions(folder: Path) -> dict[str, FunctionDefinition]:
    """Return the functions of the program in a folder, by their names in their file."""
    program = index.index(folder, depth=0, cache=folder.parent / "cache", packages=set())
    return {one.name.removeprefix("main.php::"): one for one in program.functions.values()}


def truth(tree: Path, plans: dict[tuple[str, int], BranchPlan]) -> dict[tuple[str, int], tuple[int, int]]:
    """Return how often each condition was asked and true, as the program counts it where its text says so."""
    text = (tree / "main.php").read_bytes()
    marks = [(plan.start, 1, b"told_('%s', %d, " % (name.encode(), place)) for (name, place), plan in plans.items()]
    marks += [(plan.end, 0, b")") for plan in plans.values()]
    for at, _, mark in sorted(marks, reverse=True):
        text = text[:at] + mark + text[at:]
    text += b"""
    function told_($name, $place, $value) { $GLOBALS['told_']["$name $place"][] = (bool) $value; return $value; }
    echo json_encode($GLOBALS['told_']);"""
    (tree.parent / "told.php").write_bytes(text)
    command = [php_programs.interpreter().executable, str(tree.parent / "told.php")]
    told = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)
    counts = {key: (len(values), sum(values)) for key, values in told.items()}
    return {(name, place): counts.get(f"{name} {place}", (0, 0)) for name, place in plans}


def watched(folder: Path, text: str, names: tuple[str, ...]) -> Program:
    """Return the program with all conditions of functions watched, and no features."""
    program = php_programs.program(folder, {"main.php": text}, {})
    found = definitions(program.tree)
    return replace(
        program,
        probes=tuple(Probe(number, found[name], (), tuple(range(len(found[name].branches)))) for number, name in enumerate(names, 1)),
    )


def outcomes(program: Program, *options: str) -> dict[tuple[str, int], tuple[int, int]]:
    """Return how often each condition was asked and true, as the calls of a run tell it, all of which were recorded."""
    for _ in range(probed_runs.ATTEMPTS):
        outcome = program.run(*options, "main.php", mode=ProbePlan(Mode.SAMPLE, reservoir=10000))
        assert (outcome.status, outcome.output, outcome.errors) == (0, "", "")
        if (outcome.only.totals.timed == outcome.only.totals.calls).all():
            break
    samples = outcome.only.samples
    sums: dict[tuple[str, int], tuple[int, int]] = {}
    for probe in program.probes:
        cells = samples[probe.id].cells.view("uint64").sum(axis=0).tolist()
        sums |= {
            (probe.definition.name.removeprefix("main.php::"), place): (cells[2 * place], cells[2 * place + 1]) for place in probe.branches
        }
    return sums


def plans_of(program: Program) -> dict[tuple[str, int], BranchPlan]:
    return {
        (probe.definition.name.removeprefix("main.php::"), place): plan
        for probe in program.probes
        for place, plan in enumerate(probe.definition.branches)
    }


def texts(code: str) -> list[str]:
    root = parse(f"<?php function f() {{ {code} }}".encode())
    return [plan.text for plan in plan_branches(next(node for node in inner(root) if node.type == "function_definition"))]


def test_conditions_are_planned_one_by_one() -> None:
    assert texts("if ($a && !($b || $c)) {} elseif ($d) {} while ($e) {} for (; $f; ) {} do {} while (!$g); return $h ? 1 : 2;") == [
        "$a", "$b", "$c", "$d", "$e", "$f", "$g", "$h",
    ]  # fmt: skip


def test_what_no_jump_tells_of_is_not_planned() -> None:
    assert texts("if (true) {} while (1) {} if ($a ? $b : $c) {} if ($d ?? 1) {} return $x && $y;") == ["$a"]
    assert texts("if ($e == false) {} if (!($f < 3)) {} if (isset($g, $h)) {}") == []
    assert texts("$f = function () { if ($inside) {} }; class A { function m() { if ($inside) {} } }") == []


@pytest.mark.parametrize("options", [(), CACHED], ids=["as compiled", "optimised"])
@pytest.mark.integration
def test_outcomes_are_what_the_program_itself_counts(tmp_path: Path, options: tuple[str, ...]) -> None:
    program = watched(tmp_path, MAIN, NAMES)
    plans = plans_of(program)
    expected, found = truth(program.tree, plans), outcomes(program, *options)
    unseen = {key for key, counts in found.items() if counts == (0, 0) and expected[key] != (0, 0)}
    wrong = {(key, plans[key].text): (found[key], counts) for key, counts in expected.items() if key not in unseen and found[key] != counts}
    assert not wrong
    if not options:  # nothing is left out but what a `match` stands beside
        assert len(unseen) <= 8, {plans[key].text for key in unseen}
    assert len(found) - len(unseen) >= 0.75 * len(plans)
    assert Counter(name for name, _ in found.keys() - unseen).keys() == set(NAMES)


@pytest.mark.integration
def test_nothing_is_watched_where_the_engine_makes_machine_code(tmp_path: Path) -> None:
    assert set(outcomes(watched(tmp_path, MAIN, NAMES), *COMPILED).values()) == {(0, 0)}


KEPT = """<?php
function odd($n) {
    return $n % 2 ? 'odd' : 'even';
}
for ($i = 0; $i < 5; $i++) {
    echo odd($i), " ";
}
"""


@pytest.mark.integration
def test_code_that_is_kept_between_requests_tells_outcomes_in_each(tmp_path: Path) -> None:
    program = watched(tmp_path, KEPT, ("odd", "{main}"))
    out, variables = program.prepare(ProbePlan(Mode.SAMPLE, reservoir=10000))
    port = php_servers.free_port()
    command = [php_programs.interpreter().executable, *CACHED, "-S", f"127.0.0.1:{port}", "-t", program.tree]
    with php_servers.started(command, port, program.folder, variables) as server:
        for _ in range(3):
            assert urllib.request.urlopen(f"http://127.0.0.1:{port}/main.php", timeout=10).read() == b"even odd even odd even "
        server.send_signal(signal.SIGINT)
        server.wait(timeout=10)
    samples = probed_runs.outcome(out, 0).only.samples
    assert samples[1].cells.view("uint64").tolist() == 3 * [[1, 0], [1, 1], [1, 0], [1, 1], [1, 0]]
    assert samples[2].cells.view("uint64").tolist() == 3 * [[6, 5]]
