"""The report as JUnit XML, which Jenkins, GitLab and most CI services show as tests: a case for each function, told as in other formats."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree as ET

from perfdiff.analysis.annotations.consequences import BudgetFinding, BudgetStanding
from perfdiff.analysis.findings import FunctionFinding, Verdict
from perfdiff.records.differences import SkippedFunction
from perfdiff.report import consequences, wording
from perfdiff.report.blocks import FunctionSection, Items, Sentence
from perfdiff.report.document import Document, conclusion
from perfdiff.report.labels import Label, labels, unused
from perfdiff.report.printable import shortened
from perfdiff.report.sentences.catalogue import say

_SUITE = "perfdiff"
_WHOLE_RUNS = Label("", "whole runs")
_MOST_TEXT = 2_000
# Of a program with thousands of functions that no workload calls, nobody reads more; the json report holds all.
_MOST_SKIPPED = 1_000


def render(document: Document) -> str:
    """Return one suite: a failure is a regression; what is inconclusive or could not be measured is skipped, with the reason.

    A regression of whole runs that no function is said to make is a failure of its own, and so is a budget that is exceeded.
    """
    findings = document.findings
    failures = sum(finding.is_open_regression for finding in findings.functions)
    is_not_located = findings.verdict is Verdict.REGRESSION and not failures
    budgets = document.consequences.budgets if document.consequences else ()
    exceeded = sum(finding.standing is BudgetStanding.EXCEEDED for finding in budgets)
    unknown = sum(finding.standing in (BudgetStanding.OPEN, BudgetStanding.UNKNOWN) for finding in budgets)
    label_by_id = labels(findings.functions)
    taken = set(label_by_id.values())
    skipped = findings.skipped[:_MOST_SKIPPED]
    suite = ET.Element(
        "testsuite",
        name=_SUITE,
        tests=str(len(findings.functions) + len(skipped) + is_not_located + len(budgets)),
        failures=str(failures + is_not_located + exceeded),
        errors="0",
        skipped=str(sum(finding.verdict is Verdict.INCONCLUSIVE for finding in findings.functions) + len(skipped) + unknown),
    )
    properties = ET.SubElement(suite, "properties")
    revisions = {"base": wording.revision(findings.base), "head": wording.revision(findings.head)}
    for name, value in {**revisions, "verdict": findings.verdict.value, "sentence": conclusion(findings)}.items():
        ET.SubElement(properties, "property", name=name, value=shortened(value, _MOST_TEXT))
    if is_not_located:
        _not_located(suite, document)
    for budget in budgets:
        _budget(suite, budget)
    for finding, section in zip(findings.functions, document.functions, strict=True):
        _case(suite, finding, section, label_by_id[finding.info.id])
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
    test = _test(suite, label, finding.info.file)
    if finding.info.file:
        test.set("line", str(finding.info.line))
    match finding.verdict:
        case Verdict.REGRESSION if not finding.accepted:
            message = shortened(section.headline, _MOST_TEXT)
            ET.SubElement(test, "failure", message=message, type="regression").text = "\n".join(_lines(section))
        case Verdict.INCONCLUSIVE:
            ET.SubElement(test, "skipped", message=shortened(f"inconclusive: {say(finding.reason)}", _MOST_TEXT))
        case _:
            accepted = [f"accepted: {entry.reason}" for entry in finding.accepted]
            ET.SubElement(test, "system-out").text = shortened("; ".join([section.headline, *accepted]), _MOST_TEXT)


def _not_located(suite: ET.Element, document: Document) -> None:
    """Add a case of whole runs, which fails with the answer and the figures of each point."""
    answer, runs = document.answer[0], document.end_to_end
    said = answer.text if isinstance(answer, Sentence) else say(document.findings.sentence)
    failure = ET.SubElement(_test(suite, _WHOLE_RUNS, ""), "failure", message=shortened(said, _MOST_TEXT), type="regression")
    titles = [column.title for column in runs.columns] if runs else []
    failure.text = "\n".join(
        ", ".join(f"{title} {shortened(cell.text, _MOST_TEXT)}" for title, cell in zip(titles, row, strict=True))
        for row in (runs.rows if runs else ())
    )


def _budget(suite: ET.Element, finding: BudgetFinding) -> None:
    test, message = _test(suite, Label("", f"budget of {finding.budget.subject}"), ""), shortened(consequences.said(finding), _MOST_TEXT)
    match finding.standing:
        case BudgetStanding.EXCEEDED:
            ET.SubElement(test, "failure", message=message, type="budget")
        case BudgetStanding.KEPT:
            ET.SubElement(test, "system-out").text = message
        case _:
            ET.SubElement(test, "skipped", message=message)


def _not_measured(suite: ET.Element, item: SkippedFunction, label: Label) -> None:
    ET.SubElement(_test(suite, label, item.file), "skipped", message=shortened(f"not measured: {item.reason}", _MOST_TEXT))


def _test(suite: ET.Element, label: Label, file: str) -> ET.Element:
    place = {"file": file} if file else {}
    return ET.SubElement(suite, "testcase", {"name": label.name, "classname": label.file or _SUITE, **place})


def _lines(section: FunctionSection) -> Iterator[str]:
    """Yield what other formats tell of a function in front, a statement a line."""
    yield section.place
    yield from (shortened(f"{fact.label}: {fact.text}", _MOST_TEXT) for fact in section.facts.facts)
    for items in (section.chain, *section.details):
        if isinstance(items, Items):
            yield f"{items.title}:"
            yield from (
                shortened(f"{number}. {text}" if items.ordered else f"- {text}", _MOST_TEXT) for number, text in enumerate(items.texts, 1)
            )
