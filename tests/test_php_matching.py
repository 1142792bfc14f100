"""How PHP functions differ between two revisions, and the reasons in words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from differing import words
from perfdiff.records.schema import Change
from php_sources import compared

Told = dict[str, tuple[Change, tuple[str, ...]]]
BODY = "$sum = 0; foreach ($rows as $row) { $sum += $row * 3; if ($sum > $most) { return $most; } } return $sum;"

# A file of base and of head, and what differs, but for functions without a difference.
CASES: Mapping[str, tuple[str, str, Mapping[str, tuple[Change, tuple[str, ...]]]]] = {
    "comments, layout, attributes, quotes, lists, names of locals, visibility": (
        """
        class A {
            function f(array $rows, $most) { $sum = "a"; foreach ($rows as $row) $sum .= $row; return array($sum, [$most]); }
        }
        """,
        """
        /** Says. */
        class A {
            #[X]
            final public function f(
                array $rows,
                $most, // so many
            ) {
                $all = 'a'; # none
                foreach ($rows as $one) {
                    $all .= $one;
                }
                RETURN [$all, array($most,),];
            }
        }
        """,
        {},
    ),
    "a local variable that is asked for by its name": (
        "function f() { $a = 1; return compact('a'); }",
        "function f() { $b = 1; return compact('a'); }",
        {"f": (Change.CHANGED, ("body changed",))},
    ),
    "a body": (
        "function f($a) { return $a + 1; } function g() { return f(1); }",
        "function f($a) { return $a - 1; } function g() { return f(1); }",
        {"f": (Change.CHANGED, ("body changed",)), "g": (Change.CALLER, ("calls f, which changed",))},
    ),
    "a signature": (
        "class A { function f(array $a) { return 1; } }",
        "class A { static function f(array $a = []) { return 1; } }",
        {"A::f": (Change.CHANGED, ("signature changed",))},
    ),
    "an operator and a type of a parameter": (
        "function f(int $a) { return $a == 1; }",
        "function f(float $a) { return $a === 1; }",
        {"f": (Change.CHANGED, ("signature changed", "body changed"))},
    ),
    "a closure inside": (
        "function f($a) { return array_map(function ($b) { return $b + 1; }, $a); }",
        "function f($a) { return array_map(function ($b) { return $b + 2; }, $a); }",
        {"f::{closure}": (Change.CHANGED, ("body changed",)), "f": (Change.CALLER, ("calls {closure}, which changed",))},
    ),
    "a constant": (
        "const MOST = 10; function f() { return MOST; } function g() { return 1; }",
        "const MOST = 20; function f() { return MOST; } function g() { return 1; }",
        {
            "f": (Change.AFFECTED, ("reads constant MOST, whose definition changed from 10 to 20 (a.php:2)",)),
            "a.php::{main}": (Change.CHANGED, ("body changed", "reads constant MOST, whose definition changed from 10 to 20 (a.php:2)")),
        },
    ),
    "a constant of a parent, and a case of an enum": (
        "class A { const N = [1]; } class B extends A { function f() { return self::N; } } "
        "enum E: int { case X = 1; function g() { return E::X; } }",
        "class A { const N = [2]; } class B extends A { function f() { return self::N; } } "
        "enum E: int { case X = 2; function g() { return E::X; } }",
        {
            "B::f": (Change.AFFECTED, ("reads constant A::N, whose definition changed from [ 1 ] to [ 2 ] (a.php:2)",)),
            "E::g": (Change.AFFECTED, ("uses case E::X, whose definition changed from 1 to 2 (a.php:2)",)),
        },
    ),
    "the default of a property": (
        "class A { private array $known = []; function f() { return $this->known; } function g() { return 1; } }",
        "class A { private array $known = [1]; function f() { return $this->known; } function g() { return 1; } }",
        {"A::f": (Change.AFFECTED, ("reads property A::$known, whose definition changed from [ ] to [ 1 ] (a.php:2)",))},
    ),
    "a parent": (
        "class P { } class Q { } class A extends P { function f() { return 1; } }",
        "class P { } class Q { } class A extends Q { function f() { return 1; } }",
        {"A::f": (Change.AFFECTED, ("uses class A, whose definition changed from of P to of Q (a.php:2)",))},
    ),
    "which method of two traits is taken": (
        "trait T { function x() {} } trait U { function x() {} } class A { use T, U { T::x insteadof U; } function f() { return 1; } }",
        "trait T { function x() {} } trait U { function x() {} } class A { use T, U { U::x insteadof T; } function f() { return 1; } }",
        {"A::f": (Change.AFFECTED, ("uses class A, whose definition changed (a.php:2)",))},
    ),
    "what a name is imported from": (
        "use P\\Cache; function f() { return new Cache(); }",
        "use Q\\Cache; function f() { return new Cache(); }",
        {"f": (Change.AFFECTED, ("uses imported name Cache, whose source changed from P\\Cache to Q\\Cache (a.php:2)",))},
    ),
    "a static variable": (
        "function f($a) { static $known = []; return $known[$a] ??= strlen($a); }",
        "function f($a) { $known = []; return $known[$a] ??= strlen($a); }",
        {"f": (Change.CHANGED, ("body changed",))},
    ),
    "code of the file itself": (
        "function f() { return 1; } echo f();",
        "function f() { return 1; } function g() { return 2; } echo f(), 1;",
        {"a.php::{main}": (Change.CHANGED, ("body changed",)), "g": (Change.ADDED, ("added",))},
    ),
    "a function that is renamed, with its callers": (
        f"function total(array $rows, $most) {{ {BODY} }} function g($a) {{ return total($a, 2); }}",
        f"function sum(array $rows, $most) {{ {BODY} }} function g($a) {{ return sum($a, 2); }}",
        {"sum": (Change.RENAMED, ("renamed from total",))},
    ),
    "a namespace with its classes": (
        f"namespace N; class Box {{ function f(array $rows, $most) {{ {BODY} }} static function g() {{ return Box::h([], 1); }} "
        f"static function h($most, $rows) {{ {BODY} return 2; }} }}",
        f"namespace M\\N; class Crate {{ function f(array $rows, $most) {{ {BODY} }} static function g() {{ return Crate::h([], 1); }} "
        f"static function h($most, $rows) {{ {BODY} return 2; }} }}",
        {
            "M\\N\\Crate::f": (Change.RENAMED, ("renamed from N\\Box::f",)),
            "M\\N\\Crate::g": (Change.RENAMED, ("renamed from N\\Box::g",)),
            "M\\N\\Crate::h": (Change.RENAMED, ("renamed from N\\Box::h",)),
        },
    ),
    "types of scalars are checked": (
        "declare(strict_types=0); function f() { return 1; }",
        "declare(strict_types=1); function f() { return 1; }",
        {
            "f": (Change.AFFECTED, ("uses declare(strict_types) of a.php, whose definition changed from 0 to 1 (a.php:1)",)),
            "a.php::{main}": (
                Change.AFFECTED,
                ("uses declare(strict_types) of a.php, whose definition changed from 0 to 1 (a.php:1)",),
            ),
        },
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_functions_that_differ_are_told_with_reasons(case: str, tmp_path: Path) -> None:
    base, head, expected = CASES[case]
    assert changes(tmp_path, {"a.php": base}, {"a.php": head}) == expected


def changes(folder: Path, base: Mapping[str, str], head: Mapping[str, str]) -> Told:
    found = compared(folder, base, head)
    return {one.shown.name: (one.change, words(one.reasons)) for one in found if one.change is not Change.UNCHANGED}


def test_a_function_in_another_file_is_the_same(tmp_path: Path) -> None:
    text = f"namespace N; function f(array $rows, $most) {{ {BODY} }}"
    found = changes(tmp_path, {"a.php": text, "b.php": "N\\f([], 1);"}, {"lib/c.php": text, "b.php": "N\\f([], 1);"})
    assert found["N\\f"] == (Change.RENAMED, ("moved from a.php",))


def test_which_version_of_two_of_a_name_is_meant_is_told_by_the_file(tmp_path: Path) -> None:
    base = {"a.php": "function main() { return 1; }", "b.php": "function main() { return 2; }"}
    found = changes(tmp_path, base, {**base, "b.php": "function main() { return 3; }"})
    assert found == {"main": (Change.CHANGED, ("body changed",))}


def test_closures_keep_their_counterparts_where_others_are_added_before_them(tmp_path: Path) -> None:
    text = "function f($a) {{ {} return array_filter($a, function ($one) {{ return $one > 1; }}); }}"
    first = "$a = array_map(function ($one) { return $one + 1; }, $a);"
    found = compared(tmp_path, {"a.php": text.format("")}, {"a.php": text.format(first)})
    [pair] = [one for one in found if one.base is not None and one.base.name == "f::{closure}"]
    assert (pair.change, pair.head is not None and pair.head.name) == (Change.UNCHANGED, "f::{closure}#2")
    [added] = [one for one in found if one.base is None]
    assert (added.change, added.shown.name) == (Change.ADDED, "f::{closure}")
