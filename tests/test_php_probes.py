"""Probes of PHP functions in a real PHP: what small programs record, and that they do what they would do without probes."""

from __future__ import annotations

import getpass
import os
import signal
import subprocess
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

import php_programs
import php_servers
import probed_runs
import runtimes
from perfdiff.errors import BuildError
from perfdiff.languages import interpreter_parts
from perfdiff.languages.php import extension, interpreters
from perfdiff.records.plan import Mode, ProbePlan
from php_programs import Program
from probed_runs import calls, edges

pytestmark = pytest.mark.integration

Make = Callable[..., Program]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Make programs: functions by their names, of `main.php` where no file is named."""

    def made(files: str | Mapping[str, str], functions: Mapping[str, Sequence[str]]) -> Program:
        named = {"main.php": files} if isinstance(files, str) else files
        probed = {key if ".php::" in key else f"main.php::{key}": features for key, features in functions.items()}
        return php_programs.program(tmp_path, named, probed)

    return made


NESTED = """<?php
function leaf($values, $n) {
    usleep(2000);
    return count($values) + $n;
}
function middle($count) {
    for ($i = 0; $i < $count; $i++) {
        leaf(array_fill(0, $i, 0), $i / 2);
    }
}
function unprobed() {
    middle(3);
    middle(2);
}
unprobed();
echo "done";
"""


def test_calls_times_features_and_callers_are_recorded(make: Make) -> None:
    program = make(NESTED, {"leaf": ["length $values", "number $n"], "middle": ["number $count"]})
    outcome = program.run_undisturbed()
    assert (outcome.status, outcome.output, outcome.errors) == (0, "done", "")
    record = outcome.only
    assert record.complete
    assert calls(record) == {1: 5.0, 2: 2.0}
    assert edges(record) == {(0, 2): 2.0, (2, 1): 5.0}
    assert sorted(program.values(record, "leaf")) == [(0.0, 0.0), (0.0, 0.0), (1.0, 0.5), (1.0, 0.5), (2.0, 1.0)]
    assert program.values(record, "middle") == [(3.0,), (2.0,)]
    assert record.totals.wall_ns[0] > 10e6  # of sleep
    assert record.totals.self_ns[1] < 5e6 < record.totals.wall_ns[1]


def test_calls_are_counted_where_only_counting_is_asked_for(make: Make) -> None:
    record = make(NESTED, {"leaf": [], "middle": []}).run(mode=ProbePlan(Mode.COUNT)).only
    assert calls(record) == {1: 5.0, 2: 2.0}
    assert not record.samples


KINDS = """<?php
namespace App;
require __DIR__ . "/more.php";
trait Shared {
    function hello($n) {
        return str_repeat("x", $n);
    }
    static function made(array $x) {
        return new static;
    }
}
abstract class Base {
    public $items = [1, 2];
    private $hidden = "abc";
    function inherited($k) {
        return count($this->items) + $k + strlen($this->hidden);
    }
}
class Child extends Base {
    use Shared { hello as protected greet; }
    private $hidden = "longer than that";
    function __destruct() {
        $x = 1;
    }
    function go($n) {
        return $this->greet($n) . $this->hello($n + 1);
    }
}
function gen($n) {
    for ($i = 0; $i < $n; $i++) {
        yield $i;
    }
}
function thrower($x) {
    throw new \\RuntimeException("no");
}
function catcher($x) {
    try {
        thrower($x);
    } catch (\\Exception $e) {
    }
    rec(0);
}
function rec($n) {
    return $n ? 1 + rec($n - 1) : 0;
}
$double = function ($a) {
    return $a * 2;
};
foreach (gen(3) as $v) {
}
catcher(1);
rec(5);
array_map($double, [1, 2, 3]);
$c = new Child;
$c->go(3);
$c->inherited(4);
unset($c);
Child::made([1]);
new Late;
echo "ok";
"""
MORE = """<?php
spl_autoload_register(function ($name) {
    require __DIR__ . "/late.php";
});
"""
LATE = "<?php\nnamespace App;\nclass Late {\n    function __construct() {\n        usleep(1);\n    }\n}\n$ready = 1;\n"


def test_functions_of_all_kinds_are_recorded(make: Make) -> None:
    features = {
        "App\\Shared::hello": ["number $n"],
        "App\\Shared::made": ["length $x"],
        "App\\Base::inherited": ["number $k", "length $this->items", "length $this->hidden", "type $this"],
        "App\\Child::__destruct": [],
        "App\\gen": ["number $n"],
        "App\\thrower": ["number $x"],
        "App\\catcher": [],
        "App\\rec": ["number $n"],
        "App\\{closure}@46": ["number $a"],
        "{main}": [],
        "late.php::{main}": [],
        "late.php::App\\Late::__construct": [],
    }
    program = make({"main.php": KINDS, "more.php": MORE, "late.php": LATE}, features)
    outcome = program.run_undisturbed()
    assert (outcome.status, outcome.output, outcome.errors, outcome.notes[1:]) == (0, "ok", "", ())
    record = outcome.only
    numbers = {each.definition.name: each.id for each in program.probes if each.definition.file == "main.php"}
    counted = {name: calls(record)[number] for name, number in numbers.items()}
    assert counted == {
        "App\\Shared::hello": 2.0,
        "App\\Shared::made": 1.0,
        "App\\Base::inherited": 1.0,
        "App\\Child::__destruct": 2.0,
        "App\\gen": 4.0,  # one a resumption
        "App\\thrower": 1.0,
        "App\\catcher": 1.0,
        "App\\rec": 7.0,
        "App\\{closure}@46": 3.0,
        "{main}": 1.0,
    }
    assert program.values(record, "App\\Shared::hello") == [(3.0,), (4.0,)], "under its trait's name, by whatever name it is called"
    # An ancestor's private property in its own code, not the one of the same name below.
    assert program.values(record, "App\\Base::inherited") == [(4.0, 2.0, 3.0, "App\\Child")]
    assert program.values(record, "App\\rec") == [(0.0,), (5.0,), (4.0,), (3.0,), (2.0,), (1.0,), (0.0,)]
    main, catcher = numbers["{main}"], numbers["App\\catcher"]
    assert edges(record)[catcher, numbers["App\\thrower"]] == 1.0
    assert edges(record)[catcher, numbers["App\\rec"]] == 1.0, "what was left by an exception has ended"
    assert edges(record)[main, numbers["App\\rec"]] == 1.0
    assert edges(record)[main, 11] == edges(record)[main, 12] == 1.0, "a file that is loaded late, and what is in it"
    assert record.totals.unfinished.sum() == 0


ENDING = """<?php
function inner() {
    ENDS;
}
function outer() {
    inner();
}
function late() {
    usleep(1000);
}
register_shutdown_function('late');
outer();
"""


@pytest.mark.parametrize(
    ("ends", "status", "unfinished"),
    [
        ("exit(3)", 3, 0.0),
        ("undefined_function()", 255, 0.0),
        ("throw new Exception", 255, 0.0),
        ("trigger_error('x', E_USER_ERROR)", 255, 1.0),
        ("ini_set('memory_limit', '4M') . str_repeat('x', 1 << 30)", 255, 1.0),
        ("set_time_limit(1) . (function () { while (true); })()", 255, 1.0),
    ],
)
def test_calls_that_end_with_the_script_are_told_from_those_that_are_left(make: Make, ends: str, status: int, unfinished: float) -> None:
    program = make(ENDING.replace("ENDS", ends), {"inner": [], "outer": [], "late": [], "{main}": []})
    outcome = program.run("-d", "display_errors=0", "-d", "log_errors=0", "main.php")
    record = outcome.only
    assert outcome.status == status
    assert record.complete
    assert calls(record) == dict.fromkeys((1, 2, 3, 4), 1.0)
    assert record.totals.unfinished.tolist() == [unfinished, unfinished, 0.0, unfinished]
    assert edges(record)[0, 3] == 1.0, "what runs at shutdown is called by nobody"


def test_script_that_is_killed_keeps_what_it_has_recorded(make: Make) -> None:
    outcome = make(ENDING.replace("ENDS", "posix_kill(posix_getpid(), SIGKILL)"), {"inner": [], "outer": []}).run()
    assert outcome.status == -9
    assert calls(outcome.only) == {1: 1.0, 2: 1.0}
    assert not outcome.only.complete


def test_child_of_a_fork_has_a_recording_of_its_own(make: Make) -> None:
    program = make(
        """<?php
function work($n) {
    return str_repeat("x", $n);
}
function parents($n) {
    $child = pcntl_fork();
    if (!$child) {
        work(1);
        work(2);
        exit(0);
    }
    work(3);
    pcntl_waitpid($child, $status);
    return $status;
}
work(5);
echo parents(1);
""",
        {"work": ["number $n"], "parents": []},
    )
    outcome = program.run()
    assert (outcome.status, outcome.output) == (0, "0")
    parent, child = sorted(outcome.recordings, key=lambda one: -len(calls(one)))
    assert sorted(program.values(parent, "work")) == [(3.0,), (5.0,)]
    assert program.values(child, "work") == [(1.0,), (2.0,)]
    assert edges(child) == {(0, 1): 2.0}, "the parent's call is not the child's"


FIBERS = """<?php
function leaf($n) {
    return $n;
}
function step($n) {
    leaf($n);
    $got = Fiber::suspend($n);
    leaf($n);
    return $got;
}
function body($n) {
    return step($n) . step($n + 1);
}
function main() {
    $one = new Fiber('body');
    $two = new Fiber('body');
    $one->start(1);
    $two->start(10);
    $one->resume("a");
    $two->resume("b");
    $one->resume("c");
    $two->resume("d");
    $left = new Fiber('body');
    $left->start(7);
    unset($left);
    echo $one->getReturn(), $two->getReturn();
}
main();
"""


def test_calls_in_fibers_are_parts_between_suspensions(make: Make) -> None:
    program = make(FIBERS, {"leaf": [], "step": ["number $n"], "body": ["number $n"], "main": []})
    outcome = program.run()
    record = outcome.only
    assert (outcome.status, outcome.output) == (0, "acbd")
    assert calls(record) == {1: 9.0, 2: 10.0, 3: 8.0, 4: 1.0}
    assert edges(record) == {(0, 4): 1.0, (4, 3): 8.0, (3, 2): 10.0, (2, 1): 9.0}
    assert program.values(record, "step") == [(n,) for n in (1.0, 10.0, 1.0, 2.0, 10.0, 11.0, 2.0, 11.0, 7.0, 7.0)]
    assert record.totals.unfinished.sum() == 0


COLLECTING = """<?php
class Node {
    public $other;
    function __destruct() {
        destroyed();
    }
}
function destroyed() {
    usleep(100);
}
function collects($n) {
    for ($i = 0; $i < $n; $i++) {
        $one = new Node;
        $one->other = $one;
    }
    unset($one);
    return gc_collect_cycles();
}
echo collects(100);
"""


def test_code_that_a_collection_of_garbage_runs_is_its_callers(make: Make) -> None:
    outcome = make(COLLECTING, {"destroyed": [], "collects": []}).run_undisturbed()
    record = outcome.only
    assert (outcome.status, outcome.output) == (0, "100")
    assert edges(record) == {(0, 2): 1.0, (2, 1): 100.0}
    destroyed, collects = record.totals.wall_ns.tolist()
    assert destroyed >= 100 * 100e3
    assert collects >= 0.95 * destroyed
    assert record.totals.self_ns[1] >= 0


HOT = """<?php
function leaf($n) {
    $s = 0;
    for ($i = 0; $i < $n; $i++) {
        $s += $i;
    }
    return $s;
}
function outer($n) {
    $t = 0;
    for ($j = 0; $j < $n; $j++) {
        $t += leaf($j);
    }
    return $t;
}
for ($k = 0; $k < 200; $k++) {
    outer(100);
}
echo outer(10);
"""
CACHED = ("-d", "opcache.enable=1", "-d", "opcache.enable_cli=1")
COMPILED = (*CACHED, "-d", "opcache.jit_buffer_size=32M", "-d")


@pytest.mark.parametrize(
    "options",
    [
        CACHED,
        (*CACHED, "-d", "opcache.file_cache=cache"),
        (*CACHED, "-d", "opcache.preload=main.php", "-d", "opcache.preload_user=root"),
        (*COMPILED, "opcache.jit=tracing"),
        (*COMPILED, "opcache.jit=function"),
    ],
    ids=lambda options: options[-1],
)
def test_engines_cache_and_compiler_change_no_count(make: Make, options: tuple[str, ...]) -> None:
    program = make(HOT, {"leaf": ["number $n"], "outer": ["number $n"]})
    (program.tree / "cache").mkdir()
    if "opcache.preload=main.php" in options:
        (program.tree / "empty.php").write_text("<?php outer(10);")
        found = [calls(each) for each in program.run(*options, "empty.php").recordings]
        assert [sum(each.get(number, 0.0) for each in found) for number in (1, 2)] == [20020.0, 202.0]
        return
    for _ in range(2):
        outcome = program.run(*options, "main.php")
        assert (outcome.status, outcome.output) == (0, "120")
        assert calls(outcome.only) == {1: 20010.0, 2: 201.0}


SITES = """<?php
namespace App {
    class Base {
        function __construct($n = 0) {
        }
        function run($n) {
            return $n;
        }
        static function make($n) {
            return new static;
        }
        function other($n) {
            return $n;
        }
    }
    class Sub extends Base {
        function __construct() {
            parent::__construct(1);
        }
        function run($n) {
            return parent::run($n) + self::plain(1);
        }
        static function plain($n) {
            return $n;
        }
    }
    class Magic {
        function __call($name, $arguments) {
            return $name;
        }
    }
    function helper($n) {
        return $n;
    }
    function both($n) {
        return helper(strlen(\\Globals(helper($n)))) + \\abs(HELPER(2));
    }
}
namespace {
    use function App\\helper as renamed;
    function globals($n) {
        return (string) $n;
    }
    \\App\\both(1);
    globals(renamed(1));
    $name = 'globals';
    $name(1);
    call_user_func('globals', 1);
    call_user_func_array('App\\helper', [1]);
    array_map('App\\helper', [1, 2]);
    $first = renamed(...);
    $first(1);
    $base = new App\\Base(globals(1));
    $sub = App\\Sub::make(1);
    $sub->run(1);
    $sub->RUN($base->run(1));
    $method = 'run';
    $base->$method(1);
    [$base, 'run'](1);
    $base->other(1);
    (new App\\Magic)->anything(1);
    echo "ok";
}
"""


@pytest.mark.parametrize("options", [(), CACHED], ids=["", "cached"])
def test_calls_are_recorded_however_they_are_written(make: Make, options: tuple[str, ...]) -> None:
    names = ("App\\helper", "globals", "App\\Base::run", "App\\Base::__construct", "App\\Sub::run", "App\\Magic::__call", "App\\both")
    outcome = make(SITES, {name: ["number $n"] for name in names}).run(*options, "main.php")
    assert (outcome.status, outcome.output, outcome.errors) == (0, "ok", "")
    assert dict(zip(names, calls(outcome.only).values(), strict=True)) == {
        "App\\helper": 8.0,
        "globals": 5.0,
        "App\\Base::run": 5.0,
        "App\\Base::__construct": 2.0,
        "App\\Sub::run": 2.0,
        "App\\Magic::__call": 1.0,
        "App\\both": 1.0,
    }
    assert outcome.only.totals.unfinished.sum() == 0


VALUES = """<?php
class Sized implements Countable {
    function count(): int {
        throw new Error("code of the target's ran");
    }
    function __get($name) {
        throw new Error("code of the target's ran");
    }
}
class Lying extends ArrayObject {
    function count(): int {
        throw new Error("code of the target's ran");
    }
}
class Plain extends ArrayObject {
}
enum Suit: string {
    case Hearts = 'h';
    case Spades = 's';
}
function read($x) {
}
$array = [1, 2, 3];
$reference = &$array;
$store = new SplObjectStorage;
$store[new Plain] = $store[$kept = new Plain] = 1;
$store[$kept] = 2;
$list = new SplDoublyLinkedList;
$list->push(1);
$heap = new SplMinHeap;
$heap->insert(1);
$map = new WeakMap;
$map[$kept] = 1;
file_put_contents("file", "12345");
foreach ([
    7, -2, true, 2.5, "12", "1e2", "12abc", "häuser", null, [1, [2]], ["a" => "bc", "d" => [1, 2, 3]], new Sized, new Lying([1]),
    new Plain([1, 2]), new ArrayObject([1, 2, 3]), new SplFixedArray(4), $store, $list, $heap, $map, Suit::Hearts, fn() => 1, new class {
    }, "file", "a/b/c", "nul\\0byte", [new Sized], fopen(__FILE__, "r"), $reference, array_fill(0, 1000, "x"), "1e999",
] as $x) {
    read($x);
}
echo "ok";
"""
READ = (  # number, length, nested, type, size of a file, depth of a path, case of an enumeration
    (7.0, None, None, "int", None, None, None),
    (-2.0, None, None, "int", None, None, None),
    (1.0, None, None, "bool", None, None, None),
    (2.5, None, None, "float", None, None, None),
    (12.0, 2.0, None, "string", None, 1.0, None),
    (100.0, 3.0, None, "string", None, 1.0, None),
    (None, 5.0, None, "string", None, 1.0, None),
    (None, 7.0, None, "string", None, 1.0, None),
    (None, None, None, "null", None, None, None),
    (None, 2.0, None, "array", None, None, None),
    (None, 2.0, 5.0, "array", None, None, None),
    (None, None, None, "Sized", None, None, None),
    (None, None, None, "Lying", None, None, None),
    (None, 2.0, None, "Plain", None, None, None),
    (None, 3.0, None, "ArrayObject", None, None, None),
    (None, 4.0, None, "SplFixedArray", None, None, None),
    (None, 2.0, None, "SplObjectStorage", None, None, None),
    (None, 1.0, None, "SplDoublyLinkedList", None, None, None),
    (None, 1.0, None, "SplMinHeap", None, None, None),
    (None, 1.0, None, "WeakMap", None, None, None),
    (None, None, None, "Suit", None, None, "Hearts"),
    (None, None, None, "Closure", None, None, None),
    (None, None, None, "class@anonymous", None, None, None),
    (None, 4.0, None, "string", 5.0, 1.0, None),
    (None, 5.0, None, "string", None, 3.0, None),
    (None, 8.0, None, "string", None, None, None),
    (None, 1.0, None, "array", None, None, None),
    (None, None, None, "resource", None, None, None),
    (None, 3.0, None, "array", None, None, None),
    (None, 1000.0, None, "array", None, None, None),  # its elements are too many to be added up
    (None, 5.0, None, "string", None, 1.0, None),  # larger than any number
)


def test_values_are_read_and_no_code_of_the_targets_runs(make: Make) -> None:
    program = make(VALUES, {"read": [f"{how} $x" for how in ("number", "length", "nested", "type", "file", "depth", "enum")]})
    outcome = program.run_undisturbed()
    assert (outcome.status, outcome.output, outcome.errors) == (0, "ok", "")
    assert program.values(outcome.only, "read") == list(READ)


PATHS = """<?php
class Node {
    public $next;
    public array $kids = [];
    private $secret = [1, 2];
    public int $typed;
    public $gone = [1];
    public static $cache = [1];
    protected static $grown = ["a" => 5];
    function walk() {
        return 1;
    }
    function grow() {
        self::$cache[] = 1;
        static::$grown["a"]++;
    }
}
class Sub extends Node {
    public static $own = "xx";
    private $secret = "longer";
    function __get($name) {
        throw new Error("code of the target's ran");
    }
}
function defaults($a, $b = 5, $c = [1, 2], $d = Node::class, ...$rest) {
    static $memo = [];
    $memo[] = 1;
}
function referenced(array &$x, ?Node $n) {
    $x[] = 1;
}
function outside() {
    return $_SERVER['argc'];
}
$node = new Node;
$node->next = new Sub;
$node->next->kids = ["a" => [1, 2], 5 => "five"];
@$node->dynamic = "dynamic";
unset($node->next->gone);
$node->walk();
$node->next->walk();
$node->grow();
(new Sub)->grow();
$node->grow();
defaults(1);
defaults(1, 2);
defaults(1, 2, [], "x", 7, 8, 9);
defaults(c: [1], a: 1);
$array = [1];
referenced($array, null);
referenced($array, $node);
$bound = "captured";
$closure = function ($q) use ($bound, &$array) {
    return $q;
};
$closure(1);
$conf = ['depth' => 3];
outside();
echo "ok";
"""


def test_paths_to_values_are_followed(make: Make) -> None:
    features = {
        "Node::walk": [
            *("length $this->kids", "length $this->kids[a]", "length $this->kids[5]", "length $this->next->kids", "type $this->next"),
            *("length $this->dynamic", "number $this->typed", "length $this->secret", "length $this->gone", "length $this->none"),
        ],
        "Node::grow": ["length Node::$cache", "number static::$grown[a]", "length static::$own", "length self::$cache", "length No::$x"],
        "defaults": ["number $a", "number $b", "length $c", "length $d", "length $rest", "length $memo", "number $none"],
        "referenced": ["length $x", "length $n->next->kids", "type $n"],
        "{closure}@53": ["number $q", "length $bound", "length $array"],
        "outside": [
            "number $GLOBALS[conf][depth]",
            "length $_SERVER[argv]",
            "number $_SERVER[argc]",
            "length $_POST",
            "length $_SERVER[none]",
        ],
        "{main}": ["number $x", "nonsense $x", "number $a[", "number $a->b->c->d->e->f", "length", "number Node::$"],
    }
    program = make(PATHS, features)
    outcome = program.run_undisturbed("main.php", "argument")
    record = outcome.only
    assert (outcome.status, outcome.output) == (0, "ok"), outcome.errors
    assert program.values(record, "Node::walk") == [
        (0.0, None, None, 2.0, "Sub", 7.0, None, 2.0, 1.0, None),
        (2.0, 2.0, 4.0, None, "null", None, None, 2.0, None, None),
    ]
    assert program.values(record, "Node::grow") == [
        (1.0, 5.0, None, 1.0, None),
        (2.0, 6.0, 2.0, 2.0, None),
        (3.0, 7.0, None, 3.0, None),
    ]
    assert program.values(record, "defaults") == [
        (1.0, 5.0, 2.0, 4.0, 0.0, 0.0, None),
        (1.0, 2.0, 2.0, 4.0, 0.0, 1.0, None),
        (1.0, 2.0, 0.0, 1.0, 3.0, 2.0, None),
        (1.0, 5.0, 1.0, 4.0, 0.0, 3.0, None),
    ]
    assert program.values(record, "referenced") == [(1.0, None, "null"), (2.0, 2.0, "Node")]
    assert program.values(record, "{closure}@53") == [(1.0, 8.0, 3.0)]
    assert program.values(record, "outside") == [(3.0, 2.0, 2.0, 0.0, None)]
    assert program.values(record, "{main}") == [(None,) * 6]


SERVED = """<?php
class Page {
    function handle($name) {
        usleep(1000);
        return strlen($name) . $_SERVER['REQUEST_METHOD'];
    }
}
function fails() {
    trigger_error("fails", E_USER_ERROR);
}
echo getmypid(), " ", (new Page)->handle($_GET["name"] ?? "");
if (isset($_GET["fails"])) {
    fails();
}
"""
PAGE = {"Page::handle": ["length $name", "number $_SERVER[CONTENT_LENGTH]", "length $_POST", "type $this"], "fails": [], "{main}": []}


@pytest.mark.parametrize("ends", [signal.SIGTERM, signal.SIGQUIT, signal.SIGKILL], ids=lambda ends: ends.name)
def test_requests_to_php_fpm_are_recorded_however_its_workers_end(make: Make, ends: signal.Signals) -> None:
    program = make(SERVED, PAGE)
    out, variables = program.prepare()
    with php_servers.fpm(program, variables, workers=2) as server:
        answers = [php_servers.ask(program, f"name={'x' * n}") for n in range(4)]
        answers.append(php_servers.ask(program, "fails=1"))
        answers.append(php_servers.ask(program, "name=post", b"a=1&b=2&c=3"))
        workers = {int(answer.split()[0]) for answer in answers}
        for worker in workers:
            os.kill(worker, ends)
        server.send_signal(ends)
        server.wait()
    found = [each for each in probed_runs.outcome(out, 0).recordings if each.totals.calls.any()]
    assert {each.pid for each in found} == workers
    assert all(each.complete for each in found), "between requests nothing is lost"
    assert sum(calls(each)[1] for each in found) == 6.0
    assert sum(each.totals.unfinished.sum() for each in found) == 2.0, "of a request that failed, those that were open"
    values = sorted((row for each in found for row in program.values(each, "Page::handle")), key=repr)
    assert values == [(0.0, 0.0, 0.0, "Page"), (0.0, 0.0, 0.0, "Page"), *((float(n), 0.0, 0.0, "Page") for n in (1, 2, 3)),
                      (4.0, 11.0, 3.0, "Page")]  # fmt: skip


def test_requests_to_the_server_for_development_are_recorded(make: Make) -> None:
    program = make(SERVED, PAGE)
    out, variables = program.prepare()
    port = php_servers.free_port()
    command = [php_programs.interpreter().executable, "-S", f"127.0.0.1:{port}", "-t", program.tree]
    with php_servers.started(command, port, program.folder, variables) as server:
        for n in range(3):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/main.php?name={'x' * n}", timeout=20) as answer:
                assert answer.read().decode().endswith(f" {n}GET")
        server.send_signal(signal.SIGINT)
        server.wait()
    record = probed_runs.outcome(out, 0).only
    assert record.complete
    assert calls(record) == {1: 3.0, 3: 3.0}
    assert [row[0] for row in program.values(record, "Page::handle")] == [0.0, 1.0, 2.0]


def test_requests_to_apaches_module_are_recorded(make: Make) -> None:
    program = make(SERVED, PAGE)
    out, variables = program.prepare()
    port = php_servers.free_port()
    with php_servers.apache(program, variables, port):
        for n in range(3):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/main.php?name={'x' * n}", timeout=20) as answer:
                assert answer.read().decode().endswith(f" {n}GET")
    (served,) = [each for each in probed_runs.outcome(out, 0).recordings if each.totals.calls.sum()]
    assert served.complete
    assert calls(served) == {1: 3.0, 3: 3.0}
    assert [row[0] for row in program.values(served, "Page::handle")] == [0.0, 1.0, 2.0]


ENGINE = """<?php
enum Local { case X; case Y; }
class Kept extends SplObjectStorage implements JsonSerializable {
    function jsonSerialize(): mixed {
        return count($this) + $this->count();
    }
}
trait Shared {
    function hello($n) {
        return str_repeat("x", $n);
    }
}
class User {
    use Shared { hello as greet; }
}
function twice($n) {
    yield from [$n, strlen("ab") * $n];
}
ob_start(fn($text) => strtoupper($text));
$length = strlen(...);
$count = Closure::fromCallable([new ArrayObject([1, 2]), "count"]);
$values = [[3], [1]];
usort($values, fn($one, $other) => $one <=> $other);
spl_autoload_register(function ($name) {
    eval("class $name extends ArrayObject {}");
});
$fiber = new Fiber(fn() => Fiber::suspend(strlen("ab")));
echo count(Local::cases()), $length("abc"), $count(), json_encode([$values, new Kept, new Made([1])]);
echo implode(",", array_map("ucfirst", ["a"])), implode(",", array_map($length, ["aa"]));
echo call_user_func_array("max", [1, 2]), $fiber->start();
foreach (twice(1) as $n) {
    echo $n;
}
try {
    throw new RuntimeException("thrown");
} catch (Exception $error) {
    echo $error->getMessage(), strlen($error->getTraceAsString()) > 0, (new ReflectionFunction("strlen"))->invoke("q");
}
echo (new User)->greet(2), (new DateTime("2020-01-01"))->format("Y");
if (class_exists("Early", false)) {
    echo count(Suit::cases()), Suit::from("a")->name, (new Early([1]))->getIterator()->count();
}
register_shutdown_function("strlen", "x");
"""
EARLY = """<?php
enum Suit: string { case A = "a"; }
class Early extends ArrayObject {
    function getIterator(): Iterator {
        return parent::getIterator();
    }
}
"""


@pytest.mark.parametrize("settings", [(), ("opcache.enable_cli=1",), ("opcache.enable_cli=1", "opcache.preload={early}")], ids=len)
def test_functions_of_the_engines_own_do_in_each_request_what_they_do_without_probes(make: Make, settings: Sequence[str]) -> None:
    """The engine lays no place for observers beside each of them, and is told that nobody observes any."""
    program = make({"main.php": ENGINE, "early.php": EARLY}, {"Shared::hello": ["number $n"], "twice": []})
    options = [word for each in settings for word in ("-d", each.format(early=program.tree / "early.php"))]
    options += ["-d", f"opcache.preload_user={getpass.getuser()}", "-d", "opcache.file_update_protection=0"]
    plain = subprocess.run([php_programs.interpreter().executable, *options, program.tree / "main.php"], capture_output=True, check=True)
    out, variables = program.prepare()
    port = php_servers.free_port()
    command = [php_programs.interpreter().executable, *options, "-S", f"127.0.0.1:{port}", "-t", program.tree]
    with php_servers.started(command, port, program.folder, variables) as server:
        for _ in range(4):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/main.php", timeout=20) as answer:
                assert answer.read() == plain.stdout
        server.send_signal(signal.SIGINT)
        server.wait()
    found = [each for each in probed_runs.outcome(out, 0).recordings if each.totals.calls.any()]
    assert [calls(each) for each in found] == [{1: 4.0, 2: 8.0}], "the trait's method by its other name, and resumptions"


OBSERVER = """
#include <php.h>
#include <zend_observer.h>

static int begun, ended;

static void begin(zend_execute_data *frame) { (void)frame; begun++; }
static void end(zend_execute_data *frame, zval *result) { (void)frame, (void)result; ended++; }

static zend_observer_fcall_handlers observe(zend_execute_data *frame)
{
	zend_observer_fcall_handlers both = {begin, end};

	(void)frame;
	return both;
}

static PHP_MINIT_FUNCTION(other) { (void)type, (void)module_number; zend_observer_fcall_register(observe); return SUCCESS; }
static PHP_RSHUTDOWN_FUNCTION(other) { (void)type, (void)module_number; printf("[%d %d]", begun > 200, begun == ended); return SUCCESS; }

static zend_module_entry entry = {
	STANDARD_MODULE_HEADER, "other", NULL, PHP_MINIT(other), NULL, NULL, PHP_RSHUTDOWN(other), NULL, "1", STANDARD_MODULE_PROPERTIES,
};

zend_module_entry *get_module(void) { return &entry; }
"""


def test_another_observer_sees_what_it_would_see_without_us(make: Make, tmp_path: Path) -> None:
    (tmp_path / "other.c").write_text(OBSERVER)
    headers = [f"-I{folder}" for folder in extension.headers(php_programs.interpreter())]
    subprocess.run(["gcc", "-shared", "-fPIC", *headers, tmp_path / "other.c", "-o", tmp_path / "other.so"], check=True)
    program = make(HOT, {"leaf": ["number $n"], "outer": ["number $n"]})
    outcome = program.run("-d", f"extension={tmp_path / 'other.so'}", "main.php")
    assert (outcome.status, outcome.output, outcome.errors) == (0, "120[1 1]", "")
    assert calls(outcome.only) == {1: 20010.0, 2: 201.0}


def test_code_from_another_place_is_not_taken_for_the_trees_and_told(make: Make) -> None:
    program = make({"main.php": "<?php\nrequire $argv[1];\n", "lib/code.php": "<?php\nfunction f() {\n}\nf();\n"}, {"lib/code.php::f": []})
    copy = program.folder / "elsewhere/lib/code.php"
    copy.parent.mkdir(parents=True)
    copy.write_text((program.tree / "lib/code.php").read_text())
    (program.folder / "link").symlink_to(program.tree)
    assert calls(program.run("main.php", "lib/code.php").only) == {1: 1.0}
    assert calls(program.run("main.php", str(program.folder / "link/lib/code.php")).only) == {1: 1.0}
    outcome = program.run("main.php", str(copy))
    assert calls(outcome.only) == {}
    assert ("elsewhere", f"{copy}\tlib/code.php") in outcome.notes


def test_damaged_sheet_probes_nothing_and_breaks_nothing(make: Make) -> None:
    program = make(NESTED, {"leaf": ["length $values", "number $n"], "middle": ["number $count"]})
    out, variables = program.prepare()
    sheet = out / "sheet"
    whole, random = sheet.read_bytes(), Random(1)
    texts = [
        b"",
        b"perfdiff php 1\n",
        b"perfdiff php 1\nprobe 1 2 3 x\n",
        b"perfdiff php 1\nfile x\nprobe\nprobe 1\nprobe 1 2 3\n",
        b"\xff" * 99,
    ]
    texts += [whole[: random.randrange(len(whole))] for _ in range(10)]
    for _ in range(20):
        damaged = bytearray(whole)
        for _ in range(random.randrange(1, 6)):
            damaged[random.randrange(len(damaged))] = random.choice(b"\x00 \n$>-[]:09az\xff")
        texts.append(bytes(damaged))
    for text in texts:
        sheet.write_bytes(text)
        ended = subprocess.run(
            [php_programs.interpreter().executable, "main.php"], cwd=program.tree, env=variables, capture_output=True, check=False
        )
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"done", b""), text


FREEING = """<?php
class Told {
    function __construct(public string $name, public bool $throws = false) {}
    function __destruct() {
        $trace = array_map(fn ($one) => $one["function"], debug_backtrace());
        echo $this->name, " in ", implode(",", $trace), "\\n";
        if ($this->throws) {
            throw new Exception("from " . $this->name);
        }
    }
}
function held($n) {
    $first = new Told("first");
    $second = new Told("second");
    return $n;
}
function returned() {
    $told = new Told("returned");
    $also = $told;
    return $told;
}
function &by_reference(&$given) {
    $given[] = 1;
    $more = &$given;
    return $more;
}
function named($n) {
    $x = $n;
    extract(["y" => $n + 1]);
    return compact("x", "y");
}
function counts() {
    static $calls = 0;
    $mine = &$calls;
    return ++$mine;
}
function more() {
    $told = new Told("generated");
    yield 1;
    yield 2;
    return 3;
}
function throws() {
    $told = new Told("thrower", true);
    return new Told("lost");
}
function left() {
    $told = new Told("left");
    throw new Exception("left");
}
function many(...$all) {
    $sum = array_sum($all);
    return fn () => $sum + count($all);
}
function suspends() {
    $told = new Told("suspended");
    Fiber::suspend(1);
    return 2;
}
function outer() {
    echo held(3), "\\n";
    $kept = returned();
    $list = [];
    $same = &by_reference($list);
    $same[] = 2;
    echo json_encode([$list, named(4), counts(), counts(), many(1, 2, 3)()]), "\\n";
    foreach (more() as $one) {
        echo $one, "\\n";
    }
    foreach (["throws", "left"] as $name) {
        try {
            $got = $name();
        } catch (Exception $e) {
            echo $e->getMessage(), " at ", $e->getTrace()[0]["function"], "\\n";
        }
        try {
            $name();
        } catch (Exception $e) {
            echo $e->getMessage(), " at ", $e->getTrace()[0]["function"], "\\n";
        }
    }
    usort($list, function ($a, $b) { $told = new Told("sorts"); return $a <=> $b; });
    $fiber = new Fiber(suspends(...));
    echo $fiber->start(), $fiber->resume(), $fiber->getReturn(), "\\n";
}
outer();
held(7);
"""
FREED = ("held", "returned", "by_reference", "named", "counts", "more", "throws", "left", "many", "suspends", "outer")


@pytest.mark.parametrize("options", [(), CACHED, (*COMPILED, "opcache.jit=tracing")], ids=("plain", "opcache", "jit"))
def test_variables_are_freed_as_without_probes(make: Make, options: tuple[str, ...]) -> None:
    program = make(FREEING, {name: [] for name in FREED})
    plain = subprocess.run(["php", *options, str(program.tree / "main.php")], capture_output=True, text=True, check=True)
    assert plain.stdout.count(" in ") >= 12
    outcome = program.run(*options, "main.php", mode=ProbePlan(Mode.SAMPLE))
    assert (outcome.status, outcome.output) == (0, plain.stdout)
    assert calls(outcome.only)[1] == 2.0


def test_what_a_call_frees_as_it_returns_is_its_own_time(make: Make) -> None:
    main = """<?php
function rows($n) {
    $rows = [];
    for ($i = 0; $i < $n; $i++) {
        $rows[] = [$i, "row $i"];
    }
    return count($rows);
}
function caller() {
    return rows(100000);
}
for ($i = 0; $i < 5; $i++) {
    caller();
}
"""
    record = make(main, {"rows": [], "caller": []}).run("main.php", mode=ProbePlan(Mode.SAMPLE, reservoir=100)).only
    own, rows = record.samples[2].self_ns, record.samples[1].wall_ns
    assert len(own) == 5
    assert (own / rows).min() < 0.02, "two lines of code"


def test_php_without_headers_is_told_with_the_package_that_has_them(tmp_path: Path) -> None:
    php = replace(php_programs.interpreter(), config=None)
    with pytest.raises(BuildError, match=rf"php{'.'.join(map(str, php.version))}-dev") as caught:
        extension.build(php, tmp_path, "gcc", tmp_path)
    assert caught.value.slug == "no-php-headers"


@pytest.mark.parametrize(("release", "zts", "slug"), [("7.4.33", "false", "php-unsupported"), ("8.3.1", "true", "php-unsupported")])
def test_php_that_cannot_be_measured_is_told(tmp_path: Path, release: str, zts: str, slug: str) -> None:
    numbers = ", ".join(release.split(".")[:2])
    (tmp_path / "php").write_text(f'#!/bin/sh\necho \'["/php", "{release}", {numbers}, {zts}, "API"]\'\n')
    (tmp_path / "php").chmod(0o755)
    with pytest.raises(BuildError, match=release) as caught:
        interpreters.find("./php", tmp_path, {"PATH": "/usr/bin:/bin"})
    assert caught.value.slug == slug
    with pytest.raises(BuildError) as missing:
        interpreters.find("no-such-php", tmp_path, {"PATH": "/usr/bin:/bin"})
    assert missing.value.slug == "no-php"


def test_extensions_compile_without_warnings() -> None:
    headers = [word for folder in extension.headers(php_programs.interpreter()) for word in ("-isystem", folder)]
    pack = Path(extension.__file__).parent
    for part, options in (("runtime", ()), ("counting", ("-DPD_PER_CALL",)), ("lines", ())):
        for compiler in ("gcc", "clang") if part == "runtime" else ("gcc",):
            sources = [str(path) for path in interpreter_parts.sources(pack, (part,)) if path.suffix == ".c"]
            flags = ("-std=gnu11", "-D_GNU_SOURCE", "-fPIC", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers")
            command = [compiler, *flags, *options, *headers, "-isystem", str(runtimes.library()), "-fsyntax-only", *sources]
            ended = subprocess.run(command, capture_output=True, text=True, check=False)
            assert ended.returncode == 0, ended.stderr[-2000:]
