"""The report as JUnit XML, which Jenkins, GitLab and most CI services show as tests: a case for each function."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from perfdiff.analysis.findings import FunctionFinding, Verdict
from perfdiff.records.differences import Skipped
from perfdiff.report import wording
from perfdiff.report.blocks import FunctionSection
from perfdiff.report.document import Document
from perfdiff.report.labels import Label, labels, unused
from perfdiff.report.printable import shortened
from perfdiff.report.sentences.catalogue import say

_SUITE = "perfdiff"
_MOST_TEXT = 2_000
# Of a program with thousands of functions that no workload calls, nobody reads more; the json report holds all.
_MOST_SKIPPED = 1_000


def render(document: Document) -> str:
    """Return one suite: a failure is a regression; what is inconclusive or could not be measured is skipped, with the reason."""
    findings = document.findings
    known = labels(findings.functions)
    taken = set(known.values())
    skipped = findings.skipped[:_MOST_SKIPPED]
    suite = ET.Element(
        "testsuite",
        name=_SUITE,
        tests=str(len(findings.functions) + len(skipped)),
        failures=str(sum(finding.is_open_regression for finding in findings.functions)),
        errors="0",
        skipped=str(sum(finding.verdict is Verdict.INCONCLUSIVE for finding in findings.functions) + len(skipped)),
    )
    properties = ET.SubElement(suite, "properties")
    revisions = {"base": wording.revision(findings.base), "head": wording.revision(findings.head)}
    for name, value in {**revisions, "verdict": findings.verdict.value, "sentence": say(findings.sentence)}.items():
        ET.SubElement(properties, "property", name=name, value=shortened(value, _MOST_TEXT))
    for finding, section in zip(findings.functions, document.functions, strict=True):
        _case(suite, finding, section, known[finding.info.id])
    for item in skipped:
        label = unused(item.file, item.name, taken)
        taken.add(label)
        _not_measured(suite, item, label)
    left_out = len(findings.skipped) - len(skipped)
    if left_out:
        ET.SubElement(suite, "system-out").text = f"{left_out:,} more functions were not measured; the json report lists them."
    root = ET.Element("testsuites", {key: suite.attrib[key] for key in ("name", "tests", "failures", "errors", "skipped")})
    root.append(suite)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _case(suite: ET.Element, finding: FunctionFinding, section: FunctionSection, label: Label) -> None:
    place = finding.info.head or finding.info
    test = _test(suite, label, place.file)
    if place.file:
        test.set("line", str(place.line))
    match finding.verdict:
        case Verdict.REGRESSION if not finding.accepted:
            message = shortened(say(finding.headline), _MOST_TEXT)
            ET.SubElement(test, "failure", message=message, type="regression").text = _evidence(finding, section)
        case Verdict.INCONCLUSIVE:
            ET.SubElement(test, "skipped", message=shortened(f"inconclusive: {say(finding.reason)}", _MOST_TEXT))
        case _:
            accepted = [f"accepted: {entry.reason}" for entry in finding.accepted]
            ET.SubElement(test, "system-out").text = shortened("; ".join([say(finding.headline), *accepted]), _MOST_TEXT)


def _not_measured(suite: ET.Element, item: Skipped, label: Label) -> None:
    ET.SubElement(_test(suite, label, item.file), "skipped", message=shortened(f"not measured: {item.reason}", _MOST_TEXT))


def _test(suite: ET.Element, label: Label, file: str) -> ET.Element:
    place = {"file": file} if file else {}
    return ET.SubElement(suite, "testcase", {"name": label.name, "classname": label.file or _SUITE, **place})


def _evidence(finding: FunctionFinding, section: FunctionSection) -> str:
    facts = [f"{fact.label}: {fact.text}" for fact in section.facts.facts]
    causes = [f"cause: {say(cause.says)}" for cause in finding.causes[1:]]
    return "\n".join(shortened(line, _MOST_TEXT) for line in [section.place, *facts, *causes])
