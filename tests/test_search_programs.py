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
#include <stdlib.h>
static char text[1 << 21];
static long up(int depth) {{ {up} }}
int main(int argc, char **argv) {{
  FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
  long size = file ? (long)fread(text, 1, sizeof text, file) : 0, links = 0;
  int depth = 0;
  if (size > 0 && text[0] == '!') abort();
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
    ran = subprocess.run(
        [sys.executable, "-m", "perfdiff", "search", *words, "--repo", folder, "--keep", folder.parent / "kept", "-q"],
        env={**os.environ, "PERFDIFF_CACHE": str(folder.parent / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.returncode, ran.stdout, ran.stderr


def document(folder: Path, *words: str) -> dict[str, Any]:
    code, output, errors = search(folder, *words, "--format", "json")
    assert code in {ExitCode.FINE, ExitCode.REGRESSION}, errors
    told: dict[str, Any] = json.loads(output)
    VALIDATORS["search-1"].validate(told)
    return told


@pytest.mark.integration
def test_an_input_that_shows_it_is_found_kept_and_timed(tmp_path: Path) -> None:
    folder = project(tmp_path)
    code, output, _ = search(folder, "v0", "v1", "--inputs", "80", "--size", "16k")
    assert code == ExitCode.REGRESSION
    assert output.startswith("Regression on an input that was found:")
    assert "`up` (reader.c:5): " in output
    assert "bytes²" in output
    lines = output[output.index("[[workload]]") :].split("\n\n")[0]
    (workload,) = tomllib.loads(lines)["workload"]
    (largest, *_) = sorted((tmp_path / "kept").iterdir(), key=lambda path: -path.stat().st_size)
    assert largest.read_bytes().count(b"[") > 1000
    assert Path(workload["inputs"][-1]).name == largest.name
    told = document(folder, "v0", "v1", "--inputs", "80", "--size", "16k")
    (shown,) = told["inputs"]
    assert (shown["function"], shown["growth"]["head"]["class"], shown["run"]["standing"]) == ("up", "quadratic", "slower")


@pytest.mark.integration
def test_one_revision_alone_tells_its_steepest_growth(tmp_path: Path) -> None:
    told = document(project(tmp_path, (WALKED,)), "v0", "--inputs", "200", "--size", "16k")
    assert told["verdict"] == "unchanged"
    assert told["answer"].startswith("Work grows more than linearly on an input that was found:")
    assert "`up (reader.c:5)`" in told["answer"]
    assert told["inputs"][0]["run"] is None


@pytest.mark.integration
def test_where_both_do_the_same_nothing_is_found_and_it_says_what_was_tried(tmp_path: Path) -> None:
    renamed = DIRECT.replace("up(", "outer(")
    told = document(project(tmp_path, (DIRECT, renamed)), "v0", "v1", "--inputs", "120")
    assert (told["verdict"], told["inputs"]) == ("unchanged", [])
    assert told["answer"].startswith("No input found on which head does more: 1")
    assert told["tried"] >= 100
    crash = next(mishap for mishap in told["mishaps"] if mishap["failures"]) if told["mishaps"] else None
    assert crash is None or crash["failures"] == {"base": "crash", "head": "crash"}


@pytest.mark.integration
@pytest.mark.parametrize(
    ("config", "samples", "code", "slug"),
    [
        (CONFIG.replace(" {input}", "").replace('inputs = ["samples/*"]\n', ""), SAMPLES, ExitCode.USAGE, "no-seeds"),
        (CONFIG, {"samples/a.md": "!"}, ExitCode.NOT_MEASURED, "no-seeds"),
    ],
    ids=["nothing to vary", "seeds that crash"],
)
def test_what_cannot_be_searched_is_said(tmp_path: Path, config: str, samples: dict[str, str], code: int, slug: str) -> None:
    status, _, errors = search(project(tmp_path, config=config, samples=samples), "v0", "v1", "--inputs", "20")
    assert (status, f"[{slug}]" in errors) == (code, True), errors


def test_a_size_or_a_time_that_is_none_is_refused(tmp_path: Path) -> None:
    folder = project(tmp_path)
    for words in (("--size", "big"), ("--time", "0"), ("--size", "0")):
        status, _, errors = search(folder, "v0", "v1", *words)
        assert (status, "it must be a" in errors) == (ExitCode.USAGE, True), errors
