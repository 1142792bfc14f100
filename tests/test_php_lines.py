"""How often lines of PHP code run, counted in a real PHP."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import php_lines
import php_programs
import php_servers
from php_programs import Program

pytestmark = pytest.mark.integration

MAIN = """<?php
namespace App;
require __DIR__ . "/shapes.php";
function evens(int $n, $step = 2) {
    $sum = 0;
    for ($i = 0; $i < $n; $i++) {
        if ($i % $step) {
            continue;
        }
        $sum += $i;
    }
    while ($sum > 10) $sum -= 10;
    return $sum;
}
function numbers($n) {
    for ($i = 0; $i < $n; $i++) {
        yield $i;
    }
}
$double = function ($x) {
    return 2 * $x;
};
$next = fn($x) => $x + 1;
evens(10);
evens(3);
foreach (numbers(4) as $n) {
    $double($n);
}
array_map($next, [1, 2, 3]);
try {
    (new Square)->fails(1);
} catch (\\Exception $e) {
    echo $e->getMessage();
} finally {
    $done = true;
}
(new Square)->area(3);
(new Square)->size(4);
"""
SHAPES = """<?php
namespace App;
trait Sized {
    function area($n) {
        return $n * $n;
    }
}
class Square {
    use Sized {
        area as size;
    }
    function fails($n) {
        if ($n) {
            throw new \\Exception("failed");
        }
        return 1;
    }
}
"""


def test_each_line_is_counted_as_often_as_it_begins(tmp_path: Path) -> None:
    counts = php_lines.project(tmp_path, {"main.php": MAIN, "shapes.php": SHAPES}).run()
    assert (counts.status, counts.output, counts.lost) == (0, "failed", 0)
    assert counts.of("$sum = 0;", "App\\evens") == 2
    assert counts.of("for (", "App\\evens") == 2 + 10 + 3
    assert counts.of("if (", "App\\evens") == 13
    assert counts.of("continue;") == 6
    assert counts.of("$sum += $i;") == 5 + 2
    assert counts.of("while (") == 2 + 1, "each call once, and once more for each time that its body runs"
    assert counts.of("yield $i;") == 4
    assert counts.of("return 2 * $x;") == 4
    (closure,) = {place.function for place in counts.by_place if "fn($x)" in place.text and "{closure" in place.function}
    assert closure == "App\\{closure}" or closure.startswith("{closure:App\\"), "PHP 8.4 says where it stands"
    assert counts.of("fn($x)", closure) == 3
    assert counts.of("foreach (") == 4 + 1, "each time that an element is asked for"
    assert counts.of("$double($n);") == 4


def test_lines_of_other_files_traits_and_exceptions_are_counted(tmp_path: Path) -> None:
    counts = php_lines.project(tmp_path, {"main.php": MAIN, "shapes.php": SHAPES}).run()
    assert counts.of("return $n * $n;", "App\\Sized::area") == 2, "under the trait's name, by whatever name it is called"
    assert counts.of("throw new") == 1
    assert counts.of("return 1;") == 0
    assert counts.of("echo $e->getMessage();") == 1
    assert counts.of("$done = true;") == 1


@pytest.mark.parametrize("options", [(), ("-d", "opcache.enable_cli=1"), ("-d", "opcache.enable_cli=1", "-d", "opcache.file_cache=cache")])
def test_two_runs_count_the_same(tmp_path: Path, options: tuple[str, ...]) -> None:
    project = php_lines.project(tmp_path, {"main.php": MAIN, "shapes.php": SHAPES})
    (project.tree / "cache").mkdir()
    first, second = (project.run(*options, "main.php", name=name) for name in ("first", "second"))
    assert (first.status, second.status, first.lost) == (0, 0, 0)
    assert first.by_place == second.by_place
    assert first.of("$sum += $i;") == 7


def test_what_is_killed_keeps_its_counts_and_children_have_their_own(tmp_path: Path) -> None:
    main = """<?php
function work($n) {
    for ($i = 0; $i < $n; $i++) {
        $x = $i;
    }
}
work(5);
if (pcntl_fork() === 0) {
    work(100);
    posix_kill(posix_getpid(), SIGKILL);
}
pcntl_wait($status);
work(1000);
"""
    counts = php_lines.project(tmp_path, {"main.php": main}).run()
    assert counts.of("$x = $i;") == 1105
    assert counts.lost == 0


def test_files_that_do_not_compile_and_those_that_meet_each_other_have_their_lines(tmp_path: Path) -> None:
    sources = {
        "main.php": "<?php\nfunction same() {\n    return 1;\n}\nsame();\n",
        "broken.php": "<?php\nfunction ( {\n",
        "twice.php": "<?php\nfunction one() {\n}\nfunction one() {\n}\n",
        "other.php": "<?php\nfunction same() {\n    return 2;\n}\nclass Late extends No {\n    function run() {\n        return 3;\n}}\n",
        "template.phtml": "<p>\n<?php foreach ($rows as $row): ?>\n<b><?= $row ?></b>\n<?php endforeach ?>\n",
    }
    project = php_lines.project(tmp_path, sources)
    found = {(place.file, place.line) for place in project.reader.places}
    assert {("main.php", 3), ("main.php", 5), ("other.php", 3), ("other.php", 7), ("template.phtml", 3)} <= found
    assert not {file for file, _ in found} & {"broken.php", "twice.php"}
    assert project.run().of("return 1;") == 1


def test_workers_of_php_fpm_are_counted_each(tmp_path: Path) -> None:
    main = (
        "<?php\nfunction hello($n) {\n    for ($i = 0; $i < $n; $i++) {\n        $x = $i;\n    }\n}\nhello((int) $_GET['n']);\necho 'ok';\n"
    )
    project = php_lines.project(tmp_path, {"main.php": main})
    os.utime(project.tree / "main.php", (1e9, 1e9))  # old enough for the engine to keep it, and to leave out what nobody reads
    folder = tmp_path / "counts"
    folder.mkdir()
    program = Program(tmp_path, ())
    with php_servers.fpm(program, os.environ | project.reader.environment(folder), workers=2) as server:
        assert [php_servers.ask(program, f"n={n}") for n in (1, 10, 100, 1000)] == ["ok"] * 4
        server.send_signal(signal.SIGTERM)
        server.wait()
    assert project.counts(folder, 0, "").of("$x = $i;") == 1111


def test_damaged_sheet_counts_nothing_and_breaks_nothing(tmp_path: Path) -> None:
    project = php_lines.project(tmp_path, {"main.php": MAIN, "shapes.php": SHAPES})
    whole = project.reader.sheet.read_bytes()
    for number, text in enumerate((b"", b"C\nF\n", b"P 4\nC 1 2 99999999999 1 1 x\n", whole[: len(whole) // 2], b"\xff" * 999)):
        project.reader.sheet.write_bytes(text)
        folder = tmp_path / str(number)
        folder.mkdir()
        environment = os.environ | project.reader.environment(folder)
        ended = php_programs.subprocess.run(
            [php_programs.interpreter().executable, "main.php"], cwd=project.tree, env=environment, capture_output=True, check=False
        )
        assert (ended.returncode, ended.stdout) == (0, b"failed"), text
