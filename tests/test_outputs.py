"""The shape of what a run prints and writes: what is a result, and what varies from run to run."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from perfdiff import temporary
from perfdiff.collect.execution import outputs
from perfdiff.collect.execution.echoes import Echoes
from perfdiff.collect.execution.masking import numbers_by_line, without_numbers
from perfdiff.collect.execution.outputs import FILES, Stream, files_written, shape_of
from perfdiff.collect.execution.sketching import CLOSE_BYTES, DrawnLines
from perfdiff.records.behaviour import REST, Shape


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (b"sum 7\n", b"sum 7\n", {"exact", "timeless", "masked"}),
        (b"a 1\nb 2\n", b"b 2\na 1\n", {"masked"}),
        (b"a 1\n  b 2\n", b"a 1\nb 2\n", {"masked"}),
        (b"a  took 9 ms\nb\n", b"a took 12 ms\nb\n", {"timeless", "masked"}),
        (b"sum 7\ntook 12.5 ms\n", b"sum 7\ntook 1.25 s\n", {"timeless", "masked"}),
        (b"sum 7\nelapsed: 3\n", b"sum 7\nelapsed: 1\n", {"timeless", "masked"}),
        (b"at 21:34:07 sum 7\n", b"at 09:02:51 sum 7\n", {"timeless", "masked"}),
        (b"pid 771\nsum 7\n", b"pid 99\nsum 7\n", {"timeless", "masked"}),
        (b"sum 7\n", b"sum 8\n", {"masked"}),
        (b"   7 of 10\n", b"1234 of 10\n", {"masked"}),
        (b"<Item object at 0x7f12ab>\n", b"<Item object at 0x55d1>\n", {"masked"}),
        (b"Item@1b6d3586\n", b"Item@4554617c\n", {"masked"}),
        (b"error 1.5e-05\n", b"error 0.02\n", {"masked"}),
        (b"sum 7\n", b"error: no input\n", set()),
        (b"sum 7\n", b"", set()),
        (b"sum 7\nsum 7\n", b"sum 7\n", set()),
    ],
)
def test_texts_are_alike_in_all_but_what_varies(one: bytes, other: bytes, alike: set[str]) -> None:
    shapes = shape_of(one), shape_of(other)
    assert {form for form in ("exact", "timeless", "masked") if getattr(shapes[0], form) == getattr(shapes[1], form)} == alike


def test_text_in_chunks_has_the_shape_of_the_whole() -> None:
    stream = Stream()
    for chunk in (b"a 1\nb", b" 2\n", b"c"):
        stream.read(chunk)
    assert stream.shape() == shape_of(b"a 1\nb 2\nc")
    assert (stream.shape().lines, stream.shape().bytes) == (3, 9)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_path_of_a_build_is_the_same_on_both_sides(size: int, tmp_path: Path) -> None:
    shapes = []
    for name in ("0123abcd", "4567cdef"):
        (tmp_path / "linked").unlink(missing_ok=True)
        (tmp_path / "linked").symlink_to(tmp_path / name)
        for own in (tmp_path / name, tmp_path / "linked"):
            stream, text = Stream(own), f"at {tmp_path / name}/source, ~ is {own}/home\n{str(own)[:-1]}".encode()
            for start in range(0, len(text), size):
                stream.read(text[start : start + size])
            shapes.append(stream.shape())
    assert shapes[0].exact != shapes[2].exact  # they end in a part of the path
    assert [shape.lines for shape in shapes] == [2] * 4
    whole = [shape_of(f"at .../source, ~ is .../home\n{str(own)[:-1]}".encode()) for own in (tmp_path / "0123abcd", tmp_path / "linked")]
    assert shapes[:2] == whole


def test_long_text_is_counted_and_digested_and_not_kept() -> None:
    stream = Stream()
    for _ in range(100):
        stream.read(b"7\n" * CLOSE_BYTES)
    shape = stream.shape()
    assert (shape.lines, shape.bytes, shape.timeless, shape.masked) == (100 * CLOSE_BYTES, 200 * CLOSE_BYTES, "", "")
    assert len(stream._drawn.text()) <= CLOSE_BYTES
    assert shape.exact != shape_of(b"7\n").exact


@pytest.mark.parametrize(
    "text", [b"7" * CLOSE_BYTES, b"1:" * (CLOSE_BYTES // 2), b"abcde5" * (CLOSE_BYTES // 6), b"time " * (CLOSE_BYTES // 5)]
)
def test_lines_without_an_end_are_looked_at_in_time_that_grows_with_their_length(text: bytes) -> None:
    started = time.process_time()
    shape_of(text)
    assert time.process_time() - started < 5  # looked at from each of their digits on, they would take minutes


def test_numbers_and_their_units_are_one_digit() -> None:
    assert without_numbers(b"12 of 3,400 in 2.5 ms, then 3 seconds; 0x7ffab") == b"0 of 0 in 0s, then 0s; 0"


def test_files_go_by_their_names_without_numbers_and_caches_are_none(tmp_path: Path) -> None:
    for name in ("out.txt", "made/part-1.txt", "made/part-22.txt", "made/__pycache__/a.pyc", ".cache/b"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{name}\n")
    files = files_written(tmp_path, ["made", "out.txt", ".cache", "gone"])
    assert files == {
        "made/part-0.txt": files["made/part-0.txt"],
        "out.txt": shape_of(b"out.txt\n"),
    }
    assert (files["made/part-0.txt"].lines, files["made/part-0.txt"].bytes) == (2, 33)


def test_of_many_files_the_first_have_names(tmp_path: Path) -> None:
    names = [f"{chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(FILES + 5)]
    for name in names:
        (tmp_path / name).write_text("x")
    files = files_written(tmp_path, names)
    assert len(files) == FILES + 1
    assert files[REST].bytes == 5


def test_large_files_are_digested_and_larger_ones_have_a_size_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "large").write_bytes(b"x\n" * CLOSE_BYTES)
    for number in range(6):  # beyond what is looked at closely
        (tmp_path / f"{'abcdef'[number]}of many").write_bytes(b"y\n" * (CLOSE_BYTES // 2))
    assert files_written(tmp_path, ["large"])["large"] == shape_of(b"x\n" * CLOSE_BYTES)
    files = files_written(tmp_path, ["large", *(f"{'abcdef'[number]}of many" for number in range(6))])
    assert files["large"] == replace(shape_of(b"x\n" * CLOSE_BYTES), sketch=None)
    many = [files[f"{'abcdef'[number]}of many"] for number in range(6)]
    assert {(shape.lines, shape.bytes, shape.exact) for shape in many} == {(CLOSE_BYTES // 2, CLOSE_BYTES, many[0].exact)}
    assert [shape.masked != "" for shape in many] == [True] * 4 + [False] * 2
    monkeypatch.setattr(outputs, "DIGESTED_BYTES", CLOSE_BYTES)
    assert files_written(tmp_path, ["large"])["large"] == Shape(0, 2 * CLOSE_BYTES, "", "", "")


def test_files_are_found_however_deep_they_lie(tmp_path: Path) -> None:
    place, depth = os.open(tmp_path, os.O_RDONLY), 1500
    for _ in range(depth):
        os.mkdir("d", dir_fd=place)
        below = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(os.open("out", os.O_WRONLY | os.O_CREAT, dir_fd=place))
    os.close(place)
    try:
        assert list(files_written(tmp_path, ["d"])) == ["d/" * depth + "out"]
    finally:
        temporary.remove(tmp_path)
    assert not tmp_path.exists()


def drawn(text: bytes, chunk: int) -> tuple[int, bytes]:
    lines = DrawnLines()
    for start in range(0, len(text), chunk):
        lines.read(text[start : start + chunk])
    return lines.level, lines.text()


def test_of_long_texts_the_same_lines_are_drawn_however_they_arrive_and_all_kinds_of_them() -> None:
    text = b"".join(b"%c%d\n" % (97 + number % 4, number // 4) for number in range(4 * CLOSE_BYTES // 4))
    level, lines = drawn(text, 1 << 16)
    assert level > 1
    assert CLOSE_BYTES // 4 < len(lines) <= CLOSE_BYTES
    assert {line[:1] for line in lines.split(b"\n")} == {b"a", b"b", b"c", b"d"}
    assert {drawn(text, chunk) for chunk in (999, 1 << 14, len(text))} == {(level, lines)}


def test_a_line_without_an_end_is_drawn_as_far_as_is_looked_at() -> None:
    assert {drawn(b"1 " * CLOSE_BYTES, chunk) for chunk in (999, 1 << 16)} == {(1, (b"1 " * CLOSE_BYTES)[: CLOSE_BYTES - 1])}


@pytest.mark.parametrize(
    ("line", "numbers"),
    [
        (b"item 22: 5 time 0.0012", [b"22", b"5", b""]),
        (b"item 22: 5 took 3 ms", [b"22", b"5", b""]),
        (b"elapsed: 3", [b""]),
        (b"wall 3 user 2 sys 1", [b"", b"", b""]),
        (b"time (mean, max): 3, 4 of 100 items", [b"", b"", b"100"]),
        (b"5 items, 12 items/s", [b"5", b""]),
        (b"time of n=100: 0.5", [b"", b""]),  # whichever it is
        (b"elapsed 3, each 0.25, sum 0.12345", [b"", b"", b"0.12345"]),
        (b"sum 7 of 0.5", [b"7", b"0.5"]),
    ],
)
def test_numbers_count_on_lines_of_time_where_others_are_the_times(line: bytes, numbers: list[bytes]) -> None:
    assert [*numbers_by_line(line)] == [numbers]


@pytest.mark.parametrize(
    ("values", "command", "text", "taken_out"),
    [
        ((1000,), "./w 1000", b"n=1000: 1,000 of 1e3, 1000.0, 0x3e8, 1001", b"n=$: $ of $, $, $, 1001"),
        (("fast", 0.5), "./w fast 0.5", b"fast mode, fastest 0.50: 0", b"$ mode, fastest $: 0"),
        (("data/in-7.txt",), "./w data/in-7.txt", b"read in-7.txt and data/in-7.txt", b"read $ and $"),
        ((), "./w --rows=12 -k 5", b"12 rows, 5, 6", b"$ rows, $, 6"),
        ((1000,), "./w 1000", b"1000 took 12 ms, 7", b"$ took s, 7"),
        ((1000,), "./w 1000", b"took 12 for 1_000", b"took  for $"),
        ((1000,), "./w 1000", b"sum 7", None),
    ],
)
def test_what_repeats_the_command_is_taken_out(values: tuple[float | str, ...], command: str, text: bytes, taken_out: bytes | None) -> None:
    assert Echoes.of(values, command).taken_out(text) == taken_out
