"""`perfdiff search` on real programs: what it finds, tells and keeps, and what it says where it cannot search."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from perfdiff.cli.exits import ExitCode
from programs import committed
from test_schemas import VALIDATORS

READER = """
#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static char text[1 << 21];
static long up(int depth) {{ {up} }}
int main(int argc, char **argv) {{
  FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
  long size = file ? (long)fread(text, 1, sizeof text, file) : 0, links = 0;
  int depth = 0;
  if (size > 0 && text[0] == '!') abort();
  if (size > 0 && text[0] == '?') {{
    if (!fork()) raise(SIGKILL);
    wait(NULL);
  }}
  for (long i = 0; i < size; i++) {{
    if (text[i] == '[') depth++;
    else if (text[i] == ']' && depth) links += up(depth--);
  }}
  printf("%ld\\n", links);
  return 0;
}}
"""
DIRECT, WALKED = (
    READER.format(up=body) for body in ("return depth;", "long n = 0; for (int i = 0; i < depth; i++) n += text[i] != 0; return n;")
)
CONFIG = """
[build]
command = "cc -O1 reader.c -o reader"
[[workload]]
name = "read"
command = "./reader {input}"
inputs = ["samples/*"]
"""
SAMPLES = {"samples/a.md": "Some [link](url) here.\n\n- one\n- two\n", "samples/b.md": "Plain words, only.\n"}


def project(room: Path, sources: tuple[str, ...] = (DIRECT, WALKED), config: str = CONFIG, samples: dict[str, str] = SAMPLES) -> Path:
    folder = room / "project"
    committed(folder, [{"reader.c": source, "perfdiff.toml": config, **samples} for source in sources])
    return folder


def search(folder: Path, *words: str) -> tuple[int, str, str]:
    return ran_in(folder, "search", *words, "--keep", str(folder.parent / "kept"))


def ran_in(folder: Path, *words: str) -> tuple[int, str, str]:
    ran = subprocess.run(
        [sys.executable, "-m", "perfdiff", *words, "--repo", folder, "-q"],
        cwd=folder.parent,
        env={**os.environ, "PERFDIFF_CACHE": str(folder.parent / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.returncode, ran.stdout, ran.stderr


def document(output: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(output)
    VALIDATORS["search-1"].validate(told)
    return told


@pytest.mark.integration
def test_an_input_that_shows_it_is_found_kept_and_timed_though_the_program_refuses_it(tmp_path: Path) -> None:
    sources = tuple(source.replace("return 0;", "return links > 40;") for source in (DIRECT, WALKED))
    folder = project(tmp_path, sources, samples={**SAMPLES, "samples/crash.md": "!"})
    code, output, errors = search(folder, "v0", "v1", "--inputs", "80", "--size", "16k", "--format", "json")
    assert code == ExitCode.REGRESSION, errors
    told = document(output)
    (shown,) = told["inputs"]
    assert (shown["function"], shown["growth"]["head"]["class"], shown["run"]["standing"]) == ("up", "quadratic", "slower")
    assert told["answer"].startswith("Regression on an input that was found:")
    largest = max((tmp_path / "kept").glob("*.md"), key=lambda path: path.stat().st_size)
    assert largest.read_bytes().count(b"[") > 1000
    assert Path(shown["workload"]["inputs"][-1]).name == largest.name
    (folder / "samples/crash.md").unlink()
    code, output, errors = search(folder, "v0", "v1", "--inputs", "4", "--size", "16k", "--format", "json")
    again = document(output)
    assert (code, again["tried"] < 40) == (ExitCode.REGRESSION, True), errors  # it is replayed
    (crash,) = told["mishaps"]
    assert (again["mishaps"], Path(crash["file"]).read_bytes()) == ([crash], b"!"), "and so is what crashed"
    assert not list((tmp_path / "cache").rglob("last*")), "a search is no comparison that `explain` knows"


MATCHES = """
import re, sys
WORDS = re.compile(r"{pattern}")
print(sum(WORDS.match(line) is not None for line in open(sys.argv[1], encoding="latin-1")))
"""


@pytest.mark.integration
def test_a_pattern_that_divides_words_in_all_ways_is_attacked_and_its_growth_is_exponential(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    config = '[[workload]]\nname = "match"\ncommand = "python match.py {input}"\ninputs = ["samples/*"]\n'
    patterns = (r"\w+(?: \w+)*;$", r"(?:\w+ ?)+;$")
    committed(
        folder, [{"match.py": MATCHES.format(pattern=each), "perfdiff.toml": config, "samples/a.txt": "a few;\n"} for each in patterns]
    )
    code, output, errors = search(folder, "v0", "v1", "--inputs", "60", "--size", "1k", "--format", "json")
    assert code == ExitCode.REGRESSION, errors
    (shown, *_) = document(output)["inputs"]
    assert 1.5 < shown["factor"] < 4
    sizes = [file["times"] for file in shown["files"]]
    assert sizes == [*range(shown["times"] - 2, shown["times"] + 1)]


@pytest.mark.integration
def test_one_revision_alone_tells_its_steepest_growth_and_how_its_input_is_kept_behind_a_setup(tmp_path: Path) -> None:
    config = CONFIG.replace("./reader {input}", "./reader copy.md").replace("[[workload]]", '[[workload]]\nsetup = "cp {input} copy.md"')
    code, output, errors = search(project(tmp_path, (WALKED,), config), "v0", "--inputs", "160", "--size", "16k")
    assert code == ExitCode.FINE, errors
    assert output.startswith("Work grows more than linearly on an input that was found:")
    assert "`up (reader.c:8)`" in " ".join(output.split())
    (workload,) = tomllib.loads(output[output.index("[[workload]]") :].split("\n\n")[0])["workload"]
    assert (workload["command"], workload["setup"]) == ("./reader copy.md", "cp {input} copy.md")


@pytest.mark.integration
def test_where_both_do_the_same_nothing_is_found_and_it_says_what_was_tried(tmp_path: Path) -> None:
    renamed = DIRECT.replace("up(", "outer(")
    code, output, errors = search(project(tmp_path, (DIRECT, renamed)), "v0", "v1", "--inputs", "60", "--format", "json")
    assert code == ExitCode.FINE, errors
    told = document(output)
    assert (told["verdict"], told["inputs"]) == ("unchanged", [])
    assert told["answer"].startswith(f"No input found on which head does more: {told['tried']} inputs")
    assert told["tried"] >= 50


@pytest.mark.integration
@pytest.mark.parametrize(
    ("config", "samples", "code", "slug"),
    [
        (CONFIG.replace(" {input}", "").replace('inputs = ["samples/*"]\n', ""), SAMPLES, ExitCode.USAGE, "no-seeds"),
        (CONFIG, {"samples/a.md": "!"}, ExitCode.NOT_MEASURED, "no-seeds"),
        (CONFIG, {"samples/a.md": "?"}, ExitCode.NOT_MEASURED, "no-seeds"),
    ],
    ids=["nothing to vary", "seeds that crash", "counts that are lost"],
)
def test_what_cannot_be_searched_is_said(tmp_path: Path, config: str, samples: dict[str, str], code: int, slug: str) -> None:
    status, _, errors = search(project(tmp_path, config=config, samples=samples), "v0", "v1", "--inputs", "20")
    assert (status, f"[{slug}]" in errors) == (code, True), errors


@pytest.mark.integration
def test_a_comparison_that_finds_nothing_slower_searches_and_both_are_the_answer(tmp_path: Path) -> None:
    code, output, errors = ran_in(project(tmp_path), "v0", "v1", "--fast", "--search", "8s", "--format", "json")
    report = json.loads(output)
    assert report["verdict"] == "unchanged", errors
    assert (code, report["search"]["verdict"]) == (ExitCode.REGRESSION, "regression"), errors
    VALIDATORS["search-1"].validate(report["search"])


@pytest.mark.integration
def test_a_comparison_that_cannot_search_says_so_in_its_report(tmp_path: Path) -> None:
    config = CONFIG.replace("./reader {input}", "./reader").replace('inputs = ["samples/*"]\n', "")
    code, output, errors = ran_in(project(tmp_path, config=config), "v0", "v1", "--fast", "--search", "8s", "--format", "json")
    report = json.loads(output)
    assert (code, report["search"]) == (ExitCode.FINE, None), errors
    assert "not-searched" in [note["slug"] for note in report["notes"]]


def test_a_size_or_a_time_that_is_none_is_refused(tmp_path: Path) -> None:
    folder = project(tmp_path)
    for words in (("--size", "big"), ("--time", "0"), ("--size", "0")):
        status, _, errors = search(folder, "v0", "v1", *words)
        assert (status, "it must be a" in errors) == (ExitCode.USAGE, True), errors
