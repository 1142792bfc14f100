"""Runs in a user's circumstances: what they leave for each other, and do on a terminal, is no part of good news where head takes longer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from perfdiff import pipeline
from perfdiff.analysis.findings import Verdict
from perfdiff.analysis.verdicts.succession import points_slower_in_turn
from perfdiff.config import CompareConfig
from perfdiff.progress import Silent
from perfdiff.records.schema import Phase, Point, Run, Side
from perfdiff.report.sentences.catalogue import say
from programs import first_two

POINT = Point(0, "job", {}, "./job")
TOML = 'measure.budget_s = 3\ncounters.software = false\n[[workload]]\nname = "{name}"\ncommand = "python job.py {name}"\n'
WORK = "def work(n):\n    return sum(i * i % 7 for i in range(n))\n\n\n"
JOURNAL = f"""import os
import sys

{WORK}def keep():
    with open("journal", "a") as file:
        file.write("x")


keep()
print(work(250000))
"""
COMPACTS = JOURNAL.replace('write("x")\n', 'write("x")\n    if os.path.getsize("journal") % 4 == 0:\n        work(1500000)\n')
INDEX = f"""import os
import sys

{WORK}def made():
    with open("index", "w") as file:
        file.write("1")


def read():
    return os.path.exists("index") and open("index").read() == "1" or work(900000)


if sys.argv[1] == "make":
    made()
else:
    read()
print(work(200000))
"""
FILE = 'import os\n\n\ndef save():\n    open("out", "w").close()\n\n\nsave()\nprint(sum(i * i % 7 for i in range(300000)))\n'


def series(*head: float, base: float = 1.0, waits_ms: float = 0.0, every: int = 7, noise: float = 0.02) -> list[Run]:
    """Return runs of both sides that follow each other: head's take so many times as long as base's, each of about 100 ms."""
    rng = np.random.default_rng(7)
    runs = []
    for block, times in enumerate(head):
        for side, cost in ((Side.BASE, base), (Side.HEAD, times)):
            cpu_ns = 1e8 * cost * float(np.exp(rng.normal(0, noise)))
            wall_ns = cpu_ns + (1e6 * waits_ms if side is Side.HEAD and block % every == every // 2 else 0.0)
            runs.append(Run(len(runs), Phase.PLAIN, 0, side, block, wall_ns, cpu_ns, 1e6, None, None, ""))
    return runs


def half(runs: list[Run]) -> int:
    return len(runs) // 4 * 2


@pytest.mark.parametrize(
    "runs",
    [
        series(*[1.3] * 15),
        series(*np.linspace(1, 1.6, 15)),
        series(*([1.0] * 9 + [1.4] * 8) * 2),
        series(*([1.0] * 6 + [5.0]) * 2),
        series(*[1.0] * 15, waits_ms=700),
        series(*[1.0] * 15, waits_ms=60, every=1),
        series(*[1.3] * 6),
    ],
    ids=["always", "more and more", "from the middle on", "now and then", "waits now and then", "waits always", "few"],
)
def test_runs_behind_others_that_take_longer_in_head_are_seen(runs: list[Run]) -> None:
    (ratio,) = points_slower_in_turn([POINT], [runs[: half(runs)], runs[half(runs) :]], CompareConfig(), ()).values()
    assert ratio > 1.15


@pytest.mark.parametrize(
    ("runs", "compiled"),
    [
        (series(*[1.0] * 15), ()),
        (series(*[1.0] * 15, noise=0.3), ()),
        (series(*[1.03] * 15, noise=0.005), ()),
        (series(*[1.1] * 15), ("job",)),
        (series(*[1.0] * 14, 6.0), ()),
        (series(*[0.7] * 15), ()),
    ],
    ids=["the same", "noise", "less than is of interest", "what layout makes", "a single long one", "less"],
)
def test_runs_behind_others_that_take_no_longer_in_head_are_none(runs: list[Run], compiled: tuple[str, ...]) -> None:
    assert points_slower_in_turn([POINT], [runs[: half(runs)], runs[half(runs) :]], CompareConfig(), compiled) == {}


def test_equal_runs_are_rarely_suspected_and_hardly_ever_confirmed() -> None:
    """2,000 sequences of two series of eight rounds, of which runs vary by 20 % each."""
    rng = np.random.default_rng(11)
    suspected = confirmed = 0
    for _ in range(2000):
        costs = 1e8 * np.exp(rng.normal(0, 0.2, (16, 2)))
        runs = [
            Run(0, Phase.PLAIN, 0, side, block, cost, cost, 1e6, None, None, "")
            for block, pair in enumerate(costs)
            for side, cost in zip(Side, map(float, pair), strict=True)
        ]
        if points_slower_in_turn([POINT], [runs[:16]], CompareConfig(), ()):
            suspected += 1
            confirmed += bool(points_slower_in_turn([POINT], [runs[: half(runs)], runs[half(runs) :]], CompareConfig(), ()))
    assert suspected < 0.12 * 2000
    assert confirmed < 0.015 * 2000


def answered(room: Path, base: str, head: str, *names: str) -> tuple[Verdict, str]:
    toml = TOML.format(name=names[0]) + "".join(TOML[TOML.index("[[") :].format(name=name) for name in names[1:])
    files: tuple[Mapping[str, str], Mapping[str, str]] = ({"job.py": base, "perfdiff.toml": toml}, {"job.py": head})
    found = pipeline.compare(first_two(room, files), Silent()).findings
    return found.verdict, say(found.sentence)


@pytest.mark.integration
def test_what_head_does_at_each_fourth_run_is_not_called_harmless(tmp_path: Path) -> None:
    verdict, text = answered(tmp_path, JOURNAL, COMPACTS, "job")
    assert verdict is Verdict.INCONCLUSIVE, text
    assert "runs of `job` that follow each other in one tree take ×" in text


@pytest.mark.integration
def test_what_one_workload_leaves_for_another_is_not_called_harmless(tmp_path: Path) -> None:
    verdict, text = answered(tmp_path, INDEX, INDEX.replace('write("1")', 'write("2")'), "make", "ask")
    assert verdict is Verdict.INCONCLUSIVE, text
    assert "runs of `ask` that follow each other in one tree take ×" in text


@pytest.mark.integration
def test_a_head_that_fails_where_earlier_runs_were_made_is_not_called_harmless(tmp_path: Path) -> None:
    verdict, text = answered(tmp_path, FILE, FILE.replace('"w"', '"x"'), "job")
    assert verdict is Verdict.INCONCLUSIVE, text
    assert "`job` fails in head where earlier runs were made in the same tree" in text


@pytest.mark.integration
def test_what_both_sides_leave_for_later_runs_is_harmless(tmp_path: Path) -> None:
    verdict, text = answered(tmp_path, COMPACTS, COMPACTS.replace("for i in range(n)", "for i in range(0, n)"), "job")
    assert verdict is Verdict.UNCHANGED, text


AT_ONCE = f"""import os
import sys

{WORK}if {{asks}}:
    {{then}}
print(work(300000))
"""


KEY = "import termios; termios.tcflush(0, termios.TCIFLUSH); os.read(0, 1)"


def asking(asks: str, then: str = "work(900000)") -> str:
    return AT_ONCE.format(asks=asks, then=then)


@pytest.mark.integration
@pytest.mark.parametrize(
    "asks",
    [
        "sys.stdout.isatty()",
        "not __import__('select').select([0], [], [], 0.2)[0]",
        "not any(name.startswith(('PERFDIFF', 'PYTHONHASH')) for name in os.environ)",
    ],
    ids=["a terminal", "a wait for a key", "nothing of perfdiff's"],
)
def test_what_head_does_in_a_users_hands_alone_is_not_called_harmless(tmp_path: Path, asks: str) -> None:
    verdict, text = answered(tmp_path, asking("None"), asking(asks), "job")
    assert verdict is Verdict.INCONCLUSIVE, text
    assert "runs of `job` on a terminal, on all CPUs and without variables that perfdiff sets take ×" in text


@pytest.mark.integration
def test_a_head_that_fails_on_a_terminal_alone_is_not_called_harmless(tmp_path: Path) -> None:
    verdict, text = answered(tmp_path, asking("None"), asking("sys.stdout.isatty()", "sys.exit(1)"), "job")
    assert verdict is Verdict.INCONCLUSIVE, text
    assert "`job` fails in head where it prints on a terminal" in text


@pytest.mark.integration
def test_programs_that_wait_for_a_key_on_a_terminal_are_ended_and_no_matter(tmp_path: Path) -> None:
    verdict, text = answered(tmp_path, asking("sys.stdout.isatty()", KEY), asking("os.isatty(1)", KEY), "job")
    assert verdict is Verdict.UNCHANGED, text
