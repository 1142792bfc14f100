"""Programs whose growth is known, from git to the line that grows: counted, clustered and compared by `perfdiff trends`."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runtimes
from perfdiff import cli, configuration, trending
from perfdiff.analysis.findings import Verdict
from perfdiff.analysis.trends.findings import TrendFindings
from perfdiff.models.annotation import CostClass
from perfdiff.models.clusters import ALPHA, clustered
from perfdiff.progress import Silent
from perfdiff.records.schema import Side
from perfdiff.report.trends import wording
from perfdiff.request import Request
from programs import PROGRAMS, TRENDS, Case, cases, repository

pytestmark = pytest.mark.integration
Document = dict[str, Any]  # what `--format json` writes
PAIRS = [case for case in cases(TRENDS) if (case.folder / "head").is_dir()]
SIZES = (200.0, 400.0, 800.0, 1600.0, 3200.0)  # counts are exact, so far smaller runs tell growth than those that are timed
EXPONENT_WITHIN = 0.1


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runtimes.lent_to(tmp_path_factory.mktemp("trends") / "cache")


def told(folder: Path, cache: Path, *revisions: str) -> tuple[int, Document]:
    """Return the exit code of `perfdiff trends` in a checkout, and what it wrote."""
    output = folder.parent / f"{folder.name}.json"
    with pytest.raises(SystemExit) as end:
        cli.main(["trends", *revisions, "-q", "--repo", str(folder), "--cache", str(cache), "-o", str(output)])
    assert isinstance(end.value.code, int)
    return end.value.code, json.loads(output.read_text())


def fixture(name: str) -> Case:
    return next(case for case in cases(TRENDS) if case.name == name)


def cluster(document: Document, *, feature: str | None = None, text: str | None = None) -> Document:
    """Return the cluster whose representative is a feature, or a line with a text."""
    wanted = {"feature": feature} if feature else {"text": text}
    found = [each for each in document["clusters"] if wanted.items() <= each["representative"].items()]
    assert len(found) == 1, [each["representative"] for each in document["clusters"]]
    return dict(found[0])


def lines(cluster: Document, *, file: str) -> set[int]:
    return {place["line"] for place in cluster["places"] if place["file"] == file}


def test_bubble_sort_grows_as_in_the_papers_figure(tmp_path: Path, cache: Path) -> None:
    """trend-prof, Figure 1: compares 2.00, swaps 1.93, size 1.00."""
    folder = repository(fixture("bubble-sort"), tmp_path / "program")
    code, document = told(folder, cache, "base")
    assert (code, document["verdict"], len(document["points"])) == (0, None, 30)
    compares, size = cluster(document, text="while (j < n) {"), cluster(document, feature="n")
    for found, exponent in ((compares, 2.0), (size, 1.0)):
        best = found["fits"][0]
        assert best["feature"] == "n"
        assert best["b"] == pytest.approx(exponent, abs=0.02)
        assert best["r2"] >= 0.99
    assert {19, 20, 22} <= lines(compares, file="bubble.c")
    assert {16, 17} <= lines(size, file="bubble.c")


def test_swaps_alone_grow_with_almost_the_square(tmp_path: Path, cache: Path) -> None:
    """Of random values their number nearly follows that of the compares; held to it more tightly, they are a cluster of their own."""
    folder = repository(fixture("bubble-sort"), tmp_path / "program")
    output = tmp_path / "trends.json"
    with pytest.raises(SystemExit):
        cli.main(["trends", "base", "-q", "--alpha", "0.002", "--repo", str(folder), "--cache", str(cache), "-o", str(output)])
    document = json.loads(output.read_text())
    swaps = next(each for each in document["clusters"] if 21 in lines(each, file="bubble.c"))
    assert lines(swaps, file="bubble.c") == {3, 5, 7, 8, 9, 21}
    assert 1.9 <= swaps["fits"][0]["b"] <= 2.0
    assert swaps["fits"][0]["r2"] >= 0.99


def test_a_suffix_tree_has_nodes_and_edges_in_proportion_to_its_text(tmp_path: Path, cache: Path) -> None:
    """trend-prof §5.3, Figure 6: CHARS, NODES and EDGES are one cluster, and nothing grows by more than them."""
    findings = counted(fixture("suffix-tree"), tmp_path / "program", cache, "base")
    places = findings.experiment.sides[Side.BASE]
    clustering = clustered(places.features, places.counts, alpha=ALPHA)
    bytes_ = places.features["bytes"]
    assert np.ptp(np.log10(bytes_)) > 1.5
    named = {each for each in clustering.representatives if isinstance(each, str)}
    assert len({"bytes", "nodes", "edges"} & named) == 1
    assert {"bytes", "nodes", "edges"} - named <= set(clustering.twins)
    costly = [each for each in findings.sides[Side.BASE].clusters if each.is_costly]
    assert all(each.fits[0].b < 1 + EXPONENT_WITHIN for each in costly)


@pytest.mark.parametrize("case", PAIRS, ids=lambda case: case.name)
def test_the_line_whose_growth_changed_is_named(case: Case, tmp_path: Path, cache: Path) -> None:
    code, document = told(repository(case, tmp_path / "program"), cache, "base", "head")
    expected = case.expected
    assert (code, document["verdict"]) == (1 if expected["verdict"] == "regression" else 0, expected["verdict"]), document["sentence"]
    if expected["verdict"] == "unchanged":
        assert document["differences"] == []
        return
    leading = document["differences"][0]
    place = leading["place"]
    assert (place["file"], place["function"]) == (expected["file"], expected["function"]), document["sentence"]
    assert place["text"] in expected["lines"]
    for side, exponent in expected["exponent"].items():
        assert leading[side]["b"] == pytest.approx(exponent, abs=EXPONENT_WITHIN), (side, leading[side])
    assert [each["place"] for each in document["differences"][1:] if each["verdict"] == "regression"] == []


def counted(case: Case, folder: Path, cache: Path, *revisions: str, sizes: tuple[float, ...] = ()) -> TrendFindings:
    """Return the trends of a program, run at other sizes than it says where they are given."""
    config = configuration.load(repository(case, folder), environment={})
    if sizes:
        config = replace(config, workloads=tuple(replace(each, parameters={"n": sizes}) for each in config.workloads))
    return trending.trends(Request(folder, revisions, config, cache, dict(os.environ)), Silent(), alpha=ALPHA)


@pytest.mark.parametrize(
    ("name", "function", "line"),
    [
        ("callee-per-element", "table_max", "for (i = 1; i < table->count; i++)"),
        ("hash-collisions", "seek", "while (name && (name->hash != hash || strcmp(name->text, text)))"),
        ("header-template", "sorted_set::contains", "for (const T &other : values_)"),
        ("list-append", "list_fill", "while (*end)"),
        ("macro-made", "orders_find", "VECTOR_INIT(orders, int)"),
        ("recursion", "balanced", "if (!tree)"),
        ("runs-once", "index_find", "while (entry && entry->key != key)"),
    ],
)
def test_what_grows_in_a_timed_fixture_is_named_by_its_line(name: str, function: str, line: str, tmp_path: Path, cache: Path) -> None:
    """All fixtures in which a count grows by another power; where only the C library's work does, no line of the program's own tells."""
    case = Case(PROGRAMS / name, {})
    found = counted(case, tmp_path / "program", cache, "base", "head", sizes=SIZES)
    assert found.verdict is Verdict.REGRESSION, wording.answer(found)
    place = found.differences[0].place
    assert (place.function, place.text) == (function, line), wording.answer(found)


def test_a_quadratic_loop_that_is_gone_is_an_improvement(tmp_path: Path, cache: Path) -> None:
    found = counted(Case(PROGRAMS / "improvement", {}), tmp_path / "program", cache, "base", "head", sizes=SIZES)
    assert found.verdict is Verdict.IMPROVEMENT
    difference = found.differences[0]
    assert (difference.place.text, difference.base.growth, difference.head.growth) == (  # type: ignore[union-attr]
        "for (j = 0; j < i; j++)",
        CostClass.QUADRATIC,
        CostClass.LINEAR,
    )


@pytest.mark.parametrize("name", ["cost-in-libc", "strlen-in-condition"])
def test_what_only_the_c_library_does_more_of_is_not_seen(name: str, tmp_path: Path, cache: Path) -> None:
    """A limit that the documentation tells: lines of the project are counted, and nothing else."""
    found = counted(Case(PROGRAMS / name, {}), tmp_path / "program", cache, "base", "head", sizes=SIZES[:3])
    assert found.verdict is Verdict.UNCHANGED


@pytest.mark.parametrize(("asked", "name"), [((), "sorted_set::contains"), (("--instances",), "sorted_set<int>::contains")])
def test_trends_of_instances_are_held_against_instances(asked: tuple[str, ...], name: str, tmp_path: Path, cache: Path) -> None:
    """Saved trends remember how a template was counted: else none of their places would be found again."""
    folder = repository(Case(PROGRAMS / "header-template", {}), tmp_path / "program")
    code, document = told(folder, cache, "head", *asked)
    assert (code, document["instances"]) == (0, bool(asked))
    assert {place["function"] for each in document["clusters"] for place in each["places"]} >= {"main", name}
    saved, output = str(folder.parent / f"{folder.name}.json"), tmp_path / "check.json"
    with pytest.raises(SystemExit) as end:
        cli.main(["check", saved, "head", "-q", "--repo", str(folder), "--cache", str(cache), "-o", str(output)])
    checked = json.loads(output.read_text())
    assert (end.value.code, checked["verdict"]) == (0, "holds")
    first = checked["assertions"][0]
    assert (first["place"]["function"], first["found"]) == (name, first["places"])
