"""What is read of the inputs of PHP functions, as probes have it and as a programmer writes it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from perfdiff.languages.planning import MAX_FEATURES
from php_sources import by_name, program

# The text of a file, a function, and its features: what probes read, and how each is named.
CASES: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "scalars by their types": (
        "function f(int $n, ?float $x, bool $b, string $s, array $a, int|string $k, mixed $m, callable $c, ?int ...$more) {}",
        "f",
        {
            "number $n": "$n",
            "number $x": "$x",
            "number $b": "$b",
            "length $s": "strlen($s)",
            "length $a": "count($a)",
            "number $k": "$k",
            "length $k": "length($k)",
            "number $m": "$m",
            "length $m": "length($m)",
            "length $more": "count($more)",
        },
    ),
    "by defaults where no type is": (
        "function f($a = 1, $b = 'x', $c = [], $d = null) {}",
        "f",
        {"number $a": "$a", "length $b": "length($b)", "length $c": "length($c)", "number $d": "$d", "length $d": "length($d)"},
    ),
    "objects": (
        "function f(Box $box, ?Suit $suit, ArrayObject $all, Closure $each) { return $box->open() instanceof Box; }",
        "f",
        {"enum $box": "$box->name", "enum $suit": "$suit->name", "length $all": "count($all)", "type $box": "$box::class"},
    ),
    "arrays of arrays that are walked over": (
        "function f(array $rows, array $names) { foreach ($rows as $row) { echo count($row); } }",
        "f",
        {"length $rows": "count($rows)", "length $names": "count($names)", "nested $rows": "sum(count($rows[]))"},
    ),
    "files by their names, and by what opens them": (
        "function f(string $configFile, string $from, int $dir) { return file($from); }",
        "f",
        {
            "length $configFile": "strlen($configFile)",
            "length $from": "strlen($from)",
            "number $dir": "$dir",
            "file $configFile": "filesize($configFile)",
            "depth $configFile": "path depth($configFile)",
            "file $from": "filesize($from)",
            "depth $from": "path depth($from)",
        },
    ),
    "properties that the body names, to three steps, statics, superglobals and globals": (
        """
        namespace N;
        class A {
            static $known = [];
            function f($a) {
                global $rules;
                $this->count++;
                $this->a->b->c->d->e = $a['key'][2];
                return count(self::$known) + strlen($_SERVER['CONTENT_LENGTH']) + count($_POST) + $GLOBALS['most'];
            }
        }
        """,
        "N\\A::f",
        {
            "number $a": "$a",
            "length $a": "length($a)",
            "length $_POST": "count($_POST)",
            "length $_SERVER": "count($_SERVER)",
            "number N\\A::$known": "N\\A::$known",
            "length N\\A::$known": "length(N\\A::$known)",
            "number $GLOBALS[most]": "$GLOBALS[most]",
            "length $GLOBALS[most]": "length($GLOBALS[most])",
            "number $_SERVER[CONTENT_LENGTH]": "$_SERVER[CONTENT_LENGTH]",
            "length $_SERVER[CONTENT_LENGTH]": "length($_SERVER[CONTENT_LENGTH])",
            "number $a[key]": "$a[key]",
            "length $a[key]": "length($a[key])",
            "number $this->a": "$this->a",
            "length $this->a": "length($this->a)",
            "number $this->count": "$this->count",
            "length $this->count": "length($this->count)",
            "number $a[key][2]": "$a[key][2]",
            "length $a[key][2]": "length($a[key][2])",
            "number $this->a->b": "$this->a->b",
            "length $this->a->b": "length($this->a->b)",
            "number $this->a->b->c": "$this->a->b->c",
            "length $this->a->b->c": "length($this->a->b->c)",
            "number $GLOBALS[rules]": "$rules",
            "length $GLOBALS[rules]": "length($rules)",
        },
    ),
    "a constructor's object has nothing yet": (
        "class A { private $b; function __construct(private array $a) { $this->b = count($this->a); } }",
        "A::__construct",
        {"length $a": "count($a)"},
    ),
    "a static method and a plain function have no object": (
        "class A { static function f() { return $this->a; } }",
        "A::f",
        {},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_read_of_inputs(case: str, tmp_path: Path) -> None:
    text, name, expected = CASES[case]
    found = by_name(program(tmp_path, {"a.php": text}))[name].features
    assert {plan.expression: plan.name for plan in found} == expected


def test_there_are_not_more_than_annotations_sort_out(tmp_path: Path) -> None:
    given = ", ".join(f"$a{number}" for number in range(40))
    function = by_name(program(tmp_path, {"a.php": f"function f({given}) {{}}"}))["f"]
    assert len(function.features) == MAX_FEATURES


def test_paths_have_at_most_the_steps_that_are_asked_for(tmp_path: Path) -> None:
    function = by_name(program(tmp_path, {"a.php": "function f(A $a) { return $a->b->c; }"}, depth=1))["f"]
    assert [plan.expression for plan in function.features] == ["enum $a", "number $a->b", "length $a->b"]
