"""A program with a regression that really happened: cmark, from two source releases of the package cmarkgfm, as a git repository."""

from __future__ import annotations

import shutil
from pathlib import Path

import source_releases
from perfdiff.config import BuildConfig, WorkloadConfig
from programs import git

RELEASES = {"base": "2022.10.27", "head": "0.8.0"}
MAKEFILE = """\
LEVEL = -O2
CFLAGS = $(LEVEL) -g -DCMARK_GFM_STATIC_DEFINE -DCMARK_GFM_EXTENSIONS_STATIC_DEFINE
CPPFLAGS = -Ithird_party/cmark/src -Ithird_party/cmark/extensions -Igenerated/unix
sources = $(wildcard third_party/cmark/src/*.c third_party/cmark/extensions/*.c)
cmark: $(sources:.c=.o)
\t$(CC) $(CFLAGS) -o $@ $^
"""
BUILD = BuildConfig("make -j2 cmark")
ATTACK = WorkloadConfig(
    name="links",
    command="yes '![l' | head -n {n} | tr -d '\\n' | ./cmark -e autolink",
    parameters={"n": (500, 1500, 4500, 13500)},
    runs=5,
)
PARAGRAPHS = WorkloadConfig(
    name="paragraphs",
    command="yes 'Plain words in a plain paragraph, and a second sentence. ' | head -n {n} | ./cmark -e autolink",
    parameters={"n": (2000, 8000, 32000)},
    runs=10,
)


def repository(folder: Path) -> Path:
    """Download both releases into `folder` and return a repository there of two commits, tagged `base` and `head`."""
    checkout = folder / "repository"
    checkout.mkdir(parents=True)
    git(checkout, "init", "-q")
    for side, version in RELEASES.items():
        for part in ("third_party", "generated"):
            shutil.rmtree(checkout / part, ignore_errors=True)
        tree = source_releases.unpacked("cmarkgfm", version, folder / side)
        for part in ("third_party", "generated"):
            shutil.copytree(tree / part, checkout / part)
        (checkout / "Makefile").write_text(MAKEFILE)
        git(checkout, "add", "-A")
        git(checkout, "commit", "-q", "-m", version)
        git(checkout, "tag", side)
    return checkout
