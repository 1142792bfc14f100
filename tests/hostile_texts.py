"""Findings with texts that strangers could choose to break a format, for property tests of the formats that machines read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st

import findings as made
from differing import reasons_of
from perfdiff.analysis.claims import claim
from perfdiff.analysis.findings import Cause, CauseFigure, Findings
from perfdiff.records.differences import SkippedFunction
from perfdiff.records.schema import Note, Revision

_ENDS = (
    "]]>",
    "::",
    "\n::warning::",
    "\r\n",
    '"',
    "'",
    "%0A",
    "\\",
    "\\n",
    "{0}",
    "[a](b)",
    "# EOF\n",
    "-->",
    "\0",
    "\x1b[0m",
    "\u202e",
    "\u2028",
)

# Each example is a whole report, and a busy machine takes its time over one.
few = settings(max_examples=40)

# Any characters at all, among them such as end a string, a line or a section somewhere.
texts = st.lists(st.one_of(st.text(max_size=20), st.sampled_from(_ENDS), st.just("x" * 5_000)), max_size=5).map("".join)


@st.composite
def findings(draw: st.DrawFn) -> Findings:
    """Draw findings of three regressed functions, two of which share name and file, with hostile texts wherever one can stand."""
    names: Sequence[str] = [draw(texts), draw(texts)]
    files: Sequence[str] = [draw(texts), draw(texts)]
    said = draw(texts)
    first = made.regressed()
    functions = []
    for number, (name, file) in enumerate([(names[0], files[0]), (names[0], files[0]), (names[1], files[1])], 11):
        info = replace(first.info, id=number, name=name, file=file, reasons=reasons_of((said,)), base=None, head=None)
        lines = claim("cites", newly=(said,), gone=False, file=file, numbers=(1,), texts=(said,), more=0)
        says = claim("leads-to-calls", function=name, base=1.0, head=2.0, lines=lines)
        cause = Cause(draw(texts), says, (CauseFigure(draw(texts), 1.0, 2.0),))
        step = claim("starts", function=claim("function", name=name, standing="changed"), link="data", through=said, leads_to=None)
        functions.append(
            replace(
                first,
                info=info,
                happened=made.worded(said),
                reason=made.worded(said),
                causes=(cause,),
                chain=(step, step),
                rank=number - 10,
            )
        )
    whole = made.findings(functions=(*functions, *made.others()))
    return replace(
        whole,
        sentence=made.worded(draw(texts)),
        base=Revision(draw(texts), None, said),
        skipped=(SkippedFunction(names[0], files[0], said),) * 2,
        notes=(Note("output-differs", said),),
    )
