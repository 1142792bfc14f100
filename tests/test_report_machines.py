"""Reports of comparisons that several machines made: each machine, where they disagree, and no name of a host in a ticket."""

from __future__ import annotations

import json
from dataclasses import replace
from html import unescape

import findings as made
from perfdiff.analysis.findings import Findings, Ratio
from perfdiff.records.kinds import MachinePart
from perfdiff.records.schema import Note
from perfdiff.report import html, json_report, markdown, terminal
from perfdiff.report.document import build
from perfdiff.report.function import answer_facts
from perfdiff.report.privacy import without_hosts
from perfdiff.report.sentences.catalogue import say

SLOWER, SAME = Ratio(1.4, 1.3, 1.5, 6, 6), Ratio(1.0, 0.97, 1.03, 6, 6)
SAYS = "slower on build-7.example.org (×1.4), not on main (×1); build-7.example.org and main differ in processor (arm, zen)"


def measured(*, disagree: bool = True) -> Findings:
    """Return findings of two machines and a kind of forty hosts."""
    first = made.regressed()
    whole = made.findings(functions=(first, *made.others()))
    machines = {"main": SAME, "build-7.example.org": SLOWER}
    environments = [replace(whole.environment, cpu=cpu, libraries=("libc.so.6", "libm.so.6")) for cpu in ("zen", "arm", "xeon")]
    parts = [MachinePart(name, 1, environment, 60, 59) for name, environment in zip(machines, environments, strict=False)]
    kind = MachinePart("xeon", 40, environments[2], 1234, 1235)
    if disagree:
        metrics = {**first.metrics, "self_ns": replace(first.metrics["wall_ns"], metric="self_ns", machines=machines, machines_q=1e-9)}
        first = replace(
            first, metrics=metrics, machines_say=made.worded(SAYS), happened=made.worded(f"{say(first.headline)}; machines differ: {SAYS}")
        )
        notes = (*whole.notes, Note("machines-disagree", f"machines disagree: `insert` is {SAYS}"))
        whole = replace(whole, sentence=made.worded(f"Regression: {SAYS}"), notes=notes)
        whole = replace(whole, end_to_end=(replace(whole.end_to_end[0], machines=machines, disagree=True), *whole.end_to_end[1:]))
    return replace(whole, functions=(first, *whole.functions[1:]), machines=(*parts, kind))


def test_each_machine_has_a_row_with_its_environment() -> None:
    document = build(measured())
    assert document.machines is not None
    assert document.machines.title == "Machines; all times are told at the pace of main"
    rows = [[cell.text for cell in row] for row in document.machines.rows]
    assert [(row[0], row[1], row[2], row[8]) for row in rows] == [
        ("main", "1", "zen", "60 and 59"),
        ("build-7.example.org", "1", "arm", "60 and 59"),
        ("xeon", "40", "xeon", "1,234 and 1,235"),
    ]
    assert {row[7] for row in rows} == {"libc.so.6, libm.so.6"}
    for page in (terminal.render(document, width=200), markdown.render(document), unescape(html.render(document))):
        assert "build-7.example.org" in page.replace("<!-- -->", "")
        assert "1,234 and 1,235" in page


def test_machines_that_disagree_are_told_with_their_ratios() -> None:
    document = build(measured())
    assert document.disagreements is not None
    rows = [[cell.text for cell in row] for row in document.disagreements.rows]
    names = [row[0] for row in rows]
    assert names == ["insert", "", f"whole runs at {document.findings.end_to_end[0].point.label}", ""]
    assert [row[1] for row in rows] == ["build-7.example.org", "main"] * 2
    assert rows[0][2].startswith("×1.4")
    facts = {fact.label: fact.text for fact in answer_facts(document.findings.functions[0], 0.95).facts}
    assert facts["machines"] == SAYS
    for page in (terminal.render(document, width=200), markdown.render(document), unescape(html.render(document))):
        assert "Machines that disagree" in page


def test_one_machine_and_machines_that_agree_have_no_such_tables() -> None:
    assert build(measured(disagree=False)).disagreements is None
    alone = build(made.findings())
    assert (alone.machines, alone.disagreements) == (None, None)


def test_data_has_machines_and_their_ratios() -> None:
    found = json.loads(json_report.render(build(measured())))
    assert [(each["name"], each["hosts"], each["runs"], each["environment"]["cpu"]) for each in found["machines"]][2] == (
        "xeon",
        40,
        {"base": 1234, "head": 1235},
        "xeon",
    )
    function = found["functions"][0]
    assert function["machines_say"] == SAYS
    assert function["metrics"]["self_ns"]["machines"]["build-7.example.org"] == {
        "ratio": 1.4,
        "ci": [1.3, 1.5],
        "runs": {"base": 6, "head": 6},
    }
    assert function["metrics"]["self_ns"]["machines_q"] == 1e-9
    assert found["end_to_end"][0]["disagree"] is True


def test_a_ticket_names_no_host_and_its_sources_stay() -> None:
    text = 'int main(void) { puts("main"); }'
    whole = measured()
    source = replace(whole.functions[0].info.head, text=text) if whole.functions[0].info.head else None
    whole = replace(
        whole, functions=(replace(whole.functions[0], info=replace(whole.functions[0].info, head=source)), *whole.functions[1:])
    )
    whole = replace(whole, notes=(*whole.notes, Note("machines-one-sided", "left out: 3 runs of one revision on lost-3, where …")))
    clean = without_hosts(whole, ["lost-3"])
    document = build(clean)
    pages = (terminal.render(document, width=200), markdown.render(document), html.render(document), json_report.render(document))
    for page in pages:
        plain = unescape(page).replace("<!-- -->", "").replace("\\", "")
        assert "build-7" not in plain
        assert "lost-3" not in plain
        assert "machine 2" in plain
    assert [part.name for part in clean.machines] == ["machine 1", "machine 2", "xeon"]
    assert clean.functions[0].info.head is not None
    assert clean.functions[0].info.head.text == text
    assert "machine 2 (×1.4), not on machine 1 (×1); machine 2 and machine 1 differ" in say(clean.sentence)
    assert without_hosts(made.findings()) == made.findings()
