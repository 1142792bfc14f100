"""The functions of PHP programs: which there are, what they are called, where they stand, and what they lead to."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from perfdiff.languages.php.functions import ABSTRACT, SAME_LINE
from perfdiff.languages.php.index import index
from php_sources import by_name, callees, program, used, write

SHOP = r"""
namespace Shop\Cart;

use Shop\Tax\Rate;
use Shop\Tax\{Rule, Region as Area};
use function Shop\Tax\rounded;
use const Shop\Tax\CENT;

/** Sums. */
#[\Sums]
function total(array $rows, ?Rate $rate = null): int
{
    // each row
    return array_reduce($rows, function (int $sum, $row) use ($rate) {
        return $sum + rounded($row);
    }, CENT);
}

abstract class Base implements \Countable
{
    use Loud {
        say as protected shout;
    }

    const MOST = 10;
    protected static ?array $known = [1, 2];
    private Rate $rate;

    public function __construct(protected readonly array $items = [], ?Rate $rate = null)
    {
        $this->rate = $rate ?? new Rate(self::MOST);
    }

    abstract public function name(): string;

    #[\ReturnTypeWillChange]
    public
    static
    function make(): static
    {
        return new static(static::$known);
    }

    public function count(): int { return count($this->items) + $this->rate->percent() + self::$known[0]; }

    public function later() { return fn ($a) => fn ($b) => $a + $b; }

    public function rows(): iterable
    {
        foreach ($this->items as $item) {
            yield $item => Area::North->name . $this->shout();
        }
    }
}

trait Loud
{
    public function say(): string { return strtoupper($this->name()); }
}

final class Book extends Base
{
    public function name(): string
    {
        $other = new class ($this) {
            public function __construct(public Base $of) {}
            public function twice(): int { return 2 * $this->of->count(); }
        };

        return parent::make() . $other->twice() . Rule::apply($this);
    }
}
"""
TAX = r"""
namespace Shop\Tax;

const CENT = 100;
define('Shop\Tax\ROUND', CENT * 2);

function rounded($value) { return intdiv($value, ROUND) * CENT; }

class Rate
{
    public function __construct(private int $percent) {}
    public function percent(): int { return $this->percent; }
}

enum Region: string
{
    case North = 'n';
    case South = 's';
    const BEST = self::North;
    public function isBest(): bool { return $this === self::BEST; }
}

final class Rule
{
    public static function apply($to) { $to->log[] = 1; return $GLOBALS['rules']; }
}
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("shop"), {"src/Cart.php": SHOP, "src/tax.php": TAX})


def test_functions_are_named_as_their_users_write_them(shop: Path) -> None:
    found = index(shop, depth=3)
    assert found.problems == ()
    cart = "Shop\\Cart\\"
    assert {one.name for one in found.functions.values() if one.file == "src/Cart.php"} == {
        "src/Cart.php::{main}",
        f"{cart}total",
        f"{cart}total::{{closure}}",
        f"{cart}Base::__construct",
        f"{cart}Base::name",
        f"{cart}Base::make",
        f"{cart}Base::count",
        f"{cart}Base::later",
        f"{cart}Base::later::{{closure}}",
        f"{cart}Base::later::{{closure}}::{{closure}}",
        f"{cart}Base::rows",
        f"{cart}Loud::say",
        f"{cart}Book::name",
        f"{cart}Book::name::class@anonymous::__construct",
        f"{cart}Book::name::class@anonymous::twice",
    }
    functions = by_name(found)
    assert functions[f"{cart}Base::name"].obstacle == ABSTRACT
    assert functions[f"{cart}Base::later::{{closure}}"].obstacle == SAME_LINE
    assert (functions["src/Cart.php::{main}"].loads, functions[f"{cart}total"].above) == (True, 1)


def test_what_functions_call_is_followed_by_types(shop: Path) -> None:
    found = index(shop, depth=3)
    cart, tax = "Shop\\Cart\\", "Shop\\Tax\\"
    assert callees(found, f"{cart}total") == {f"{cart}total::{{closure}}"}
    assert callees(found, f"{cart}total::{{closure}}") == {f"{tax}rounded"}
    assert callees(found, f"{cart}Base::__construct") == {f"{tax}Rate::__construct"}
    assert callees(found, f"{cart}Base::make") == {f"{cart}Base::__construct"}
    assert callees(found, f"{cart}Base::count") == {f"{tax}Rate::percent"}
    assert callees(found, f"{cart}Base::rows") == {f"{cart}Loud::say"}
    assert f"{cart}Book::name" in callees(found, f"{cart}Loud::say")
    assert callees(found, f"{cart}Book::name") == {
        f"{cart}Base::make",
        f"{tax}Rule::apply",
        f"{cart}Book::name::class@anonymous::__construct",
        f"{cart}Book::name::class@anonymous::twice",
    }
    assert callees(found, f"{cart}Book::name::class@anonymous::twice") == {f"{cart}Base::count"}


def test_what_functions_depend_on_is_told(shop: Path) -> None:
    found = index(shop, depth=3)
    cart, tax = "Shop\\Cart\\", "Shop\\Tax\\"
    assert {f"constant {tax}CENT", "imported name const CENT", "imported name Rate", f"class {tax}Rate"} <= used(found, f"{cart}total")
    assert used(found, f"{tax}rounded") == {f"constant {tax}CENT", f"constant {tax}ROUND"}
    assert {f"class {cart}Base", f"trait {cart}Loud", f"constant {cart}Base::MOST"} <= used(found, f"{cart}Base::__construct")
    assert f"property {cart}Base::$known" in used(found, f"{cart}Base::count")
    assert {f"enum {tax}Region", f"case {tax}Region::North"} <= used(found, f"{cart}Base::rows")
    assert {f"class {cart}Book", f"class {cart}Base"} <= used(found, f"{cart}Book::name")
    assert used(found, f"{tax}Region::isBest") == {f"enum {tax}Region", f"constant {tax}Region::BEST", f"case {tax}Region::North"}
    functions = by_name(found)
    assert functions[f"{cart}Base::__construct"].writes == {f"{cart}Base::$rate"}
    assert functions[f"{tax}Rate::percent"].reads == {f"{tax}Rate::$percent"}
    assert functions[f"{tax}Rule::apply"].reads == {"$GLOBALS[rules]"}


def test_lines_are_those_of_the_engine(shop: Path, tmp_path: Path) -> None:
    """By reflection of a real PHP; that of a closure is asked of the closure itself."""
    script = write(
        tmp_path,
        {
            "lines.php": r"""
            foreach (array_slice($argv, 1) as $file) { require $file; }
            $told = [];
            foreach (get_defined_functions()['user'] as $name) { $told[] = new ReflectionFunction($name); }
            foreach ([...get_declared_classes(), ...get_declared_traits()] as $class) {
                foreach ((new ReflectionClass($class))->getMethods() as $method) {
                    if ($method->isUserDefined() && $method->class === $class) { $told[] = $method; }
                }
            }
            $book = new Shop\Cart\Book([1]);
            $told[] = new ReflectionFunction($book->later());
            echo json_encode(array_map(fn ($one) => [
                $one->getStartLine(), $one->getEndLine(), (isset($one->class) ? strtok($one->class, "\0") . '::' : '') . $one->getName(),
            ], $told));
            """
        },
    )
    command = ["php", "-n", str(script / "lines.php"), str(shop / "src/tax.php"), str(shop / "src/Cart.php")]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    known = {one.linkage[0].lower() for one in index(shop, depth=3).functions.values()}
    assert len(told) > 15
    told = [[*lines, re.sub(r"\{closure:(.*\\).+", r"\1{closure}", name)] for *lines, name in told]  # PHP 8.4 says where it stands
    wrong = [f"{first} {last} {name}" for first, last, name in told if f"{first} {last} {name}".lower() not in known]
    # A class has the methods of its traits as its own, under their names and aliases; they are told of once, by the trait.
    assert wrong == ["59 59 Shop\\Cart\\Base::shout", "59 59 Shop\\Cart\\Base::say"], wrong


def test_files_of_the_project_are_told_from_those_of_packages(tmp_path: Path) -> None:
    installed = {"packages": [{"name": "acme/box", "version": "1.0"}, {"name": "acme/other", "version": "2.0"}]}
    tree = write(
        tmp_path,
        {
            "index.php": "echo 1;",
            "view.phtml": "<p><?= title($page) ?></p>",
            "bin/run": "#!/usr/bin/env php\n<?php function run() {}",
            "bin/other": "#!/bin/sh\necho '<?php'",
            "readme.inc": b"no code here",
            "vendor/autoload.php": "require 1;",
            "vendor/composer/installed.json": json.dumps(installed).encode(),
            "vendor/composer/ClassLoader.php": "class ClassLoader {}",
            "vendor/acme/box/src/Box.php": "class Box { function f() {} }",
            "vendor/acme/other/src/Other.php": "class Other { function f() {} }",
        },
    )
    assert {one.file for one in index(tree, depth=1).functions.values()} == {"index.php", "view.phtml", "bin/run"}
    assert {one.file for one in index(tree, depth=1, packages=["acme/box"]).functions.values()} >= {"vendor/acme/box/src/Box.php"}
    assert "vendor/acme/other/src/Other.php" not in {one.file for one in index(tree, depth=1, packages=["acme/box"]).functions.values()}


def test_included_files_are_called(tmp_path: Path) -> None:
    found = program(
        tmp_path,
        {
            "index.php": "require __DIR__ . '/lib/a.php'; include 'lib/b.php'; require_once dirname(__FILE__) . '/c.php'; include $name;",
            "lib/a.php": "require dirname(__DIR__) . '/lib/b.php'; f();",
            "lib/b.php": "function f() { include __DIR__ . '/deep.php'; }",
            "lib/deep.php": "return [1];",
            "c.php": "",
        },
    )
    assert callees(found, "index.php::{main}") == {"lib/a.php::{main}", "lib/b.php::{main}", "c.php::{main}"}
    assert callees(found, "lib/a.php::{main}") == {"lib/b.php::{main}", "f"}
    assert callees(found, "f") == {"lib/deep.php::{main}"}


def test_callables_by_name_are_followed(tmp_path: Path) -> None:
    found = program(
        tmp_path,
        {
            "a.php": r"""
            function double($a) { return $a * 2; }
            class Steps {
                static function one($a) { return $a; }
                function two($a) { return $a; }
                function all(array $of) {
                    array_map('double', $of);
                    array_map('Steps::one', $of);
                    array_map([$this, 'two'], $of);
                    usort($of, $this->three(...));
                }
                function three($a, $b) { return 0; }
            }
            """
        },
    )
    assert callees(found, "Steps::all") == {"double", "Steps::one", "Steps::two", "Steps::three"}


def test_functions_of_one_name_in_several_files_are_told_apart(tmp_path: Path) -> None:
    found = program(tmp_path, {"a.php": "function main() { return 1; } main();", "b.php": "function main() { return 2; }"})
    assert {"php:a.php::main", "php:b.php::main"} <= found.functions.keys()


def test_a_file_that_cannot_be_parsed_is_a_problem_of_the_program(tmp_path: Path) -> None:
    found = program(tmp_path, {"a.php": "function f() { return 1; }\nfunction g( {", "b.php": b"<?php function h() { return '\xff\xe9'; }"})
    assert [(problem.file, problem.reason) for problem in found.problems] == [("a.php", "it cannot be parsed (line 3)")]
    assert {"f", "h"} <= set(by_name(found))


def test_long_chains_of_operators_are_read(tmp_path: Path) -> None:
    chain = " . ".join(f"f({number})" for number in range(3000))
    found = program(tmp_path, {"a.php": f"function f($a) {{ return ''; }}\necho {chain};"})
    assert found.problems == ()
    assert callees(found, "a.php::{main}") == {"f"}


def test_what_is_nested_too_deeply_is_a_problem_of_the_program(tmp_path: Path) -> None:
    found = program(tmp_path, {"a.php": f"echo {'(' * 3000}1{')' * 3000};", "b.php": "function f() {}"})
    assert [problem.file for problem in found.problems] == ["a.php"]
    assert "f" in by_name(found)


def test_what_files_told_is_kept(shop: Path, tmp_path: Path) -> None:
    first = index(shop, depth=3, cache=tmp_path)
    kept = sorted(path for path in tmp_path.rglob("*.json"))
    again = index(shop, depth=3, cache=tmp_path)
    assert (len(kept), first) == (2, again)
    for path in kept:
        path.write_text("{}")
    assert index(shop, depth=3, cache=tmp_path) == first


def test_lines_without_code_of_a_function_are_told(tmp_path: Path) -> None:
    text = """function f($a)
{
    // one
    $b = 1; // two
    /* three
       four */
    return array_map(
        function ($c) {
            return $c;
        },
        $a,
    );
}
"""
    function = by_name(program(tmp_path, {"a.php": text}))["f"]
    assert function.no_code == ((4, 4), (6, 7), (10, 10))
