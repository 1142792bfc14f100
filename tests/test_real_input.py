"""A regression that really happened: cmark's quadratic handling of `![l`, between two source releases of the package cmarkgfm."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from perfdiff import pipeline
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.config import BuildConfig, CompareConfig, Config, WorkloadConfig
from perfdiff.models.annotation import CostClass
from perfdiff.progress import Silent
from programs import git

pytestmark = pytest.mark.integration

RELEASES = {"base": "2022.10.27", "head": "0.8.0"}
MAKEFILE = """\
CFLAGS = -O2 -g -DCMARK_GFM_STATIC_DEFINE -DCMARK_GFM_EXTENSIONS_STATIC_DEFINE
CPPFLAGS = -Ithird_party/cmark/src -Ithird_party/cmark/extensions -Igenerated/unix
sources = $(wildcard third_party/cmark/src/*.c third_party/cmark/extensions/*.c)
cmark: $(sources:.c=.o)
\t$(CC) $(CFLAGS) -o $@ $^
"""
ATTACK = WorkloadConfig(
    name="links",
    command="yes '![l' | head -n {n} | tr -d '\\n' | ./cmark -e autolink",
    parameters={"n": (1000, 3000, 10000, 30000)},
    runs=5,
)
PARAGRAPHS = WorkloadConfig(
    name="paragraphs",
    command="yes 'Plain words in a plain paragraph, and a second sentence. ' | head -n {n} | ./cmark -e autolink",
    parameters={"n": (2000, 8000, 32000)},
    runs=10,
)


@pytest.fixture(scope="module")
def cmark(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cmark")
    checkout = folder / "repository"
    checkout.mkdir()
    git(checkout, "init", "-q")
    for side, version in RELEASES.items():
        for part in ("third_party", "generated"):
            shutil.rmtree(checkout / part, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", str(folder)]
        subprocess.run([*pip, f"cmarkgfm=={version}"], check=True)
        with tarfile.open(folder / f"cmarkgfm-{version}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
        for part in ("third_party", "generated"):
            shutil.copytree(folder / f"cmarkgfm-{version}" / part, checkout / part)
        (checkout / "Makefile").write_text(MAKEFILE)
        git(checkout, "add", "-A")
        git(checkout, "commit", "-q", "-m", version)
        git(checkout, "tag", side)
    return checkout


def compare(cmark: Path, workload: WorkloadConfig) -> Findings:
    config = Config(BuildConfig("make -j2 cmark"), (workload,), compare=replace(CompareConfig(), seed=7))
    request = pipeline.Request(cmark, ("base", "head"), config, cmark.parent / "cache", dict(os.environ))
    return pipeline.compare(request, Silent()).findings


def test_the_guilty_function_of_cmark_comes_first_and_became_quadratic(cmark: Path) -> None:
    findings = compare(cmark, ATTACK)
    assert findings.verdict is Verdict.REGRESSION, findings.sentence
    guilty = next(function for function in findings.functions if function.rank == 1)
    assert "inlines.c" in guilty.info.file or "autolink.c" in guilty.info.file
    cost = guilty.metrics["run_ns"]
    assert cost.base is not None
    assert cost.head is not None
    assert (cost.base.cost_class, cost.head.cost_class) == (CostClass.LINEAR, CostClass.QUADRATIC), findings.sentence


def test_plain_paragraphs_show_no_regression_between_the_same_releases(cmark: Path) -> None:
    findings = compare(cmark, PARAGRAPHS)
    assert findings.verdict in (Verdict.UNCHANGED, Verdict.INCONCLUSIVE, Verdict.IMPROVEMENT), findings.sentence
    assert all(function.verdict is not Verdict.REGRESSION for function in findings.functions)
