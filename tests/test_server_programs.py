"""Programs behind a server, from git to verdict; all of them are compared by `scripts/bench server`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfdiff import configuration, pipeline, trending
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.config import CountersConfig, MeasureConfig
from perfdiff.errors import WorkloadError
from perfdiff.progress import Silent
from perfdiff.records.schema import Side
from perfdiff.report.sentences.catalogue import noted, say
from programs import FIXTURES, SERVER, Case, cases, environment, git, repository
from test_processes import working_in
from test_programs import summary

pytestmark = pytest.mark.integration
CASES = {case.name: case for case in cases(SERVER)}
READ = ("database.c", 25)  # the loop that reads an answer
SIZE = (30,)  # one point: growth is told by all of them


def requested(case: Case, checkout: Path, cache: Path, *, budget_s: float = 2.0, counted: bool = False) -> pipeline.Request:
    config = configuration.load(checkout, environment={})
    workloads = tuple(replace(workload, parameters={"n": SIZE}, runs=5) for workload in config.workloads)
    measure, counters = MeasureConfig(budget_s=budget_s, layouts=1), CountersConfig(software=counted)
    config = replace(config, workloads=workloads, measure=measure, counters=counters)
    return pipeline.Request(checkout, ("base", "head"), config, cache, environment())


def names(findings: Findings, verdict: Verdict) -> list[str]:
    return [each.info.name.partition("(")[0] for each in findings.functions if each.verdict is verdict]


def test_a_threaded_server_in_c_with_a_query_per_element_is_told(tmp_path: Path, shared_cache: Path) -> None:
    """Its threads are recorded although a signal ends it, and the database that answers costs nothing of the program's."""
    case = CASES["c-query-per-element"]
    checkout = repository(case, tmp_path / "program")
    findings = pipeline.compare(requested(case, checkout, shared_cache), Silent()).findings
    assert findings.verdict is Verdict.REGRESSION, summary(findings)
    (first, *_) = findings.functions
    assert first.info.name.partition("(")[0] == case.expected["guilty"]
    assert (first.calls_base, first.calls_head) == (30.0, 30.0)
    order = next(each for each in findings.requests if each.name == "order")
    assert order.failed == 0
    assert order.ratio is not None
    assert order.ratio.low > 1.5
    assert not [note for note in map(noted, findings.notes) if note.slug == "recording-incomplete"]
    assert not any(str(tmp_path) in command for command in working_in(checkout))


def test_a_webdav_server_in_php_with_a_query_per_element_is_told(tmp_path: Path, shared_cache: Path) -> None:
    """Under php-fpm and nginx, on Sabre's classes, which are not the project's, with MariaDB."""
    if not Path("/usr/share/php/Sabre/DAV").is_dir():
        pytest.skip("needs Debian's php-sabre-dav")
    (case,) = cases(FIXTURES)
    request = requested(case, repository(case, tmp_path / "program"), shared_cache, counted=True)
    drive = replace(request.config.workloads[0], parameters={"n": (100,)})
    findings = pipeline.compare(replace(request, config=replace(request.config, workloads=(drive,))), Silent()).findings
    assert findings.verdict is Verdict.REGRESSION, summary(findings)
    (first, *_) = findings.functions
    assert first.info.name == case.expected["guilty"]
    assert any("`Drive\\Properties::of`" in say(cause.says) for cause in first.causes)
    assert {each.name for each in findings.requests} == {"list", "look", "create", "folder", "move", "delete", "search"}
    assert all(each.failed == 0 for each in findings.requests)


def test_requests_that_head_alone_fails_end_the_comparison_with_their_answer(tmp_path: Path, shared_cache: Path) -> None:
    case = CASES["c-query-per-element"]
    checkout = repository(case, tmp_path / "program")
    http = checkout / "http.c"
    says = 'int size = 0 * fputs("no such table\\n", stderr) + snprintf'
    http.write_text(http.read_text().replace("HTTP/1.1 200 OK", "HTTP/1.1 500 No").replace("int size = snprintf", says))
    git(checkout, "commit", "-qam", "head fails")
    git(checkout, "tag", "-f", "head")
    with pytest.raises(WorkloadError) as caught:
        pipeline.compare(requested(case, checkout, shared_cache), Silent())
    assert caught.value.slug == "requests-failed-on-one-side"
    assert str(caught.value).startswith("head answers 500 to GET /")
    assert "service app printed" in caught.value.detail
    assert "no such table" in caught.value.detail
    assert working_in(checkout) == []


def test_a_database_that_head_lays_out_slower_is_neither_the_programs_regression_nor_good_news(tmp_path: Path, shared_cache: Path) -> None:
    case = CASES["slower-database"]
    request = requested(case, repository(case, tmp_path / "program"), shared_cache, budget_s=8.0, counted=True)
    findings = pipeline.compare(request, Silent()).findings
    assert findings.verdict is Verdict.INCONCLUSIVE, summary(findings)
    assert "`database/delay-ms` lays out" in say(findings.sentence)
    assert names(findings, Verdict.REGRESSION) == []
    notes = [note for note in map(noted, findings.notes) if note.slug == "waiting-grown"]
    assert len(notes) == 1, summary(findings)
    (note,) = notes
    assert case.expected["says"] in note.text
    assert all(each.ratio is not None and each.ratio.low > 1.5 for each in findings.requests)


def test_trends_of_a_server_are_those_of_the_lines_that_its_requests_run(tmp_path: Path, shared_cache: Path) -> None:
    """A signal ends the server, and its counts are there all the same; what the database runs is no line of the program's."""
    case = CASES["c-query-per-element"]
    checkout = repository(case, tmp_path / "program")
    request = pipeline.Request(checkout, ("base", "head"), configuration.load(checkout, environment={}), shared_cache, environment())
    found = trending.trends(request, Silent(), alpha=0.05)
    assert found.verdict is Verdict.REGRESSION
    counts = trending.count(request, Silent()).sides
    read = {side: each.counts[[(place.file, place.line) for place in each.places].index(READ)].tolist() for side, each in counts.items()}
    assert read[Side.BASE] == [60.0] * 3, "each of 30 requests asks once, and the loop looks twice at an answer"
    assert read[Side.HEAD] == [36.0 + 48.0 * n for n in (10, 30, 100)], "24 of them ask for each item"
    assert not any(each.lost for each in counts.values())
