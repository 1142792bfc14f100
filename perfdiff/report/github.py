"""The report as workflow commands of GitHub Actions, which become annotations of the lines that they name."""

from __future__ import annotations

from perfdiff.analysis.findings import FunctionFinding
from perfdiff.report.blocks import Sentence
from perfdiff.report.document import Document
from perfdiff.report.printable import shortened

# GitHub keeps ten warnings of a step and drops the rest without a word.
MOST_WARNINGS = 10
_MOST_TEXT = 1_000
_MOST_PATH = 1_000


def render(document: Document) -> str:
    """Return a notice with the answer, and a warning at each regressed function, the likeliest root cause first."""
    regressed = [finding for finding in document.findings.functions if finding.is_open_regression]
    answer = document.answer[0]
    said = answer.text if isinstance(answer, Sentence) else document.findings.sentence
    rest = len(regressed) - MOST_WARNINGS
    more = f" {rest:,} more regressed functions are in the summary." if rest > 0 else ""
    commands = [command("notice", f"{shortened(said, _MOST_TEXT)}{more}", title="perfdiff")]
    return "".join(f"{line}\n" for line in [*commands, *map(_warning, regressed[:MOST_WARNINGS])])


def _warning(finding: FunctionFinding) -> str:
    place = finding.info.head or finding.info
    causes = [cause.says for cause in finding.causes[:1] if cause.says not in finding.headline]
    said = "; ".join(shortened(text.rstrip("."), _MOST_TEXT) for text in [finding.headline, *causes])
    title = f"perfdiff: {shortened(finding.info.name, _MOST_TEXT)} got slower"
    at = {"file": shortened(place.file, _MOST_PATH), "line": str(max(place.line, 1))} if place.file else {}
    return command("warning", said, **at, title=title)


def command(name: str, message: str, **properties: str) -> str:
    """Return a workflow command on one line. Nothing in its texts can end a property, the line, or begin another command."""
    given = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {given}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
