"""Freud's binary logs: what they mean, the way to disk and back, and that damage is named and never loaded."""

from __future__ import annotations

import struct
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfdiff.errors import DamageError, RecordingError, UsageError
from perfdiff.records import freud_log
from perfdiff.records.freud_blocks import MOST_COLUMNS, Block, decode, encode, freud_name
from perfdiff.records.schema import Branch, Feature, Origin, SampleTable, Side

METRICS = ("wall_ns", "alloc_bytes", "lock_wait_ns", "lock_hold_ns", "page_faults")
FIRST = 50  # where the first sample of the log below stands
SAMPLE = 4 + 6 * 8  # bytes ahead of a sample's number of features


def text(value: str) -> bytes:
    return struct.pack("<H", len(value)) + value.encode()


def sample(uid: int, metrics: tuple[int, ...], features: list[tuple[int, int, int]], rest: bytes = bytes(8)) -> bytes:
    """Return a sample; `rest` is its branches and children, none unless given."""
    return struct.pack("<I6QI", uid, *metrics, len(features)) + b"".join(struct.pack("<QQq", *each) for each in features) + rest


def handmade() -> bytes:
    """Return a log of two calls, put together by the description of the format alone."""
    head = struct.pack("<I", 1) + b"f" + struct.pack("<I", 3)
    length = len(head)
    head += text("n") + text("mode") + text("clock")
    head += struct.pack("<I", 2) + (at_int := text("int")) + text("enum speed")
    n, mode, clock = length, length + 3, length + 9
    whole = length + 3 + 6 + 7 + 4
    speed = whole + len(at_int)
    branches = struct.pack("<IHI", 2, 7, 3) + b"\1\0\1" + struct.pack("<HI", 9, 0) + struct.pack("<I", 0)
    first = sample(1, (10, 64, 3, 4, 5, 6), [(n, whole, 100), (mode, speed, 2), (clock, 0, 2300)], branches)
    second = sample(2, (20, 0, 0, 0, 0, 0), [(n, whole, -5)], struct.pack("<III", 0, 1, 1))
    return head + struct.pack("<I", 2) + first + second


def written(folder: Path, data: bytes) -> Path:
    path = folder / "idcm_f_1.bin"
    path.write_bytes(data)
    return path


def test_a_log_by_the_description_is_read_with_units_kinds_and_absences(tmp_path: Path) -> None:
    table = freud_log.read(written(tmp_path, handmade()), run=3).tables["f"]
    assert {name: table.metrics[name].tolist() for name in METRICS} == {
        "wall_ns": [10_000, 20_000],
        "alloc_bytes": [64, 0],
        "lock_wait_ns": [4000, 0],
        "lock_hold_ns": [3000, 0],
        "page_faults": [11, 0],
    }
    assert table.features == (Feature("n", Origin.ARGUMENT), Feature("mode", Origin.ARGUMENT, True), Feature("clock", Origin.SYSTEM))
    np.testing.assert_array_equal(table.values, [[100, 2, 2300], [-5, np.nan, np.nan]])
    assert [branch.text for branch in table.branches] == ["branch 7", "branch 9"]
    assert table.executed.tolist() == [[3, 0], [0, 0]]
    assert table.taken.tolist() == [[2, 0], [0, 0]]
    assert table.run.tolist() == [3, 3]
    assert table.resolution_ns == 1000


def test_the_time_of_callees_in_the_same_log_is_taken_off(tmp_path: Path) -> None:
    log = freud_log.read(written(tmp_path, handmade()))
    assert log.tables["f"].metrics["self_ns"].tolist() == [10_000, 10_000]
    assert log.tables["f"].metrics["callee_calls"].tolist() == [0, 1]
    assert log.edges == {("f", "f"): (1, 10_000.0)}
    assert log.elsewhere == {}


def test_callees_that_are_not_in_the_log_are_counted(tmp_path: Path) -> None:
    data = bytearray(handmade())
    data[-4:] = struct.pack("<I", 77)
    log = freud_log.read(written(tmp_path, bytes(data)))
    assert log.tables["f"].metrics["self_ns"].tolist() == [10_000, 20_000]
    assert log.elsewhere == {"f": 1}


def blocks_of(*functions: str) -> tuple[Block, ...]:
    return tuple(
        replace(decode(handmade())[0], function=function, uid=np.array([2 * i, 2 * i + 1])) for i, function in enumerate(functions)
    )


def test_several_blocks_follow_each_other_with_offsets_of_the_whole_file(tmp_path: Path) -> None:
    log = freud_log.read(written(tmp_path, encode(blocks_of("f", "a_longer_name", "f"))))
    assert {name: len(table) for name, table in log.tables.items()} == {"f": 4, "a_longer_name": 2}
    assert log.tables["f"].call.tolist() == [1, 2, 3, 4]
    np.testing.assert_array_equal(log.tables["a_longer_name"].values[0], [100, 2, 2300])


def test_blocks_whose_offsets_were_not_moved_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, handmade() + handmade())
    with pytest.raises(RecordingError, match=r"expected the offset of a feature's name in this block, found 9"):
        freud_log.read(path)


def test_every_cut_is_told_with_the_byte_where_the_log_ends(tmp_path: Path) -> None:
    whole = encode(blocks_of("f", "g"))
    border = len(encode(blocks_of("f")))
    for size in range(len(whole)):
        path = written(tmp_path, whole[:size])
        if size == border:  # a log of one block less
            assert list(freud_log.read(path).tables) == ["f"]
            continue
        with pytest.raises(RecordingError, match=r"idcm_f_1\.bin: byte [\d,]+: expected .*, found ") as caught:
            freud_log.read(path)
        assert caught.value.slug == "log-damaged"


@pytest.mark.parametrize(
    ("offset", "value", "says"),
    [
        (0, 0, "byte 0: expected the length of a function's name, found 0"),
        (5, 10**6, "byte 5: expected the number of features, 512 at most, found 1,000,000"),
        (9, 0xFFFF, "byte 9: expected name 1 of 3 features, found the end"),
        (46, 2**32 - 1, "byte 46: expected the number of samples, at most 3 of which fit"),
        (FIRST + SAMPLE, 4, "byte 102: expected the number of features of sample 1, 3 at most, found 4"),
        (FIRST + SAMPLE + 4 + 72, 2**31, "byte 178: expected the number of branches of sample 1"),
        (FIRST + SAMPLE + 4 + 72 + 4 + 2, 2**31, "byte 184: expected the number of outcomes of branch 1 in sample 1"),
        (-8, 3, "expected the number of children of sample 2, 1 at most, found 3"),
    ],
)
def test_a_wrong_count_is_named_with_its_place(tmp_path: Path, offset: int, value: int, says: str) -> None:
    data = bytearray(handmade())
    at = offset % len(data)
    size = 2 if offset == 9 else 4
    data[at : at + size] = value.to_bytes(size, "little")
    with pytest.raises(RecordingError) as caught:
        freud_log.read(written(tmp_path, bytes(data)))
    assert says in str(caught.value)
    assert "copy the log again, record it anew, or leave it out" in str(caught.value)


@pytest.mark.parametrize(
    ("offset", "says"),
    [
        (FIRST + 4, "byte 54: expected the time of sample 1, found 18,446,744,073,709,551,615"),
        (FIRST + SAMPLE + 4, "byte 106: expected the offset of a feature's name in this block"),
        (FIRST + SAMPLE + 4 + 8, "byte 114: expected the offset of a type's name in this block, or 0"),
    ],
)
def test_a_value_that_cannot_be_is_named_with_its_place(tmp_path: Path, offset: int, says: str) -> None:
    data = bytearray(handmade())
    data[offset : offset + 8] = b"\xff" * 8
    with pytest.raises(RecordingError) as caught:
        freud_log.read(written(tmp_path, bytes(data)))
    assert says in str(caught.value)


def test_an_empty_file_a_folder_and_nothing_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="found an empty file"):
        freud_log.read(written(tmp_path, b""))
    for path in (tmp_path, tmp_path / "absent.bin"):
        with pytest.raises(RecordingError, match="is no file") as caught:
            freud_log.read(path)
        assert caught.value.slug == "log-unreadable"


@given(st.binary(max_size=400))
def test_random_bytes_end_in_blocks_or_in_damage(data: bytes) -> None:
    survives(data)


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=6), st.integers(0, 40), st.integers(0, 40))
def test_changed_bytes_end_in_blocks_or_in_damage(changes: list[tuple[int, int]], cut: int, more: int) -> None:
    data = bytearray(encode(blocks_of("f", "g")))
    for place, value in changes:
        data[place % len(data)] = value
    survives(bytes(data[: len(data) - cut]) + bytes(more))


def survives(data: bytes) -> None:
    """Fail on anything but blocks that fit into the data, or damage within it."""
    try:
        calls = sum(len(block) for block in decode(data))
    except DamageError as found:
        offset, calls = found.offset, 0
    else:
        offset = 0
    assert 0 <= offset <= len(data)
    assert calls * 64 <= len(data)


def test_a_log_that_claims_more_than_it_holds_takes_no_memory_for_it() -> None:
    names = struct.pack("<I", MOST_COLUMNS) + b"".join(text(f"x{i}") for i in range(MOST_COLUMNS))
    head = struct.pack("<I", 1) + b"f" + names + struct.pack("<I", 0)
    lies = (
        struct.pack("<I", 2**32 - 1) + b"f",
        head + struct.pack("<I", 2**32 - 1) + bytes(10_000),
        head + struct.pack("<I", 100) + sample(1, (0,) * 6, [], struct.pack("<I", 2**32 - 1)) + bytes(10_000),
    )
    tracemalloc.start()
    for lie in lies:
        with pytest.raises(DamageError):
            decode(lie)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * 2**20


counts = st.integers(0, 2**40).map(float)


@st.composite
def tables(draw: st.DrawFn) -> SampleTable:
    """Draw what a log can say: whole microseconds, whole numbers as features, each of which some call has."""
    n, features, branches = draw(st.integers(1, 6)), draw(st.integers(0, 3)), draw(st.integers(0, 2))

    def column(values: st.SearchStrategy[float]) -> np.ndarray:
        return np.array(draw(st.lists(values, min_size=n, max_size=n)))

    times = {name: 1000 * column(counts) for name in ("wall_ns", "lock_wait_ns", "lock_hold_ns")}
    metrics = times | {name: column(counts) for name in ("alloc_bytes", "page_faults")}
    kinds = draw(
        st.lists(
            st.sampled_from([(Origin.ARGUMENT, True), (Origin.ARGUMENT, False), (Origin.SYSTEM, False)]),
            min_size=features,
            max_size=features,
        )
    )
    names = draw(st.lists(st.text(max_size=5).filter(lambda name: name.isprintable()), min_size=features, max_size=features, unique=True))
    values = np.column_stack(
        [column(st.one_of(st.just(np.nan), st.integers(-(2**53), 2**53).map(float))) for _ in names] or [np.empty((n, 0))]
    )
    values[0] = np.nan_to_num(values[0])
    numbers = draw(st.lists(st.integers(0, 2**16 - 1), min_size=branches, max_size=branches, unique=True).map(sorted))
    executed = np.column_stack([column(st.integers(0, 9).map(float)) for _ in numbers] or [np.empty((n, 0))])
    taken = np.floor(executed * draw(st.sampled_from([0.0, 0.5, 1.0])))
    zeros = np.zeros(n, np.int64)
    return SampleTable(
        function=1,
        side=Side.BASE,
        metrics=metrics | {"self_ns": metrics["wall_ns"], "callee_calls": np.zeros(n)},
        features=tuple(Feature(name, origin, category) for name, (origin, category) in zip(names, kinds, strict=True)),
        values=values,
        branches=tuple(Branch(f"branch {number}", 0) for number in numbers),
        executed=executed,
        taken=taken,
        run=zeros,
        point=zeros,
        thread=zeros,
        call=np.arange(1, n + 1),
        weight=np.ones(n),
        resolution_ns=1000.0,
    )


def assert_same(found: SampleTable, expected: SampleTable) -> None:
    for name in SampleTable.__slots__:
        value, wanted = getattr(found, name), getattr(expected, name)
        if isinstance(wanted, np.ndarray):
            np.testing.assert_array_equal(value, wanted, err_msg=name)
        elif isinstance(wanted, dict):
            assert value.keys() == wanted.keys()
            for key in wanted:
                np.testing.assert_array_equal(value[key], wanted[key], err_msg=key)
        else:
            assert value == wanted, name


def as_written(table: SampleTable) -> SampleTable:
    """Return what is left of a table in a log that Freud's program takes."""
    time = table.metrics["wall_ns"]
    locked = {name: np.minimum(table.metrics[name], time) for name in ("lock_wait_ns", "lock_hold_ns")}
    names: list[str] = []
    for feature in table.features:
        name = freud_name(feature.name)
        names.append(name + "_" * next(i for i in range(len(names) + 1) if name + "_" * i not in names))
    features = tuple(replace(feature, name=name) for feature, name in zip(table.features, names, strict=True))
    return replace(table, metrics=dict(table.metrics) | locked, features=features)


@given(tables(), tables(), st.text(min_size=1, max_size=8).filter(lambda name: name.isprintable() and name != "g"))
def test_what_is_written_is_read_back_the_same(
    tmp_path_factory: pytest.TempPathFactory, first: SampleTable, second: SampleTable, name: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "idcm_roundtrip.bin"
    freud_log.write(path, {name: first, "g": second})
    log = freud_log.read(path)
    assert list(log.tables) == [name, "g"]
    assert_same(log.tables[name], as_written(first))
    assert_same(log.tables["g"], replace(as_written(second), function=2))


def test_what_a_log_cannot_say_is_cut_left_out_or_thinned(tmp_path: Path) -> None:
    table = freud_log.read(written(tmp_path, handmade())).tables["f"]
    finer = replace(
        table,
        metrics={"wall_ns": np.array([1999.0, np.nan]), "alloc_bytes": np.array([np.nan, 1.0])},
        values=np.array([[1.9, 1e300, np.inf], [1.0, 1.0, 1.0]]),
        branches=(Branch("i < n", 12), Branch("!found", 13)),
        executed=np.array([[1e6, 2.0], [0.0, 0.0]]),
        taken=np.array([[5e5, 2.0], [0.0, 0.0]]),
    )
    freud_log.write(tmp_path / "out.bin", {"f": finer})
    back = freud_log.read(tmp_path / "out.bin").tables["f"]
    assert back.metrics["wall_ns"].tolist() == [1000.0]
    assert back.metrics["alloc_bytes"].tolist() == [0.0]
    np.testing.assert_array_equal(back.values, [[1.0, np.nan, np.nan]])
    assert [branch.text for branch in back.branches] == ["branch 0", "branch 1"]
    assert back.executed.tolist() == [[freud_log.MOST_OUTCOMES, 2]]
    assert back.taken.tolist() == [[freud_log.MOST_OUTCOMES / 2, 2]]


def test_a_log_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        freud_log.write(tmp_path / "absent" / "x.bin", {})


def test_tables_of_several_logs_keep_all_features_and_branches(tmp_path: Path) -> None:
    first = freud_log.read(written(tmp_path, handmade())).tables["f"]
    second = replace(
        first,
        features=(Feature("m", Origin.ARGUMENT),),
        values=np.array([[7.0], [8.0]]),
        branches=(),
        executed=np.zeros((2, 0)),
        taken=np.zeros((2, 0)),
    )
    both = freud_log.joined([first, second])
    assert [feature.name for feature in both.features] == ["n", "mode", "clock", "m"]
    np.testing.assert_array_equal(both.values[:, 3], [np.nan, np.nan, 7, 8])
    np.testing.assert_array_equal(both.values[2], [np.nan, np.nan, np.nan, 7])
    assert both.executed.tolist() == [[3, 0], [0, 0], [0, 0], [0, 0]]


def test_a_hundred_thousand_calls_are_read_in_a_second(tmp_path: Path) -> None:
    """A million take some seconds (docs/formats.md); ten times slower than measured still passes on a busy machine."""
    import time

    call = replace(decode(handmade())[0], parent=np.empty(0, np.int64), child=np.empty(0, np.int64))
    many = np.zeros(100_000, np.int64)
    block = replace(
        call,
        uid=np.arange(len(many)),
        **{name: getattr(call, name)[many] for name in ("metrics", "values", "executed", "taken")},
    )
    path = written(tmp_path, encode([block]))
    start = time.process_time()
    assert len(freud_log.read(path).tables["f"]) == len(many)
    assert time.process_time() - start < 5


def taken_by_freud(data: bytes) -> dict[str, list[dict[str, int]]]:
    """Return the features of all calls by function, as Freud's program reads a log; fail where that program ends."""
    at = 0

    def number(kind: str) -> int:
        nonlocal at
        (value,) = struct.unpack_from(f"<{kind}", data, at)
        at += struct.calcsize(f"<{kind}")
        return int(value)

    def name(length: str) -> str:
        nonlocal at
        size = number(length)
        at += size
        return data[at - size : at].decode()

    def table() -> dict[int, str]:
        strings = {}
        for _ in range(number("I")):
            start = at
            strings[start] = name("H")
        return strings

    functions: dict[str, list[dict[str, int]]] = {}
    uids: set[int] = set()
    while at < len(data):
        calls = functions.setdefault(name("I"), [])
        names, types = table(), table()
        assert not [each for each in names.values() if ":" in each or "^" in each or not each or each.split() != [each]]
        for _ in range(number("I")):
            uid, time, _, holding, waiting, _, _ = (number(kind) for kind in "IQQQQQQ")
            assert uid not in uids
            uids.add(uid)
            assert waiting <= time
            assert holding <= time
            calls.append({})
            for _ in range(number("I")):
                feature, kind, value = number("Q"), number("Q"), number("q")
                assert kind in {0, *types}
                calls[-1][names[feature]] = value
            for _ in range(number("I")):
                number("H")
                outcomes = number("I")
                at += outcomes
            children = number("I")
            at += 4 * children
    return functions


def test_what_locks_took_and_how_features_are_named_is_written_as_freuds_program_takes_it(tmp_path: Path) -> None:
    """Its reader ends where a call waits, or holds a lock, for longer than it takes, and its regressions at a name with a colon."""
    table = freud_log.read(written(tmp_path, handmade())).tables["f"]
    names = ("std::list::size", "std.list.size", "unsigned n^2")
    locked = replace(
        table,
        metrics=dict(table.metrics)
        | {
            "wall_ns": np.array([5300.0, 900_000.0]),
            "lock_wait_ns": np.array([6100.0, 1000.0]),
            "lock_hold_ns": np.array([1000.0, 1_750_000.0]),
        },
        features=tuple(replace(feature, name=name) for feature, name in zip(table.features, names, strict=True)),
    )
    path = tmp_path / "idcm_f_2.bin"
    freud_log.write(path, {"f": locked, "g": locked})
    functions = taken_by_freud(path.read_bytes())
    assert functions["f"] == functions["g"] == [{"std..list..size": 100, "std.list.size": 2, "unsigned_n~2": 2300}, {"std..list..size": -5}]
    back = freud_log.read(path).tables["g"]
    assert back.metrics["lock_wait_ns"].tolist() == [5000.0, 1000.0]
    assert back.metrics["lock_hold_ns"].tolist() == [1000.0, 900_000.0]
