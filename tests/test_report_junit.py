"""The JUnit report: of the shape that Jenkins and GitLab read, whatever names it holds."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree as ET

from hypothesis import given

import findings as made
import hostile_texts
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.records.differences import SkippedFunction
from perfdiff.report import json_report, junit, terminal
from perfdiff.report.document import build, headline
from perfdiff.report.printable import printable, shortened
from perfdiff.report.sentences.catalogue import say

# Elements with the attributes they must and may have and the elements they may hold, as the schema of Jenkins' plugin has them, and
# `file` and `line`, which GitLab reads.
SHAPE = {
    "testsuites": ({"name", "tests", "failures", "errors"}, {"skipped"}, {"testsuite"}),
    "testsuite": ({"name", "tests", "failures", "errors"}, {"skipped"}, {"properties", "testcase", "system-out"}),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, set(), set()),
    "testcase": ({"name", "classname"}, {"file", "line"}, {"skipped", "failure", "system-out"}),
    "skipped": ({"message"}, set(), set()),
    "failure": ({"message", "type"}, set(), set()),
    "system-out": (set(), set(), set()),
}


def suite(findings: Findings) -> ET.Element:
    """Return the suite, once the document has proved to be of the right shape and its sums are right."""
    text = junit.render(build(findings))
    root = ET.fromstring(text.encode())
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n')
    assert root.tag == "testsuites"
    for element in root.iter():
        must, may, holds = SHAPE[element.tag]
        assert must <= element.attrib.keys() <= must | may
        assert {child.tag for child in element} <= holds
    (found,) = root
    for element in (root, found):
        assert int(element.attrib["tests"]) == len(list(root.iter("testcase")))
        assert int(element.attrib["failures"]) == len(list(root.iter("failure")))
        assert int(element.attrib["skipped"]) == len(list(root.iter("skipped")))
        assert element.attrib["errors"] == "0"
    names = [(case.attrib["classname"], case.attrib["name"]) for case in root.iter("testcase")]
    assert len(set(names)) == len(names), "cases of one name are taken for one"
    return found


def test_a_regression_fails_and_what_is_open_or_not_measured_is_skipped() -> None:
    cases = {case.attrib["name"]: case for case in suite(made.findings()).iter("testcase")}
    assert {name: [child.tag for child in case] for name, case in cases.items()} == {
        "insert": ["failure"],
        "table_find": ["system-out"],
        "table_hash": ["system-out"],
        "table_grow": ["skipped"],
        "table_check": ["system-out"],
        "table_cache": ["system-out"],
        "list_capacity": ["skipped"],
        "usage": ["skipped"],
        "parse_flags": ["skipped"],
    }
    assert cases["insert"].attrib == {"name": "insert", "classname": "src/list.c", "file": "src/list.c", "line": "42"}
    assert cases["table_grow"][0].attrib["message"] == "inconclusive: the runs disagree: 4 of 6 are slower, 2 faster"
    assert cases["usage"][0].attrib["message"] == "not measured: no workload calls it"


def test_a_failure_tells_figures_and_cause() -> None:
    (failure,) = suite(made.findings()).iter("failure")
    assert failure.attrib["message"] == "insert costs ×331 at list->size = 28,500: constant became linear."
    lines = (failure.text or "").splitlines()
    assert "ratio: ×331 [318, 346], 95 % interval over 10 base and 10 head runs (over all inputs)" in lines
    assert any(line.startswith("cause: The new loop `while (*place)`") for line in lines)
    assert lines[lines.index("From the change to the cost:") + 1] == "1. insert (src/list.c:44) changed: its loop walks the list"


def test_a_failure_says_what_other_formats_say_and_stands_at_the_same_line() -> None:
    document = build(made.findings())
    case = next(suite(made.findings()).iter("testcase"))
    place = f"{case.attrib['file']}:{case.attrib['line']}"
    (section, *_) = document.functions
    report = json.loads(json_report.render(document))["functions"][0]
    assert place == section.place == f"{report['file']}:{report['line']}"
    assert case[0].attrib["message"] == section.headline == report["headline"]
    full = " ".join(terminal.render(document, width=400).split())
    for fact in section.facts.facts[:8]:
        assert f"{fact.label}: {fact.text}" in (case[0].text or "").splitlines()
        assert f"{fact.label} {fact.text}" in full


def test_slower_runs_that_no_function_explains_fail_as_well() -> None:
    whole = made.findings(Verdict.REGRESSION, made.others())
    case = next(suite(whole).iter("testcase"))
    assert (case.attrib["classname"], case.attrib["name"], case[0].tag) == ("perfdiff", "whole runs", "failure")
    assert case[0].attrib["message"] == headline(whole)
    assert (
        (case[0].text or "")
        .splitlines()[0]
        .startswith("whole run sort n=1000, base 2.1 ms, head 8.4 ms, ratio of CPU time ×4.0 [3.9, 4.1]")
    )
    assert next(case.attrib["name"] for case in suite(made.findings(Verdict.UNCHANGED, made.others())).iter("testcase")) != "whole runs"


def test_the_order_of_functions_does_not_change_their_names() -> None:
    first = made.regressed()
    pair = [replace(first, info=replace(first.info, id=number, line=line, head=None)) for number, line in ((1, 10), (2, 50))]
    for order in (pair, pair[::-1]):
        cases = suite(made.findings(Verdict.REGRESSION, tuple(order))).iter("testcase")
        lines = {case.attrib["name"]: case.attrib.get("line") for case in cases}
        assert (lines["insert"], lines["insert (2)"]) == ("10", "50")


def test_of_very_many_unmeasured_functions_the_first_are_listed_and_the_rest_counted() -> None:
    many = tuple(SkippedFunction(f"f{number}", "a.c", "no workload calls it") for number in range(1_234))
    found = suite(replace(made.findings(), skipped=many))
    assert found[-1].text == "234 more functions were not measured; the json report lists them."


def test_samples_without_sources_have_no_place() -> None:
    first = made.regressed()
    info = replace(first.info, file="", line=0, base=None, head=None)
    (case,) = (
        case for case in suite(made.findings(functions=(replace(first, info=info),))).iter("testcase") if case.attrib["name"] == "insert"
    )
    assert case.attrib == {"name": "insert", "classname": "perfdiff"}


@hostile_texts.few
@given(hostile_texts.findings())
def test_any_text_is_kept_and_ends_nothing(findings: Findings) -> None:
    found = suite(findings)
    assert found.attrib["failures"] == "3"
    failure = next(found.iter("failure"))
    assert failure.attrib["message"] == shortened(printable(say(findings.functions[0].headline)), 2_000)
