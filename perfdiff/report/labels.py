"""Names by which machines tell functions apart: unique within a report, and the same ones in the next report."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from perfdiff.analysis.findings import FunctionFinding
from perfdiff.report.printable import shortened

# Names of C++ templates can fill pages; databases of metrics and of test results keep this much of a name.
LONGEST = 250


@dataclass(frozen=True, slots=True)
class Label:
    """A function's file and a name that no other function of this file has."""

    file: str
    name: str


def labels(findings: Sequence[FunctionFinding]) -> Mapping[int, Label]:
    """Return a label for each function's id.

    Of functions that share a name and a file, the first in the file keeps the name and the next is `name (2)`, wherever they rank.
    """
    label_by_id: dict[int, Label] = {}
    for finding in sorted(findings, key=lambda finding: (finding.info.line, finding.info.id)):
        label_by_id[finding.info.id] = unused(finding.info.file, finding.info.name, label_by_id.values())
    return label_by_id


def unused(file: str, name: str, taken: Collection[Label]) -> Label:
    """Return the label of a file's function that is not taken."""
    file, name = shortened(file, LONGEST), shortened(name, LONGEST)
    label, count = Label(file, name), 1
    while label in taken:
        count += 1
        label = Label(file, f"{name} ({count})")
    return label
