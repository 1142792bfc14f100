"""What was decided on single functions, in words."""

from __future__ import annotations

from collections.abc import Mapping

from perfdiff import units
from perfdiff.report.sentences.spelling import Facts, Wording


def _larger_inputs(facts: Facts) -> str:
    names = ", ".join(facts["inputs"]) or "its inputs"
    return f"called with larger inputs ({names}; expected cost {units.ratio(facts['ratio'])}); its cost per input did not change"


def _slows_caller(facts: Facts) -> str:
    why = f"it carries no probe ({facts['obstacle']})" if facts["obstacle"] else "its calls are too short to be timed alone"
    return f"{why}; its caller `{facts['caller']}` is slower through it: {facts['reason']}"


def _happened_to_caller(facts: Facts) -> str:
    whose = "which carries no probe" if facts["obstacle"] else "whose calls are too short to be timed alone"
    return f"`{facts['name']}`, {whose}, makes its caller slower: {facts['happened']}"


WORDINGS: Mapping[str, Wording] = {
    "happened": "`{name}`: {reason}",
    "happened-by-change": "`{name}` {change}: {reason}",
    "happened-so": "`{name}` {how}",
    "happened-to-caller": _happened_to_caller,
    "open-by-machines": "`{name}` is open, as machines disagree: {machines}",
    "machines-differ": "machines differ: {machines}",
    "slower-through": "its code is unchanged; it is slower because of {names:names}",
    "slows-caller": _slows_caller,
    "not-timed": "its calls could not be timed, and whole runs and counts do not answer for it",
    "loads-little": "loading it takes {extra_ns:duration} more, once in a process, and less than {share:percent} of any run",
    "larger-inputs": _larger_inputs,
}
