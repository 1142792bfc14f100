"""The reader of recordings: values, damage, truncation, and that arbitrary bytes end in a RecordingError or a Recording."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfdiff.errors import RecordingError
from perfdiff.languages import line_counts
from perfdiff.records import recording
from perfdiff.records.plan import Mode
from perfdiff.records.recording import Recording
from perfdiff.records.type_names import readable

HEADER_SIZE = 4096
HEADER_FIELDS = 3736  # bytes of a header that are in use
ENDED, FULL, ALLOCATIONS, LOCKS = 1, 2, 4, 8
ABSENT = 2**64 - 1
TICK = 256  # time units
START = (1000, 5000)  # ticks, ns
END = (3000, 6000)  # so half a nanosecond a tick
COUNTERS = ("cpu_ns", "blocks", "switches")


def block(kind: int, payload: bytes) -> bytes:
    padded = payload + bytes(-len(payload) % 8)
    return struct.pack("<IIQ", kind, 0, 16 + len(padded)) + padded


def totals(
    probe: int,
    *,
    mode: Mode = Mode.TIME,
    calls: int,
    finished: int,
    timed: int,
    wall: int,
    self_time: int,
    weight: int | None = None,
    outer: tuple[int, int] | None = None,
    unfinished: int = 0,
    resources: Sequence[int] = (0, 0, 0, 0),
    lengths: Sequence[int] = (0,) * 32,
    reads: Sequence[int] = (0, 0),
    flagged: int = 0,
    counters: Sequence[int] = (0, 0, 0),
) -> bytes:
    weight = timed if weight is None else weight
    outer_finished, outer_weight = outer or (finished, weight)
    counts = (calls, finished, outer_finished, timed, weight, outer_weight, unfinished)
    return block(
        1,
        struct.pack(
            "<II7Q2q4Q32I6Q", probe, mode, *counts, wall * TICK, self_time * TICK, *resources, *lengths, *reads, flagged, *counters
        ),
    )


def edges(rows: Sequence[tuple[int, int, int, int]], *, places: int) -> bytes:
    unused = places - len(rows)
    used = b"".join(struct.pack("<IIQq", caller, callee, calls, wall * TICK) for caller, callee, calls, wall in rows)
    return block(2, struct.pack("<II", places, 0) + used + bytes(24 * unused))


def sample(
    call: int,
    cells: Sequence[int],
    mask: Sequence[int],
    *,
    wall: int = 0,
    own: int | None = None,
    rest: Sequence[int] = (0,) * 5,
    counters: Sequence[int] = (ABSENT,) * 3,
    weight: int = 1,
) -> bytes:
    return struct.pack(
        f"<Q2q9Q{len(mask)}Q{len(cells)}Q",
        call,
        wall * TICK,
        (wall if own is None else own) * TICK,
        *rest,
        weight,
        *counters,
        *mask,
        *cells,
    )


def samples(probe: int, cells: int, records: Sequence[bytes], *, first: int = 0) -> bytes:
    return block(3, struct.pack("<IIII", probe, first, len(records), cells) + b"".join(records))


def type_name(vtable: int, name: str) -> bytes:
    return block(4, struct.pack("<QII", vtable, len(name), 0) + name.encode())


def extent(thread: int, *blocks: bytes, room: int = 64) -> bytes:
    body = b"".join(blocks) + bytes(room)
    return struct.pack("<IIQ", 0x58454450, thread, 16 + len(body)) + body


def file(*extents: bytes, flags: int = ENDED | ALLOCATIONS | LOCKS, probes: int = 10, newest: int = 1, version: int = 3) -> bytes:
    body = b"".join(extents)
    pairs = (*START, *END, *END) if newest else (*START, *END, 0, 0)
    header = struct.pack("<8s8I", b"PDREC1\0\0", version, 0x01020304, HEADER_SIZE, flags, 77, 66, probes, newest)
    header += struct.pack("<6Q2Q5Q", *pairs, 123, HEADER_SIZE + len(body), *(10 * TICK, 40 * TICK, 20 * TICK, 60 * TICK, 18 * TICK))
    header += struct.pack("<1024s1024sII", b"/bin/program", b"program", len(COUNTERS), 0)
    header += b"".join(struct.pack("<56sII", name.encode(), 2 * (name == "blocks"), 0) for name in COUNTERS)
    return header.ljust(HEADER_SIZE, b"\0") + body


def two_threads() -> bytes:
    """Return a recording in which probe 1 calls probe 2; thread 1 timed half of probe 2's calls."""
    first = extent(
        1,
        totals(
            1,
            mode=Mode.SAMPLE,
            calls=1,
            finished=1,
            timed=1,
            wall=1000,
            self_time=200,
            resources=(50, 2, 30, 40),
            lengths=(*range(31), 2**32 - 1),
            reads=(1, 70),
        ),
        totals(2, calls=8, finished=8, timed=4, weight=8, wall=800, self_time=600, flagged=4, counters=(70, 8, ABSENT)),
        edges([(0, 1, 1, 1000), (1, 2, 8, 800)], places=4),
        samples(
            1, 3, [sample(1, (7, 2**64 - 1, 9), (0b101,), wall=1000, rest=(8, 50, 2, 30, 40), counters=(ABSENT, 5, ABSENT)), bytes(8 * 16)]
        ),
    )
    second = extent(
        2,
        totals(2, calls=2, finished=2, timed=2, wall=200, self_time=200),
        edges([(0, 2, 2, 200)], places=4),
    )
    process = extent(0, type_name(4096, "N6shapes6CircleE"))
    return file(process, first, second)


def read(data: bytes, folder: Path) -> Recording:
    path = folder / "one.pdrec"
    path.write_bytes(data)
    return recording.read(path)


def test_values_come_back_in_nanoseconds(tmp_path: Path) -> None:
    record = read(two_threads(), tmp_path)
    assert (record.pid, record.parent_pid, record.program, record.started_unix_ns) == (77, 66, "/bin/program", 123)
    assert record.complete
    assert record.ns_per_tick == 0.5
    assert (record.costs.counted_ns, record.costs.timed_ns, record.costs.timed_inner_ns) == (5, 20, 10)
    assert record.types == {4096: "shapes::Circle"}
    rows = record.totals
    assert rows.probe.tolist() == [1, 2]
    assert rows.calls.tolist() == [1, 10]
    assert rows.timed.tolist() == [1, 6]
    assert rows.wall_ns.tolist() == [500, 0.5 * (800 + 200)]
    assert rows.lengths.tolist() == [[*range(31), 2**32 - 1], [0] * 32]
    assert (rows.read.tolist(), rows.reading_ns.tolist()) == ([1, 0], [35, 0])
    assert rows.self_ns.tolist() == [100, 0.5 * (600 + 200)]
    assert rows.alloc_bytes.tolist() == [50, 0]
    assert rows.lock_wait_ns.tolist() == [15, 0]
    assert rows.flagged.tolist() == [0, 4]
    assert rows.counters["cpu_ns"][1] == 70
    assert np.isnan(rows.counters["cpu_ns"][0])
    assert np.isnan(rows.counters["switches"][1])
    assert record.multiplexed == {"blocks"}
    assert record.threads == 2


def test_times_of_calls_below_nothing_are_none_or_unknown(tmp_path: Path) -> None:
    records = [sample(call, (), (), wall=9000, own=own) for call, own in enumerate((40, -40, -4000), 1)]
    first = extent(1, totals(1, calls=3, finished=3, timed=3, wall=27000, self_time=0), samples(1, 0, records))
    assert read(file(first), tmp_path).samples[1].self_ns.tolist() == pytest.approx([20, 0, np.nan], nan_ok=True)


def test_edges_add_up_to_the_callees_total(tmp_path: Path) -> None:
    record = read(two_threads(), tmp_path)
    assert list(zip(record.edges.caller.tolist(), record.edges.callee.tolist(), strict=True)) == [(0, 1), (0, 2), (1, 2)]
    assert record.edges.calls.tolist() == [1, 2, 8]
    assert record.edges.wall_ns[1:].sum() == pytest.approx(record.totals.wall_ns[1])
    assert record.edges.wall_ns[2] == pytest.approx(4 * record.edges.wall_ns[1])


def test_samples_have_cells_and_masks(tmp_path: Path) -> None:
    samples_of_1 = read(two_threads(), tmp_path).samples[1]
    assert len(samples_of_1) == 1
    assert samples_of_1.cells.tolist() == [[7, 2**64 - 1, 9]]
    assert samples_of_1.read.tolist() == [[True, False, True]]
    assert (samples_of_1.wall_ns[0], samples_of_1.callee_calls[0], samples_of_1.lock_hold_ns[0]) == (500, 8, 20)
    assert samples_of_1.counters["blocks"].tolist() == [5]
    assert samples_of_1.metric("blocks") is samples_of_1.counters["blocks"]
    assert samples_of_1.metric("wall_ns") is samples_of_1.wall_ns
    assert samples_of_1.metric("page_faults") is None
    assert np.isnan([samples_of_1.counters["cpu_ns"][0], samples_of_1.counters["switches"][0]]).all()


def test_masks_of_more_than_64_cells(tmp_path: Path) -> None:
    record = sample(1, range(70), (1 << 5, 1 << 63))
    data = file(extent(1, totals(3, mode=Mode.SAMPLE, calls=1, finished=1, timed=1, wall=1, self_time=1), samples(3, 70, [record])))
    assert read(data, tmp_path).samples[3].read[0].nonzero()[0].tolist() == [63, 69]


def test_weights_are_calls_per_kept_record_of_a_thread(tmp_path: Path) -> None:
    one = totals(1, mode=Mode.SAMPLE, calls=10, finished=10, timed=10, wall=1, self_time=1)
    two = totals(1, mode=Mode.SAMPLE, calls=3, finished=3, timed=3, wall=1, self_time=1)
    data = file(
        extent(1, one, samples(1, 0, [sample(1, (), ()), sample(4, (), ())]), samples(1, 0, [sample(9, (), ())], first=2)),
        extent(2, two, samples(1, 0, [sample(2, (), ()), bytes(96)])),
    )
    record = read(data, tmp_path).samples[1]
    assert record.thread.tolist() == [1, 1, 1, 2]
    assert record.weight.tolist() == [10 / 3] * 3 + [3]


def test_a_record_that_stands_for_a_period_weighs_more(tmp_path: Path) -> None:
    one = totals(1, mode=Mode.SAMPLE, calls=42, finished=42, timed=3, weight=21, wall=1, self_time=1)
    data = file(extent(1, one, samples(1, 0, [sample(1, (), ()), sample(30, (), (), weight=10), sample(40, (), (), weight=10)])))
    assert read(data, tmp_path).samples[1].weight.tolist() == [2, 20, 20]


def test_single_calls_are_left_out_where_sums_alone_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "one.pdrec"
    path.write_bytes(two_threads())
    whole, sums = recording.read(path), recording.read(path, sums_only=True)
    assert whole.samples
    assert not sums.samples
    assert sums.totals.calls.tolist() == whole.totals.calls.tolist()
    assert sums.edges.calls.tolist() == whole.edges.calls.tolist()
    assert sums.complete


def test_unseen_resources_are_absent_not_zero(tmp_path: Path) -> None:
    data = file(extent(1, totals(1, calls=1, finished=1, timed=1, wall=1, self_time=1)), flags=ENDED)
    assert np.isnan(read(data, tmp_path).totals.alloc_bytes).all()
    assert np.isnan(read(data, tmp_path).totals.lock_wait_ns).all()


def test_counted_probes_have_no_times_and_untimed_ones_none_yet(tmp_path: Path) -> None:
    counted = totals(1, mode=Mode.COUNT, calls=5, finished=5, timed=0, wall=0, self_time=0)
    missed = totals(2, calls=5, finished=4, timed=0, wall=0, self_time=0)
    record = read(file(extent(1, counted, missed, edges([(0, 1, 5, 0), (0, 2, 5, 0)], places=2))), tmp_path)
    assert np.isnan(record.totals.wall_ns[0])
    assert np.isnan(record.edges.wall_ns[0])
    assert (record.totals.wall_ns[1], record.edges.wall_ns[1]) == (0, 0)
    assert record.totals.unfinished.tolist() == [0, 1]


def test_killed_process_uses_its_newest_clock_pair(tmp_path: Path) -> None:
    record = read(file(extent(1), flags=0, newest=0), tmp_path)
    assert not record.complete
    assert record.ns_per_tick == 0.5
    assert len(record.totals) == len(record.edges) == len(record.samples) == 0


@pytest.mark.parametrize("data", [b"", bytes(100), bytes(4096), bytes(8) + file()[8:]])
def test_process_that_was_killed_before_it_wrote_anything_has_an_empty_incomplete_recording(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "1234-567.pdrec"
    path.write_bytes(data)
    record = recording.read(path)
    assert not record.complete
    assert record.pid == 1234
    assert len(record.totals) == len(record.edges) == len(record.samples) == len(record.library) == 0
    gained, now = recording.read_since(path, None)
    assert (len(gained.totals), now.calls) == (0, 0)


def test_counts_of_a_process_that_was_killed_before_it_counted_are_lost(tmp_path: Path) -> None:
    whole = np.zeros(1, line_counts.HEAD)
    whole["magic"], whole["places"] = b"PDLINES1", 2
    (tmp_path / "1-0.lines").write_bytes(whole.tobytes() + np.array([3, 4], "<u8").tobytes())
    for number, content in enumerate((b"", bytes(10), bytes(40))):
        (tmp_path / f"2-{number}.lines").write_bytes(content)
    places = line_counts.InterpretedPlaces((), {}, {}, tmp_path, np.arange(2), counted=2)
    assert places.read(tmp_path).tolist() == [3, 4]
    assert places.lost(tmp_path) == 3


def test_full_disk_is_incomplete(tmp_path: Path) -> None:
    assert not read(file(extent(1), flags=ENDED | FULL), tmp_path).complete


def test_truncation_anywhere_reads_what_is_whole(tmp_path: Path) -> None:
    data = two_threads()
    whole = read(data, tmp_path)
    for length in [*range(0, HEADER_FIELDS + 100, 53), *range(HEADER_SIZE - 9, len(data))]:
        if 0 < length < HEADER_FIELDS:
            with pytest.raises(RecordingError):
                read(data[:length], tmp_path)
            continue
        record = read(data[:length], tmp_path)
        assert not record.complete
        assert set(record.totals.probe.tolist()) <= {1, 2}
        for probe, calls in zip(record.totals.probe.tolist(), record.totals.calls.tolist(), strict=True):
            assert calls <= whole.totals.calls[probe - 1]


@pytest.mark.parametrize(
    ("data", "byte", "says", "slug"),
    [
        (file()[:100], 100, "the file ends within the header", "recording-damaged"),
        (b"\x7fELF".ljust(5000, b"\0"), 0, "not a recording", "recording-damaged"),
        (file(version=4), 8, "version 4", "recording-version"),
        (file(bytes(32)), 4096, "not an extent", "recording-damaged"),
        (file(extent(1, block(10, b""))), 4112, "not a block", "recording-damaged"),
        (file(extent(1, struct.pack("<IIQ", 1, 0, 2**63))), 4112, "not a block", "recording-damaged"),
        (file(extent(1, block(1, b"short"))), 4128, "too short", "recording-damaged"),
        (file(extent(1, totals(10, calls=1, finished=1, timed=1, wall=1, self_time=1))), 4128, "probe 10 of 10", "recording-damaged"),
        (file(extent(1, block(2, struct.pack("<II", 2**31, 0)))), 4128, "do not fit", "recording-damaged"),
        (file(extent(1, block(3, struct.pack("<IIII", 1, 0, 2**32 - 1, 2**32 - 1)))), 4128, "do not fit", "recording-damaged"),
        (file(extent(1, samples(1, 0, []))), 4128, "without its totals", "recording-damaged"),
        (file(extent(1, edges([(1, 11, 1, 1)], places=1))), 4136, "not among 10", "recording-damaged"),
    ],
)
def test_damage_is_reported_with_its_byte(tmp_path: Path, data: bytes, byte: int, says: str, slug: str) -> None:
    with pytest.raises(RecordingError, match=rf"one\.pdrec: byte {byte}: .*{says}") as failure:
        read(data, tmp_path)
    assert failure.value.slug == slug


def test_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="No such file") as failure:
        recording.read(tmp_path / "none.pdrec")
    assert failure.value.slug == "recording-unreadable"


def test_samples_that_stand_for_no_call_have_no_weight(tmp_path: Path) -> None:
    damaged = bytearray(two_threads())
    struct.pack_into("<I", damaged, 5064, 0)
    record = read(bytes(damaged), tmp_path)
    weights = np.concatenate([samples.weight for samples in record.samples.values()])
    assert np.isfinite(weights).all()
    assert (weights == 0).any()


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_arbitrary_damage_ends_in_a_recording_or_its_error(tmp_path: Path, data: st.DataObject) -> None:
    original = two_threads()
    damaged = bytearray(original)
    fields = st.integers(0, HEADER_FIELDS // 4 - 1).map(lambda word: word * 4) | st.integers(HEADER_SIZE // 4, len(original) // 4 - 1).map(
        lambda word: word * 4
    )
    values = st.sampled_from([0, 1, 2, 3, 4, 8, 16, 2**31, 2**32 - 1]) | st.integers(0, 2**32 - 1)
    for _ in range(data.draw(st.integers(1, 4))):
        struct.pack_into("<I", damaged, data.draw(fields), data.draw(values))
    tracemalloc.start()
    try:
        record = read(bytes(damaged), tmp_path)
    except RecordingError as error:
        assert "byte" in str(error)  # noqa: PT017 -- both ends are right
    else:
        assert len(record.totals) <= 3
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 40 * len(original) + 2**20


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=400))
def test_arbitrary_blocks_end_in_a_recording_or_its_error(tmp_path: Path, noise: bytes) -> None:
    try:
        read(file(extent(1, noise)), tmp_path)
    except RecordingError as error:
        assert error.slug == "recording-damaged"  # noqa: PT017 -- both ends are right


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("6Square", "Square"),
        ("*6Square", "Square"),
        ("N6shapes6CircleE", "shapes::Circle"),
        ("N12_GLOBAL__N_16HiddenE", "(anonymous)::Hidden"),
        ("St6vectorIiSaIiEE", "St6vectorIiSaIiEE"),
        ("i", "i"),
        ("9Short", "9Short"),
        ("9" * 5000, "9" * 5000),
        ("", ""),
    ],
)
def test_names_of_types(mangled: str, name: str) -> None:
    assert readable(mangled) == name
