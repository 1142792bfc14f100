"""Places of two revisions: their recordings on disk, and which line of base is which line of head."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from perfdiff.errors import RecordingError
from perfdiff.records import placestore
from perfdiff.records.places import Instances, Place, PlaceCounts, together
from perfdiff.records.schema import Note, Point
from perfdiff.revisions.lines import LineMap, line_map
from perfdiff.revisions.pins import resolve
from perfdiff.revisions.repository import find_repository
from programs import git

SOURCE = tuple(f"line {number}" for number in range(1, 41))


def mapped(
    folder: Path, base: Mapping[str, str], head: Mapping[str, str], generated: Mapping[str, tuple[list[str], list[str]]] | None = None
) -> LineMap:
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    for number, files in enumerate((base, head)):
        for path in folder.glob("*.c"):
            path.unlink()
        for name, text in files.items():
            (folder / name).write_bytes(text.encode("utf-8", "surrogateescape"))
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "--allow-empty", "-m", f"{number}")
    pins = resolve(find_repository(folder), ("HEAD~1", "HEAD"), snapshots=folder.parent / "snapshots")
    return line_map(pins.base, pins.head, generated or {})


def text(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


def test_unchanged_lines_are_found_where_they_moved_to(tmp_path: Path) -> None:
    head = ("new", *SOURCE[:9], "other 10", "more", *SOURCE[10:19], *SOURCE[21:])
    found = mapped(tmp_path / "r", {"a.c": text(*SOURCE)}, {"a.c": text(*head)})
    expected = {number: head.index(line) + 1 if line in head else None for number, line in enumerate(SOURCE, 1)}
    assert {number: found.line("a.c", number) for number in expected} == expected
    assert expected[1] == 2
    assert expected[10] is None
    assert expected[40] == 40


def test_renamed_files_are_followed_whatever_their_names_hold(tmp_path: Path) -> None:
    old, new = 'old "name" ü.c', "new\tname \\ ü.c"
    found = mapped(tmp_path / "r", {old: text(*SOURCE), "b.c": "b\n"}, {new: text("first", *SOURCE), "b.c": "b\n"})
    assert found.file(old) == new
    assert found.line(old, 7) == 8
    assert found.file("b.c") == "b.c"


def test_changed_lines_that_look_like_a_diff_are_changed_lines(tmp_path: Path) -> None:
    before = ("-- a/x", "@@ -1 +1 @@", "\x0cform feed", "same")
    found = mapped(tmp_path / "r", {"a.c": text(*before)}, {"a.c": text("+ b/x", "++ more", "same")})
    assert [found.line("a.c", number) for number in (1, 2, 3, 4)] == [None, None, None, 3]


def test_generated_files_are_compared_by_their_texts(tmp_path: Path) -> None:
    found = mapped(tmp_path / "r", {"a.c": "a\n"}, {"a.c": "a\n"}, {"made.c": (["a", "b", "c"], ["a", "x", "y", "c"])})
    assert [found.line("made.c", number) for number in (1, 2, 3)] == [1, None, 4]


@pytest.fixture
def counts() -> PlaceCounts:
    points = tuple(Point(number, "sort", {"n": float(10**number)}, f"./sort {10**number}") for number in range(3))
    sources = {"sort.c": ("void sort(int n)", "{", "\tfor (;;)", "\t\tswap();", "}"), "ü/t.hpp": ("T max(T a, T b) { \udcff }",)}
    places = (
        Place("sort", "sort.c", 3, "for (;;)"),
        Place("sort", "sort.c", 4, "swap();"),
        Place("max", "ü/t.hpp", 1, sources["ü/t.hpp"][0]),
    )
    instances = Instances(np.array([2, 2]), ("max<int>", "max<long>"), np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))
    values = np.array([[1.0, 10.0, 100.0], [0.0, 45.0, 2.0**53], [1.0, 1.0, 1.0]])
    return PlaceCounts(
        points, places, values, {"n": np.array([1.0, 10.0, np.nan])}, sources, (Note("slug", "text"),), (1,), (2,), instances
    )


def test_counts_come_back_as_they_were_saved(tmp_path: Path, counts: PlaceCounts) -> None:
    assert not placestore.exists(tmp_path / "counts")
    placestore.save(tmp_path / "counts", counts)
    assert placestore.exists(tmp_path / "counts")
    placestore.verify(tmp_path / "counts")
    found = placestore.load(tmp_path / "counts")
    assert np.array_equal(found.counts, counts.counts)
    assert np.array_equal(found.features["n"], counts.features["n"], equal_nan=True)
    assert np.array_equal(found.instances.counts, counts.instances.counts)
    assert (found.instances.places.tolist(), found.instances.names) == ([2, 2], ("max<int>", "max<long>"))
    assert dataclasses.replace(found, counts=counts.counts, features=counts.features, instances=counts.instances) == counts


def test_instances_are_one_place_and_functions_of_their_own_where_they_are_asked_for(counts: PlaceCounts) -> None:
    apart = counts.apart
    assert [place.function for place in apart.places] == ["sort", "sort", "max<int>", "max<long>"]
    assert (apart.counts[2:].tolist(), apart.unsteady) == ([[1, 0, 1], [0, 1, 0]], (1,))
    assert dataclasses.replace(counts, unsteady=(2,)).apart.unsteady == (2, 3)
    assert not apart.instances.names
    raw = [
        dataclasses.replace(place, function=place.function.partition("<")[0], instance=instance)
        for place, instance in zip(apart.places, ["", "", "max<int>", "max<long>"], strict=True)
    ]
    places, sums, instances = together(raw, apart.counts)
    assert (places, sums.tolist()) == (counts.places, counts.counts.tolist())
    assert (instances.names, instances.places.tolist()) == (counts.instances.names, [2, 2])
    assert instances.counts.tolist() == counts.instances.counts.tolist()
    assert [list(instances.of(place)) for place in range(3)] == [[], [], [0, 1]]
    assert counts.at(np.array([0, 1])).instances.counts.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("name", ["places.json", "places.parquet", "instances.parquet"])
def test_damaged_counts_are_named_and_not_loaded(tmp_path: Path, counts: PlaceCounts, name: str) -> None:
    placestore.save(tmp_path / "counts", counts)
    path = tmp_path / "counts" / name
    path.write_bytes(path.read_bytes()[:-3])
    for read in (placestore.load, placestore.verify):
        with pytest.raises(RecordingError, match=name) as raised:
            read(tmp_path / "counts")
        assert raised.value.slug == "damaged-recording"


def test_rows_that_name_no_line_are_refused(tmp_path: Path, counts: PlaceCounts) -> None:
    beyond = dataclasses.replace(counts, places=(Place("sort", "sort.c", 0, ""), *counts.places[1:]))
    placestore.save(tmp_path / "counts", beyond)
    with pytest.raises(RecordingError, match="does not fit"):
        placestore.load(tmp_path / "counts")


@pytest.mark.parametrize("of", [[2, 3], [-1, 2], [2, 1]])
def test_instances_of_no_place_are_refused(tmp_path: Path, counts: PlaceCounts, of: list[int]) -> None:
    placestore.save(tmp_path / "counts", dataclasses.replace(counts, instances=dataclasses.replace(counts.instances, places=np.array(of))))
    with pytest.raises(RecordingError, match="does not fit"):
        placestore.load(tmp_path / "counts")


def test_counts_of_another_version_are_refused(tmp_path: Path, counts: PlaceCounts) -> None:
    from perfdiff.records import tables

    placestore.save(tmp_path / "counts", counts)
    document = json.loads((tmp_path / "counts" / "places.json").read_text("utf-8", "surrogatepass"))
    with tables.written(tmp_path / "later") as draft:
        (draft / "places.json").write_text(json.dumps({**document, "schema": "perfdiff.places/3"}))
        (draft / "places.parquet").write_bytes((tmp_path / "counts" / "places.parquet").read_bytes())
    with pytest.raises(RecordingError, match="places/3") as raised:
        placestore.load(tmp_path / "later")
    assert raised.value.slug == "format-version"
