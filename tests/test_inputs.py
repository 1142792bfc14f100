"""Workloads over files of the checkout: each is a point, both revisions read the same, and an edited one is measured anew."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

import runtimes
from perfdiff import configuration, pipeline
from perfdiff.progress import Silent
from perfdiff.records.schema import Side
from perfdiff.request import Request
from programs import git

PATH = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
COUNT = """
#include <stdio.h>
static int vowels(const char *path)
{
	FILE *file = fopen(path, "r");
	int c, found = 0;

	if (!file)
		return -1;
	while ((c = getc(file)) != EOF)
		found += c == 'a' || c == 'e' || c == EXTRA;
	fclose(file);
	return found;
}
int main(int argc, char **argv)
{
	int found = vowels(argv[1]);

	printf("%d\\n", found);
	return found < 0;
}
"""
TOML = """
build.command = "gcc -O2 -o count count.c"
counters.software = false
measure = { budget_s = 0.5, layouts = 1 }
[[workload]]
name = "count"
command = "./count {input}"
inputs = ["corpus/**/*.txt"]
runs = 2
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a repository whose two revisions hold other inputs than its checkout; one of those belongs to no commit."""
    folder = tmp_path / "project"
    (folder / "corpus" / "large").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "perfdiff.toml").write_text(TOML)
    for revision, text in (("v1", "a"), ("v2", "ae")):
        (folder / "corpus" / "small.txt").write_text(text)
        (folder / "count.c").write_text(COUNT.replace("EXTRA", f"'{revision[1]}'"))
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", revision)
        git(folder, "tag", revision)
    (folder / "corpus" / "small.txt").write_text("aaa\n")
    (folder / "corpus" / "large" / "a b.txt").write_text("banane\n" * 10_000)
    return folder


def request(project: Path, *revisions: str) -> Request:
    cache = runtimes.lent_to(project.parent / "cache")
    return Request(project, revisions, configuration.load(project, environment={}), cache, PATH)


@pytest.mark.integration
def test_both_revisions_run_with_the_inputs_of_the_checkout(project: Path) -> None:
    outcome = pipeline.compare(request(project, "v1", "v2"), Silent())
    found = outcome.experiment
    assert found is not None
    assert [point.label for point in found.points] == ["count input=corpus/large/a b.txt", "count input=corpus/small.txt"]
    assert [point.command for point in found.points] == ["./count 'corpus/large/a b.txt'", "./count corpus/small.txt"]
    outputs = {point.id: {(run.side, run.output) for run in found.runs if run.point == point.id} for point in found.points}
    printed = {"corpus/large/a b.txt": 30_000, "corpus/small.txt": 3}
    for point in found.points:
        assert outputs[point.id] == {(side, _digest(f"{printed[str(point.parameters['input'])]}\n")) for side in Side}
    assert str(project) not in json.dumps([point.command for point in found.points])


def _digest(output: str) -> str:
    return hashlib.blake2b(output.encode(), digest_size=16).hexdigest()
