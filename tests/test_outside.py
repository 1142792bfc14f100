"""Files outside of the trees that builds or earlier runs wrote: who reads them did not start like the other side."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from perfdiff import pipeline
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.progress import Silent
from perfdiff.report.sentences.catalogue import say
from programs import by_whole_runs, first_two

TOML = """
build.command = "sh build.sh"
measure.budget_s = 3
counters.software = false
[[workload]]
name = "job"
command = "python job.py {n}"
parameters.n = [100, 200]
runs = 2
"""
BUILD = 'cp words.txt "$PLACE/words.txt"\n'
JOB = """
import os, sys
PLACE = os.environ["PLACE"]

def work(n):
    return sum(i * i % 7 for i in range(2000 * n))

def main(n):
    words = open(f"{PLACE}/words.txt").read().split()
    print(work(n * len(words)))

main(int(sys.argv[1]))
"""
ALONE = JOB.replace('f"{PLACE}/words.txt"', '"words.txt"')
KEEPING = ALONE.replace(
    "    print(work(n * len(words)))",
    """    kept = f"{PLACE}/{n}"
    if not os.path.exists(kept):
        open(kept, "w").write(str(work(n * len(words))))
    print(open(kept).read())""",
)

READING = KEEPING.replace(
    """    if not os.path.exists(kept):
        open(kept, "w").write(str(work(n * len(words))))
    print(open(kept).read())""",
    """    print(open(kept).read() if os.path.exists(kept) else work(n * len(words)))""",
)


def compared(room: Path, base: Mapping[str, str], head: Mapping[str, str]) -> Findings:
    """Compare a job that reads what its build installed, or what it kept, in a place of both sides'."""
    place = room / "place"
    place.mkdir()
    history = ({"job.py": JOB, "build.sh": BUILD, "words.txt": "one\n", "perfdiff.toml": TOML, **base}, head)
    request = first_two(room, history, {**os.environ, "PLACE": str(place)})
    return pipeline.compare(by_whole_runs(request), Silent()).findings


@pytest.mark.integration
@pytest.mark.parametrize(
    ("base", "head", "names"),
    [
        ({}, {"words.txt": "one two three\n"}, {"words.txt"}),
        ({"job.py": ALONE, "build.sh": "true\n"}, {"job.py": KEEPING}, {"100", "200"}),
        ({"job.py": KEEPING, "build.sh": "true\n"}, {"job.py": READING}, {"100", "200"}),
    ],
    ids=["both builds install one file", "head keeps its results", "base alone keeps results that both read"],
)
def test_good_news_of_sides_that_did_not_start_alike_is_none(
    base: Mapping[str, str], head: Mapping[str, str], names: set[str], tmp_path: Path
) -> None:
    found = compared(tmp_path, base, head)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert names & {Path(file).name for file in found.outside if Path(file).parent == tmp_path / "place"}
    assert "did not start alike" in say(found.sentence)


@pytest.mark.integration
def test_good_news_of_sides_that_read_the_checkout_is_none(tmp_path: Path) -> None:
    room = tmp_path / "project"
    found = compared(tmp_path, {"job.py": JOB.replace("{PLACE}", str(room)), "build.sh": "true\n"}, {"words.txt": "one two three\n"})
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.outside == (str(room / "words.txt"),)


@pytest.mark.integration
def test_what_both_revisions_have_alike_may_be_read_from_the_checkout(tmp_path: Path) -> None:
    job = JOB.replace("{PLACE}", str(tmp_path / "project"))
    found = compared(tmp_path, {"job.py": job, "build.sh": "true\n", "other.txt": "one\n"}, {"other.txt": "two\n"})
    assert found.verdict is Verdict.UNCHANGED
    assert found.outside == ()


@pytest.mark.integration
def test_inputs_are_read_from_the_checkout_by_intent(tmp_path: Path) -> None:
    job = ALONE.replace('"words.txt"', "sys.argv[2]")
    toml = TOML.replace("{n}", "{n} {input}").replace("parameters.n", 'inputs = ["words.txt"]\nparameters.n')
    found = compared(tmp_path, {"job.py": job, "build.sh": "true\n", "perfdiff.toml": toml}, {"words.txt": "one two three\n"})
    assert found.verdict is Verdict.UNCHANGED
    assert found.outside == ()


@pytest.mark.integration
def test_a_cache_that_both_fill_is_no_matter_and_is_put_back(tmp_path: Path) -> None:
    found = compared(tmp_path, {"job.py": KEEPING, "build.sh": "true\n"}, {"job.py": f"{KEEPING}# as before\n"})
    assert found.verdict is Verdict.UNCHANGED
    assert found.outside == ()
    assert {path.name for path in (tmp_path / "place").iterdir()} == {"100", "200"}


@pytest.mark.integration
def test_an_empty_file_says_nothing_to_who_opens_it(tmp_path: Path) -> None:
    twice = ALONE.replace("    print(", "    work(n * len(words))\n    print(")
    locking = ALONE.replace("    print(", '    open(f"{PLACE}/lock", "a").close()\n    print(')
    found = compared(tmp_path, {"job.py": twice, "build.sh": "true\n"}, {"job.py": locking})
    assert (tmp_path / "place/lock").exists()
    assert found.verdict is Verdict.IMPROVEMENT
    assert found.outside == ()


@pytest.mark.integration
def test_good_news_of_a_head_that_lets_others_run_before_it_is_none(tmp_path: Path) -> None:
    batch = "os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))"  # which costs least of all where the tests' machine is busy
    toml = TOML.replace("measure.budget_s = 3", "measure.budget_s = 8")
    base = {"job.py": ALONE, "build.sh": "true\n", "perfdiff.toml": toml}
    found = compared(tmp_path, base, {"job.py": ALONE.replace("main(int", f"{batch}\nmain(int")})
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "ask the kernel for another priority" in say(found.sentence)
