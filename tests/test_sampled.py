"""Profiles by sampling: each form is read, and two sides tell which functions take more beside the others, and no more than that."""

from __future__ import annotations

import gzip
import json
import random
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from perfdiff import cli
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.cli import samples
from perfdiff.config import CompareConfig
from perfdiff.errors import PerfdiffError, RecordingError, UsageError
from perfdiff.outcome import analysed
from perfdiff.progress import Silent
from perfdiff.records.sampled import perfscript, reading
from perfdiff.records.sampled.samples import FunctionSamples, stable
from perfdiff.report import document
from perfdiff.report.renderers import RENDERERS
from perfdiff.report.sentences.catalogue import noted, say
from studies.support import mutation
from test_report_profiles import compared as made_findings

FOLDED = " 1\nmain;parse;lex 30\nmain;parse 12\nmain;render;escape (app.py:12) 8\nmain;lex 2\n"
PERF = """\
sort 4242 [001] 12345.678901:     250000 cpu-clock:pppH:
\t    55d0c0a1 partition+0x1f (/usr/bin/sort)
\t    55d0c0b2 main+0x10 (/usr/bin/sort)

sort 4242 [001] 12345.679151:     250000 cpu-clock:pppH:
\t    7f00aa11 [unknown] (/lib/libc.so.6)
\t    55d0c0b2 main+0x10 (/usr/bin/sort)

sort 4242 12345.679401:     250000 cpu-clock:pppH:      55d0c0a1 partition+0x2b (/usr/bin/sort)
sort 4242 12345.679651:     99 page-faults:      55d0c0a1 other+0x2b (/usr/bin/sort)
"""
EVENTS = [{"type": kind, "frame": frame, "at": at} for kind, frame, at in (("O", 0, 1), ("O", 1, 4), ("C", 1, 9), ("C", 0, 10))]
SPEEDSCOPE = {
    "$schema": "https://www.speedscope.app/file-format-schema.json",
    "shared": {"frames": [{"name": "main"}, {"name": "parse"}]},
    "profiles": [
        {"type": "sampled", "unit": "milliseconds", "startValue": 0, "endValue": 3, "samples": [[0, 1], [0], []], "weights": [2, 1, 9]},
        {"type": "evented", "unit": "milliseconds", "startValue": 0, "endValue": 10, "events": EVENTS},
    ],
}


def pprof() -> bytes:
    """Return what perfdiff exports itself: `f1` takes 3 ms of its own in head, `f2` 5 ms."""
    findings = made_findings({1: (1e6, 3e6), 2: (5e6, 5e6)}, (None, 1, 1, 8e6), (1, 2, 4, 5e6))
    exported = RENDERERS["pprof"](document.build(findings, lambda function, side: None))
    assert isinstance(exported, bytes)
    return exported


def read(tmp_path: Path, content: str | bytes) -> FunctionSamples:
    path = tmp_path / "profile"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert reading.holds_profiles(path)
    (profile,) = reading.read_side(path)
    return profile


@pytest.mark.parametrize(
    ("content", "form", "own", "unit_ns"),
    [
        (FOLDED, "folded stacks", {"lex": 32, "parse": 12, "escape (app.py)": 8, "(no name)": 1}, None),
        (PERF, "perf script, cpu-clock", {"partition": 500_000, "[unknown in libc.so.6]": 250_000}, 1.0),
        (json.dumps(SPEEDSCOPE), "speedscope", {"parse": 7, "main": 5}, 1e6),
        (pprof(), "pprof, time_head", {"f1": 3e6, "f2": 5e6}, 1.0),
    ],
    ids=["folded", "perf", "speedscope", "pprof"],
)
def test_each_form_tells_what_functions_take_themselves(
    tmp_path: Path, content: str | bytes, form: str, own: Mapping[str, float], unit_ns: float | None
) -> None:
    profile = read(tmp_path, content)
    assert (profile.form, profile.unit_ns) == (form, unit_ns)
    assert {name: amount for name, amount in profile.own.items() if amount} == own


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("alloc::vec::Vec<T>::push::h0123456789abcdef", "alloc::vec::Vec<T>::push"),
        ("memcpy+0x1f0", "memcpy"),
        ("render (app/views.py:120)", "render (app/views.py)"),
        ("main.(*Tree).Insert", "main.(*Tree).Insert"),
        (" ", "(no name)"),
    ],
)
def test_names_are_the_same_in_every_build(written: str, name: str) -> None:
    assert stable(written) == name


@pytest.mark.parametrize("text", ["", "no profile\n", '{"benchmarks": []}', "a;b c\n", "BenchmarkSort-8 100 12 ns/op\n"])
def test_what_is_no_profile_is_left_to_others(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    assert not reading.holds_profiles(path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"main;a 3 4\nmain;b 1 2\n", "two numbers"),
        (gzip.compress(b"\x0a\xff", mtime=0), "damaged"),
        (gzip.compress(b"", mtime=0), "damaged"),
        (pprof()[:-20], "ends in the middle"),
        (b"main;a 0\n", "no samples"),
        (json.dumps({**SPEEDSCOPE, "shared": {"frames": []}}).encode(), "damaged"),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path: Path, content: bytes, says: str) -> None:
    with pytest.raises((UsageError, RecordingError), match=says):
        read(tmp_path, content)


@pytest.mark.parametrize(
    ("perf", "expected"),
    [
        (f"#!/bin/sh\nhead -c 200000 /dev/zero >&2\ncat <<'END'\n{PERF}END\n", {"partition": 500000.0, "[unknown in libc.so.6]": 250000.0}),
        ("#!/bin/sh\necho 'failed to process type: 0' >&2\nexit 234\n", "exited 234: failed to process type: 0"),
        (None, "perf script -i profile"),
    ],
    ids=["read", "refused", "no perf"],
)
def test_what_perf_writes_is_read_by_perf(
    perf: str | None, expected: dict[str, float] | str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("env", "cat", "head"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    if perf is not None:
        (programs / "perf").write_text(perf)
        (programs / "perf").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    if isinstance(expected, str):
        with pytest.raises((UsageError, RecordingError), match=expected):
            read(tmp_path, b"PERFILE2\0\0")
    else:
        assert read(tmp_path, b"PERFILE2\0\0").own == expected


@pytest.mark.parametrize("line", ["x{}", "a 1 1.1: cpu-clock:\n 12 a{}b"], ids=["sample", "frame"])
def test_lines_of_many_blanks_take_no_time_that_grows_with_their_square(line: str) -> None:
    """A second is a hundred times what it takes, and by a pattern whose parts share blanks these were minutes."""
    begun = time.process_time()
    assert perfscript.read(line.format(" " * 100_000)) is None
    assert time.process_time() - begun < 1


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="bytes when it is decompressed"):
        read(tmp_path, gzip.compress(bytes(300_000_000), compresslevel=1))


def test_damaged_profiles_end_in_a_message(tmp_path: Path) -> None:
    rng, ends = random.Random(5), set()
    texts, whole = [FOLDED, PERF, json.dumps(SPEEDSCOPE)], gzip.decompress(pprof())
    for _ in range(600):
        if rng.random() < 0.5:
            content = gzip.compress(mutation.changed_bytes(rng, [whole]), 1)
        else:
            content = mutation.changed_text(rng, [rng.choice(texts)])
        path = tmp_path / "profile"
        path.write_bytes(content)
        try:
            ends.add(type(reading.read_side(path)[0]).__name__ if reading.holds_profiles(path) else "no profile")
        except PerfdiffError as error:
            ends.add(str(error.slug))
    assert {"FunctionSamples", "results-damaged"} <= ends <= {"FunctionSamples", "no profile", "results-damaged", "results-empty"}


COSTS = {"parse": 30.0, "lex": 20.0, "render": 25.0, "escape": 10.0, "collect": 8.0, "flush": 6.0, "tiny": 0.3}


def profiled(folder: Path, seed: int, files: int, factors: Mapping[str, float]) -> Path:
    """Write profiles of a program whose functions take `factors` as long: 20,000 samples a run, functions 2 % apart from run to run."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    for number in range(files):
        costs = np.array([cost * factors.get(name, 1.0) for name, cost in COSTS.items()]) * np.exp(0.02 * rng.standard_normal(len(COSTS)))
        counts = rng.poisson(20_000 * costs / sum(COSTS.values()))
        lines = [f"main;{name} {count}\n" for name, count in zip(COSTS, counts, strict=True) if count]
        (folder / f"{number}.folded").write_text("".join(lines))
    return folder


def judged(tmp_path: Path, factors: Mapping[str, float], *, files: int = 6, seed: int = 1) -> Findings:
    base, head = profiled(tmp_path / "base", 2 * seed, files, {}), profiled(tmp_path / "head", 2 * seed + 1, files, factors)
    recorded = samples.profiles(base, head)
    assert recorded is not None
    return analysed(recorded, CompareConfig(), Silent()).findings


def test_the_function_that_takes_more_beside_the_others_is_a_regression(tmp_path: Path) -> None:
    findings = judged(tmp_path, {"escape": 1.5})
    assert findings.verdict is Verdict.REGRESSION
    first = findings.functions[0]
    assert first.info.name == "escape"
    assert [each.info.name for each in findings.functions if each.verdict is Verdict.REGRESSION] == ["escape"]
    ratio = first.metrics["wall_ns"].ratio
    assert ratio is not None
    assert ratio.low < 1.5 < ratio.high
    assert "tiny" not in {each.info.name for each in findings.functions}, "less than 1 % of the samples"


def test_one_that_takes_half_makes_no_other_slower_and_is_no_good_news_alone(tmp_path: Path) -> None:
    findings = judged(tmp_path, {"parse": 0.5})
    assert findings.verdict is Verdict.INCONCLUSIVE
    assert "how long a run takes" in say(findings.sentence)
    verdicts = {each.info.name: each.verdict for each in findings.functions}
    assert verdicts["parse"] is Verdict.IMPROVEMENT
    assert Verdict.REGRESSION not in verdicts.values()
    relative = next(note.text for note in map(noted, findings.notes) if note.slug == "profiles-relative")
    assert "a whole run of head then takes ×0.8" in relative


@pytest.mark.statistical
def test_the_same_program_is_never_slower_and_never_said_to_be_safe(tmp_path: Path) -> None:
    for seed in range(6):
        (tmp_path / str(seed)).mkdir()
        assert judged(tmp_path / str(seed), {}, seed=100 + seed).verdict is Verdict.INCONCLUSIVE


def test_one_profile_a_side_decides_nothing(tmp_path: Path) -> None:
    findings = judged(tmp_path, {"escape": 3.0}, files=1)
    assert findings.verdict is Verdict.INCONCLUSIVE
    assert any(note.slug == "results-lacking" for note in map(noted, findings.notes))


def test_a_function_that_only_head_has_is_told(tmp_path: Path) -> None:
    base, head = (profiled(tmp_path / name, seed, 6, {}) for seed, name in enumerate(("base", "head")))
    for file in head.iterdir():
        file.write_text(file.read_text() + "main;sleep 4000\n")
    recorded = samples.profiles(base, head)
    assert recorded is not None
    findings = analysed(recorded, CompareConfig(), Silent()).findings
    assert (findings.verdict, findings.functions[0].info.name) == (Verdict.REGRESSION, "sleep")


def test_profiles_of_other_forms_or_programs_are_not_compared(tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("folded", "speedscope", "other", "text")}
    files["folded"].write_text(FOLDED)
    files["speedscope"].write_text(json.dumps(SPEEDSCOPE))
    files["other"].write_text("main;elsewhere 100\n")
    files["text"].write_text("nothing of the kind\n")
    for first, second, says in (
        ("folded", "speedscope", "two of one form"),
        ("folded", "other", "samples on both sides"),
        ("folded", "text", "only be compared with a profile"),
    ):
        with pytest.raises(UsageError, match=says):
            samples.profiles(files[first], files[second])
    assert samples.profiles(files["text"], files["text"]) is None


def test_the_command_exits_with_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, head = profiled(tmp_path / "base", 1, 6, {}), profiled(tmp_path / "head", 2, 6, {"lex": 2.0})
    with pytest.raises(SystemExit) as left:
        cli.main(["compare", str(base), str(head), "-q"])
    assert left.value.code == 1
    told = capsys.readouterr().out
    assert "Regression: `lex`" in told
    assert "functions, by profiles" in told
