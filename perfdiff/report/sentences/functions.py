"""What was decided on single functions, in words."""

from __future__ import annotations

from collections.abc import Mapping

from perfdiff import units
from perfdiff.report.sentences.spelling import Facts, Wording


def _larger_inputs(facts: Facts) -> str:
    names = ", ".join(facts["inputs"]) or "its inputs"
    return f"called with larger inputs ({names}; expected cost {units.ratio(facts['ratio'])}); its cost per input did not change"


WORDINGS: Mapping[str, Wording] = {
    "not-timed": "its calls could not be timed, and whole runs and counts do not answer for it",
    "loads-little": "loading it takes {extra_ns:duration} more, once in a process, and less than {share:percent} of any run",
    "larger-inputs": _larger_inputs,
}
