"""The SARIF report: of the shape that SARIF 2.1.0 and code scanning ask for, whatever names it holds."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any
from urllib.parse import unquote_to_bytes

import jsonschema
import pytest
from hypothesis import given

import findings as made
import hostile_texts
from perfdiff.analysis.claims import claim
from perfdiff.analysis.findings import Cause, Findings, Verdict
from perfdiff.records.schema import Change
from perfdiff.report import sarif
from perfdiff.report.document import build
from perfdiff.report.printable import as_read, printable
from perfdiff.report.sentences.catalogue import say


def closed(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


TEXT = {"type": "string", "minLength": 1}
MESSAGE = closed({"text": TEXT}, "text")
LEVEL = {"enum": ["none", "note", "warning", "error"]}
BAG = {"type": "object", "properties": {"tags": {"type": "array", "items": TEXT, "uniqueItems": True}}}

# The part of the standard's schema that is used here, closed: what is not listed is taken for a mistake.
RULE = closed(
    {
        "id": TEXT,
        "name": {"type": "string", "pattern": "^[A-Z][A-Za-z]*$"},
        "shortDescription": MESSAGE,
        "fullDescription": MESSAGE,
        "help": MESSAGE,
        "defaultConfiguration": closed({"level": LEVEL}, "level"),
        "properties": BAG,
    },
    "id",
    "shortDescription",
    "fullDescription",
    "help",
)
ARTIFACT = closed({"uri": {"type": "string", "pattern": r"^[A-Za-z0-9._~%/-]+$"}, "uriBaseId": {"const": "%SRCROOT%"}}, "uri", "uriBaseId")
PHYSICAL = closed(
    {"artifactLocation": ARTIFACT, "region": closed({"startLine": {"type": "integer", "minimum": 1}}, "startLine")},
    "artifactLocation",
    "region",
)
LOCATION = closed(
    {
        "physicalLocation": PHYSICAL,
        "logicalLocations": {"type": "array", "items": closed({"name": {"type": "string"}, "kind": {"const": "function"}}, "name")},
    }
)
RESULT = closed(
    {
        "ruleId": TEXT,
        "ruleIndex": {"type": "integer", "minimum": 0},
        "level": LEVEL,
        "message": MESSAGE,
        "locations": {"type": "array", "items": LOCATION, "minItems": 1},
        "partialFingerprints": closed(
            {"primaryLocationLineHash": {"type": "string", "pattern": "^[0-9a-f]{16}:1$"}}, "primaryLocationLineHash"
        ),
        "properties": BAG,
    },
    "ruleId",
    "message",
    "locations",
    "partialFingerprints",
)
NOTIFICATION = closed({"level": LEVEL, "descriptor": closed({"id": TEXT}, "id"), "message": MESSAGE}, "message")
INVOCATION = closed(
    {"executionSuccessful": {"type": "boolean"}, "toolExecutionNotifications": {"type": "array", "items": NOTIFICATION}},
    "executionSuccessful",
)
DRIVER = closed(
    {"name": TEXT, "version": TEXT, "semanticVersion": TEXT, "rules": {"type": "array", "items": RULE, "uniqueItems": True}}, "name"
)
RUN = closed(
    {
        "tool": closed({"driver": DRIVER}, "driver"),
        "automationDetails": closed({"id": {"type": "string", "pattern": "/$"}}, "id"),
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        "originalUriBaseIds": {"type": "object", "additionalProperties": closed({"description": MESSAGE})},
        "invocations": {"type": "array", "items": INVOCATION},
        "results": {"type": "array", "items": RESULT},
        "properties": BAG,
    },
    "tool",
    "results",
)
LOG = closed(
    {
        "$schema": {"const": "https://json.schemastore.org/sarif-2.1.0.json"},
        "version": {"const": "2.1.0"},
        "runs": {"type": "array", "items": RUN},
    },
    "version",
    "runs",
)


def log(findings: Findings) -> dict[str, Any]:
    """Return the log, once it has proved to be of the right shape."""
    found: dict[str, Any] = json.loads(sarif.render(build(findings)))
    jsonschema.Draft202012Validator(LOG).validate(found)
    rules = [rule["id"] for rule in found["runs"][0]["tool"]["driver"]["rules"]]
    for result in found["runs"][0]["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
    return found


def results(findings: Findings) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = log(findings)["runs"][0]["results"]
    return found


def shown(text: str) -> str:
    """Return a message as SARIF 2.1.0, 3.11.5 and 3.11.6, tells readers to show it."""
    assert not re.search(r"(?<!\\)(\\\\)*\[[^]]*[^]\\]\]\(", text), "an embedded link"
    assert not re.search(r"(?<!\{)(\{\{)*\{\d+\}", text), "a placeholder"
    return re.sub(r"\\([\\\[\]])", r"\1", text).replace("{{", "{").replace("}}", "}")


def test_each_regressed_function_is_one_result_at_its_line_in_head() -> None:
    (result,) = results(made.findings())
    assert result["ruleId"] == "performance-regression"
    assert result["level"] == "warning"
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]) == ("src/list.c", {"startLine": 44})
    assert shown(result["message"]["text"]).startswith(
        "insert costs ×331 at list->size = 28,500: constant became linear; The new loop `while (*place)` (src/list.c:49) runs 15,000 times"
    )
    assert shown(result["message"]["text"]).endswith("; code changed: body changed; ratio ×331 [318, 346] (time, callees included).")


@pytest.mark.parametrize("verdict", [Verdict.UNCHANGED, Verdict.IMPROVEMENT, Verdict.INCONCLUSIVE])
def test_without_a_regression_there_are_no_results(verdict: Verdict) -> None:
    assert results(made.findings(verdict, made.others())) == []


def test_results_come_likeliest_root_cause_first() -> None:
    assert [result["properties"]["rank"] for result in results(made.many(4))] == [1, 2, 3, 4]


def test_a_function_that_suffers_from_another_change_breaks_the_milder_rule() -> None:
    victim = made.regressed()
    why = "its code is unchanged; it is slower because of `grow`"
    victim = replace(victim, reason=made.worded(why), causes=(), info=replace(victim.info, change=Change.UNCHANGED, reasons=()))
    (result,) = results(made.findings(functions=(victim,)))
    assert (result["ruleId"], result["level"]) == ("slower-by-another-change", "note")
    assert "; its code is unchanged; it is slower because of `grow`; code unchanged; " in shown(result["message"]["text"])


def test_a_cause_that_the_headline_tells_is_not_told_twice() -> None:
    (result,) = results(made.findings(functions=(replace(made.regressed(), happened=made.worded("insert costs ×331"), tells_cause=True),)))
    assert shown(result["message"]["text"]).count("The new loop") == 1


def test_a_cause_that_another_one_tells_with_the_growth_is_not_told_twice() -> None:
    calls = claim("and-calls", name="strcat", base=0.0, head=8.0, instead_of=None)
    grown = claim("class-change", base="linear", head="quadratic", feature="n", work=claim("it-does", does=calls), lines=None)
    missed = claim("locality", counter="l1d_misses", base=1.0, head=9.0, at="w", lines=None)
    says = (grown, claim("library-calls", often=calls, lines=claim("cites-reasons", reasons=("r",))), missed)
    causes = tuple(Cause(str(number), said) for number, said in enumerate(says))
    (result,) = results(made.findings(functions=(replace(made.regressed(), causes=causes, tells_cause=True),)))
    assert shown(result["message"]["text"]).count("`strcat`") == 1
    assert "misses the L1 cache" in shown(result["message"]["text"])


def test_fingerprints_follow_the_function_and_not_its_line() -> None:
    first = made.regressed()
    moved = replace(
        first, happened=made.worded("said otherwise"), info=replace(first.info, line=900, head=replace(first.info.head, line=902))
    )
    other = replace(first, info=replace(first.info, file="src/other.c"))
    prints = [results(made.findings(functions=(finding,)))[0]["partialFingerprints"] for finding in (first, moved, other)]
    assert prints[0] == prints[1] != prints[2]


def test_functions_of_one_name_in_one_file_keep_their_fingerprints_whatever_their_rank() -> None:
    first = made.regressed()
    pair = [replace(first, info=replace(first.info, id=number, line=line)) for number, line in ((1, 10), (2, 50))]
    by_id = [
        [result["partialFingerprints"]["primaryLocationLineHash"] for result in results(made.findings(functions=tuple(order)))]
        for order in (pair, pair[::-1])
    ]
    assert by_id[0] == by_id[1][::-1]
    assert len(set(by_id[0])) == 2


def test_paths_are_relative_references() -> None:
    first = made.regressed()
    for file, uri in (("a b/ü:1#?.c", "a%20b/%C3%BC%3A1%23%3F.c"), ("//host/f.c", "host/f.c"), ("/etc/f.c", "etc/f.c")):
        info = replace(first.info, file=file, head=None)
        (result,) = results(made.findings(functions=(replace(first, info=info),)))
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_samples_without_sources_have_no_place() -> None:
    first = made.regressed()
    info = replace(first.info, file="", line=0, base=None, head=None)
    (result,) = results(made.findings(functions=(replace(first, info=info),)))
    assert result["locations"] == [{"logicalLocations": [{"name": "insert", "kind": "function"}]}]


def test_notes_are_notifications() -> None:
    (invocation,) = log(made.findings())["runs"][0]["invocations"]
    assert [notification["descriptor"]["id"] for notification in invocation["toolExecutionNotifications"]] == ["output-differs"]


@hostile_texts.few
@given(hostile_texts.findings())
def test_any_text_is_shown_as_it_stands(findings: Findings) -> None:
    found = results(findings)
    assert len(found) == 3
    assert len({result["partialFingerprints"]["primaryLocationLineHash"] for result in found}) == 3
    for result, finding in zip(found, findings.functions, strict=False):
        said = shown(result["message"]["text"])
        assert printable(say(finding.headline)).rstrip(".")[:400] in said
        place = result["locations"][0].get("physicalLocation")
        if place:
            assert unquote_to_bytes(place["artifactLocation"]["uri"]) == as_read(finding.info.file.lstrip("/"))
