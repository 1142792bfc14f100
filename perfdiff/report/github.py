"""The report as workflow commands of GitHub Actions, which become annotations of the lines that they name."""

from __future__ import annotations

from perfdiff.analysis.annotations.consequences import BudgetStanding
from perfdiff.analysis.findings import FunctionFinding
from perfdiff.records.schema import FunctionInfo, Source
from perfdiff.report import consequences
from perfdiff.report.blocks import Sentence
from perfdiff.report.document import Document
from perfdiff.report.printable import printable, shortened
from perfdiff.report.sentences.catalogue import say

# GitHub keeps ten warnings of a step and drops the rest without a word.
MOST_WARNINGS = 10
_MOST_TEXT = 1_000
_LONGEST_PATH = 4_096  # no system opens a file by a longer one
# What the runner unescapes, or does no harm; for other control characters it has no escape, and another name leads to no file.
_CARRIED = str.maketrans("\r\n\t", "   ")


def render(document: Document) -> str:
    """Return a notice with the answer, and a warning at each regressed function, the likeliest root cause first."""
    functions = zip(document.findings.functions, document.leading.functions, strict=True)
    regressed = [(finding, leading.info.head or leading.info) for finding, leading in functions if finding.is_open_regression]
    answer = document.answer[0]
    said = answer.text if isinstance(answer, Sentence) else say(document.findings.sentence)
    rest = len(regressed) - MOST_WARNINGS
    more = f" {rest:,} more regressed functions are in the summary." if rest > 0 else ""
    commands = [command("notice", f"{shortened(said, _MOST_TEXT)}{more}", title="perfdiff")]
    for budget in document.consequences.some(BudgetStanding.EXCEEDED) if document.consequences else ():
        commands.append(command("warning", shortened(consequences.said(budget), _MOST_TEXT), title="perfdiff: over budget"))
    return "".join(f"{line}\n" for line in [*commands, *(_warning(finding, place) for finding, place in regressed[:MOST_WARNINGS])])


def _warning(finding: FunctionFinding, place: Source | FunctionInfo) -> str:
    """Return a warning at a function's line; where a command cannot carry the name of its file, the text tells it instead."""
    causes = [] if finding.tells_cause else [cause.says for cause in finding.causes[:1]]
    said = "; ".join(shortened(say(part).rstrip("."), _MOST_TEXT) for part in [finding.headline, *causes])
    title = f"perfdiff: {shortened(finding.info.name, _MOST_TEXT)} got slower"
    if not place.file:
        return command("warning", said, title=title)
    if len(place.file) > _LONGEST_PATH or not place.file.translate(_CARRIED).isprintable():
        return command("warning", f"{said} ({shortened(printable(place.file), _MOST_TEXT)}:{place.line})", title=title)
    return command("warning", said, file=place.file, line=str(max(place.line, 1)), title=title)


def command(name: str, message: str, **properties: str) -> str:
    """Return a workflow command on one line. Nothing in its texts can end a property, the line, or begin another command."""
    given = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {given}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
