"""The report as SARIF 2.1.0 (OASIS, 2020), which code scanning shows at the lines of the regressed functions."""

from __future__ import annotations

import hashlib
import re
from typing import Any
from urllib.parse import quote

from perfdiff import __version__
from perfdiff.analysis.claims import tells
from perfdiff.analysis.findings import FunctionFinding
from perfdiff.records.schema import FunctionInfo, Source
from perfdiff.report import wording
from perfdiff.report.blocks import FunctionSection
from perfdiff.report.document import Document, conclusion
from perfdiff.report.function import change
from perfdiff.report.json_text import json_text
from perfdiff.report.labels import Label, labels
from perfdiff.report.printable import as_read, shortened
from perfdiff.report.sentences.catalogue import noted, say

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
VERSION = "2.1.0"

# A message is read beside a line of source; the rest is in the other formats.
_MOST_TEXT = 1_000
_MOST_CAUSES = 3
_ROOT = "%SRCROOT%"

_REGRESSION = "performance-regression"
# The first is broken by a function whose change is at fault, the second by one that only suffers from another's.
_RULES: tuple[dict[str, Any], ...] = (
    {
        "id": _REGRESSION,
        "name": "PerformanceRegression",
        "shortDescription": {"text": "The function costs more at equal inputs"},
        "fullDescription": {
            "text": "A call of this function costs more in head than in base for the same inputs, because of a change to it."
        },
        "help": {
            "text": "The interval of head's cost over base's, at equal inputs, lies beyond the smallest effect of interest, beyond chance "
            "over all functions and metrics, and beyond what base shows against itself. Read the cause in the message first, then the cost "
            "at the inputs named. 'perfdiff explain FUNCTION' tells all that is known of the function. If the cost is wanted, or the "
            "inputs do not occur, dismiss the alert; if the figure is doubted, measure again with more runs or larger inputs."
        },
        "defaultConfiguration": {"level": "warning"},
        "properties": {"tags": ["performance"], "precision": "high"},
    },
    {
        "id": "slower-by-another-change",
        "name": "SlowerByAnotherChange",
        "shortDescription": {"text": "The function is slower because of a change elsewhere"},
        "fullDescription": {
            "text": "A call of this function costs more in head than in base for the same inputs, though its code is the same."
        },
        "help": {
            "text": "The code of this function did not change: it waits for, works on the data of, or is laid out differently because of "
            "something that did. The message names the change behind it where that is known. Look at the alerts of rule "
            f"'{_REGRESSION}' first: this one usually goes with them."
        },
        "defaultConfiguration": {"level": "note"},
        "properties": {"tags": ["performance"], "precision": "medium"},
    },
)


def render(document: Document) -> str:
    """Return a log of one run with a result for each regressed function, the likeliest root cause first.

    Accepted ones are left out, not marked as suppressed: not every reader knows suppressions.
    """
    findings = document.findings
    names = labels(findings.functions)
    regressed = [
        (finding, section, leading.info.head or leading.info)
        for finding, section, leading in zip(findings.functions, document.functions, document.leading.functions, strict=True)
        if finding.is_open_regression
    ]
    run = {
        "tool": {"driver": {"name": "perfdiff", "version": __version__, "semanticVersion": __version__, "rules": list(_RULES)}},
        "automationDetails": {"id": "perfdiff/"},
        "columnKind": "utf16CodeUnits",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The top of the repository."}}},
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    {"level": "note", "descriptor": {"id": note.slug}, "message": _message(note.text)}
                    for note in map(noted, findings.notes)
                ],
            }
        ],
        "results": [_result(finding, section, place, names[finding.info.id]) for finding, section, place in regressed],
        "properties": {
            "verdict": findings.verdict.value,
            "sentence": shortened(conclusion(findings), _MOST_TEXT),
            "base": {"rev": findings.base.rev, "commit": findings.base.commit},
            "head": {"rev": findings.head.rev, "commit": findings.head.commit},
        },
    }
    log = {"$schema": SCHEMA, "version": VERSION, "runs": [run]}
    return json_text(log) + "\n"


def _result(finding: FunctionFinding, section: FunctionSection, place: Source | FunctionInfo, label: Label) -> dict[str, Any]:
    index = 0 if finding.info.change.is_suspect else 1
    return {
        "ruleId": _RULES[index]["id"],
        "ruleIndex": index,
        "level": _RULES[index]["defaultConfiguration"]["level"],
        "message": _message(_says(finding, section)),
        "locations": [
            {
                **_physical(place.file, place.line),
                "logicalLocations": [{"name": shortened(finding.info.name, _MOST_TEXT), "kind": "function"}],
            }
        ],
        "partialFingerprints": {"primaryLocationLineHash": f"{_fingerprint(label)}:1"},
        "properties": {"rank": finding.rank, "change": finding.info.change.value, "ratio": section.figure},
    }


def _says(finding: FunctionFinding, section: FunctionSection) -> str:
    """Return the headline, causes that it does not tell, for unchanged code the change behind it, and how the code differs."""
    causes = [say(cause.says) for cause in finding.causes[:_MOST_CAUSES] if not tells(finding.headline, cause.says)]
    behind = [] if finding.info.change.is_suspect else [say(finding.reason)]
    parts = [section.headline, *causes, *behind, f"code {change(finding.info)}"]
    metric = wording.leading(finding)
    if metric is not None and metric.ratio is not None:
        parts.append(f"ratio {section.figure} ({wording.metric_says(metric.metric)})")
    return "; ".join(shortened(part.rstrip("."), _MOST_TEXT) for part in parts if part) + "."


def _message(text: str) -> dict[str, str]:
    """Return a message whose text is shown as it stands: no placeholders (SARIF 2.1.0, 3.11.5) and no links (3.11.6)."""
    return {"text": re.sub(r"([\\\[\]])", r"\\\1", text).replace("{", "{{").replace("}", "}}") or "-"}


def _physical(file: str, line: int) -> dict[str, Any]:
    """Return a place in the repository, its path as a relative reference (RFC 3986); samples without sources have none."""
    uri = quote(as_read(file.lstrip("/")), safe="/")
    artifact = {"uri": uri, "uriBaseId": _ROOT}
    return {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": max(line, 1)}}} if uri else {}


def _fingerprint(label: Label) -> str:
    """Return what code scanning knows an alert by: the function, so that it is the same one when lines move."""
    return hashlib.sha256(f"{label.file}\0{label.name}".encode()).hexdigest()[:16]
