"""Calls of one function: recorded in a program's run, kept where they can be made alone, and made again with other values."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perfdiff.cli.exits import ExitCode
from perfdiff.errors import UsageError
from perfdiff.languages.python.benchmarks import alone
from perfdiff.measuring import lonecalls
from perfdiff.records.places import Place
from programs import committed
from test_schemas import VALIDATORS
from test_search_programs import document, search

NAMES = """
met = []
class Store:
    def add(self, line): return len(line)
def depth(text, most=100, *rest, letter="(", **others):
    return min(most, sum(one == letter for one in text)) + len(rest) + len(others)
def parts(text):
    yield from text.split()
def save(text):
    with open("out.txt", "w") as file:
        file.write(text)
def seen(text):
    met.append(text)
    return len(met)
def ready(text):
    return met[0]
async def later(text):
    return text
"""
READ = """
import asyncio, sys, names
def bare(text): return text.strip()
def main():
    names.seen("first")
    for line in open(sys.argv[1]):
        names.Store().add(line)
        print(names.depth(bare(line), 7, 1, letter="[", more=b"\\xff"), list(names.parts(line)))
        names.save(line), names.seen(line), names.ready(line), asyncio.run(names.later(line))
if __name__ == "__main__":
    main()
"""
CONFIG = '[[workload]]\nname = "read"\ncommand = "python read.py {input}"\ninputs = ["samples/*"]\n'


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Return the folder of a program, with the driver where its interpreter finds it."""
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "names.py").write_text(NAMES)
    (folder / "read.py").write_text(READ)
    (folder / "a.txt").write_text("a [b] 'c'\n[[\n")
    shutil.copytree(Path(alone.__file__).parent, tmp_path / "site" / "perfdiff_benchmarks")
    return folder


def driven(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PYTHONPATH": str(folder.parent / "site")}
    start = [sys.executable, "-m", "perfdiff_benchmarks", *words]
    return subprocess.run(start, cwd=folder, env=variables, capture_output=True, text=True, check=False)


def recording(folder: Path, file: str, name: str) -> dict[str, Any]:
    for words in (("record", file, name, "out.json", "read.py", "a.txt"), ("again", "out.json")):
        ran = driven(folder, *words)
        assert ran.returncode == 0, ran.stderr
    told: dict[str, Any] = json.loads((folder / "out.json").read_text())
    return told


def test_calls_are_recorded_with_all_their_arguments_and_made_again_with_another(program: Path) -> None:
    told = recording(program, "names.py", "depth")
    assert (told["target"], told["folder"], told["refused"]) == ("names:depth", ".", {})
    calls = sorted(told["calls"], reverse=True)
    assert [json.loads(call) for call in calls] == [
        [["a [b] 'c'", 7, 1], {"letter": "[", "more": {"bytes": "\xff"}}],
        [["[[", 7, 1], {"letter": "[", "more": {"bytes": "\xff"}}],
    ]
    (program / "other").write_bytes(b"[[[\xff")
    for place, given, code in (
        ("0/0", "other", 0),
        ("0/1", "9", 0),
        ("1/letter", "other", 0),
        ("1/more/bytes", "other", 0),
        ("0/1", "x", 1),
    ):
        ran = driven(program, "call", ".", "names:depth", calls[0], place, given)
        assert ran.returncode == code, ran.stderr


def test_functions_of_the_program_itself_and_generators_are_called_alone(program: Path) -> None:
    told = recording(program, "read.py", "bare")
    assert (told["target"], len(told["calls"])) == ("read.py:bare", 2)
    ran = driven(program, "call", ".", "read.py:bare", told["calls"][0], "0/0", "a.txt")
    assert (ran.returncode, ran.stdout) == (0, ""), "its main is not run"
    assert len(recording(program, "names.py", "parts")["calls"]) == 2


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Store.add", "`self` is a Store, or has one"),
        ("save", "it does what shows outside of it (open)"),
        ("seen", "alone it returns something else: it hangs on more than its arguments"),
        ("ready", "alone it raises IndexError"),
        ("later", "it is a coroutine"),
    ],
)
def test_what_cannot_be_called_alone_is_told_with_its_reason(program: Path, name: str, why: str) -> None:
    told = recording(program, "names.py", name)
    assert why in told["refused"]
    assert told["calls"] == []
    assert name != "save" or (program / "out.txt").read_text() == "[[\n", "what the program wrote itself"


def test_plain_values_are_written_as_they_are_and_no_others() -> None:
    values = [None, True, 3, -1.5, float("inf"), "é", b"\x00\xff", [1, (2, "x")], {"a": {1: b"y"}}, {1, 2}]
    assert alone.decoded(json.loads(json.dumps(alone.encoded(values)))) == values
    for value in (object(), type("Text", (str,), {})("a"), lambda: 0, 1j):
        with pytest.raises(alone.NotAloneError):
            alone.encoded([value])


def test_texts_within_arguments_have_places_and_lists_are_lines(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    call = json.dumps([[["a", {"tuple": [1, "long"]}], True], {"data": {"bytes": "\xff"}, "none": None}])
    places = {place: value for _, place, value in lonecalls._places([call])}
    assert places == {
        "0/0": ["a", {"tuple": [1, "long"]}],
        "1/data/bytes": "\xff",
        "0/0/0": "a",
        "0/0/1": {"tuple": [1, "long"]},
        "0/0/1/tuple": [1, "long"],
        "0/0/1/tuple/1": "long",
    }
    assert lonecalls._family("f", "0/0", places["0/0"]).content(1) == b'"a"\n{"tuple": [1, "long"]}\n'
    assert lonecalls._family("f", "1/data/bytes", "\xff").content(1) == b"\xff"
    (tmp_path / "shown.py").write_text("def show(values, flag, **others): print(values)\n")
    (tmp_path / "lines").write_text('"b"\n3\n')
    alone.call(str(tmp_path), "shown:show", call, "0/0", str(tmp_path / "lines"))
    assert capfd.readouterr().out == "['b', 3]\n"


def test_a_function_is_found_by_the_end_of_its_name_among_the_lines_of_both_sides() -> None:
    def places(*names: str) -> list[Place]:
        return [Place(name, "src/pkg/mod.py", 1, "") for name in names]

    base, head = places("pkg.mod.Store.add", "pkg.mod.add", "pkg.mod.old"), places("pkg.mod.Store.add", "pkg.mod.add", "pkg.mod.new")
    assert lonecalls.resolved("Store.add", [base, head]).inner == "Store.add"
    assert lonecalls.resolved("pkg.mod.add", [base, head]).inner == "add"
    for name, says in (("old", "no function 'old'"), ("add", "several functions")):
        with pytest.raises(UsageError, match=says):
            lonecalls.resolved(name, [base, head])


@pytest.mark.integration
def test_a_function_is_searched_alone_where_no_run_of_the_program_gets_that_far(tmp_path: Path) -> None:
    program = "import sys\ndef depth(text, letter):\n    n = 0\n    for one in text:\n        if one == letter:\n            n += 1\n"
    program += "            for i in range(n): pass\n    return n\n"
    program += 'if __name__ == "__main__":\n    for line in open(sys.argv[1]): print(depth(line[:20], "{"))\n'
    folder = tmp_path / "project"
    committed(folder, [{"prog.py": program, "perfdiff.toml": CONFIG.replace("read.py", "prog.py"), "samples/a": "a {b} 'c'\n"}])
    code, output, errors = search(folder, "v0", "--function", "depth", "--inputs", "24", "--size", "2k", "--format", "json")
    told = document(output)
    assert code == ExitCode.FINE, errors
    (shown, *_) = told["inputs"]
    assert "{" in shown["input"]
    assert shown["workload"]["command"].startswith("python -m perfdiff_benchmarks call . prog.py:depth '[[")
    VALIDATORS["search-1"].validate(told)
