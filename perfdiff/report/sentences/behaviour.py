"""In what the runs of head do something else than those of base, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perfdiff import units
from perfdiff.processes import signal_name
from perfdiff.report.sentences.spelling import Facts, Wording, three

_SIGNALS_FROM = 128  # exit codes of the shell for a child that a signal ended
_LAST_SIGNAL = 64  # of Linux; programs exit 255 as they like


def _exits(facts: Facts) -> str:
    return f"exits {_codes(facts['head'])} where base exits {_codes(facts['base'])}"


def _codes(codes: Sequence[int]) -> str:
    return three([_code(code) for code in codes])


def _code(code: int) -> str:
    """Return an exit code, and the signal that it stands for."""
    number = -code if code < 0 else code - _SIGNALS_FROM
    return f"{code} ({signal_name(number)})" if 0 < number <= _LAST_SIGNAL else str(code)


def _output(facts: Facts) -> str:
    lines = "1 line" if facts["lines"] == 1 else f"{units.count(facts['lines'])} lines"
    return f"{lines} ({units.size(facts['bytes'])})" if facts["bytes"] else lines  # of answers to requests only the number is known


WORDINGS: Mapping[str, Wording] = {
    "less-work": "head may do less work: it {head}",
    "fewer-dearer-calls": (
        "head may do less work: it calls `{name}`, which changed, {head:count} times, {base:count} before, each at {ratio:ratio} the cost"
    ),
    "tests-differ": (
        "head may be asked for less: `{test}`, which runs call, differs between base and head, and `{name}`, which changed, takes no less "
        "at equal inputs"
    ),
    "beside-other-work": "{concluded}; head {head}",
    "gravest-difference": (
        "{says}{point:? at {point}{more_points:? and {more_points} more}}{more_kinds:?, with more that differs (outputs-differ)}"
    ),
    "executes-less": ("executes {part:percent} of what base does, and nothing that it prints or writes shows that the work was done"),
    "takes-less": "takes {part:percent} of what base does, and nothing that it prints or writes shows that the work was done",
    "exits": _exits,
    "leaves-processes": "leaves processes ({names:three-names}) that work on when it has ended",
    "on-standard-error": " on standard error",
    "prints-other-numbers": "prints other numbers{where}",
    "prints-in-another-order": "prints the same in another order, or with other blanks{where}",
    "prints-nothing": "prints nothing{where}, where base prints {base}",
    "prints-less": "prints less{where}: {head}, where base prints {base}",
    "prints-otherwise": "prints something else{where}: {head}, where base prints {base}",
    "output": _output,
    "nothing": "nothing",
    "has-other-inputs": "works on other inputs, which its setup makes ({names:three-names})",
    "writes-less-elsewhere": "writes {head:size} to pipes, sockets and files outside of its tree, where base writes {base:size}",
    "writes-less-to-files": "does not write {names:three-names}, or less to it, where base does",
    "writes-other-files": "writes something else to {names:three-names}",
    "writes-in-another-order": "writes the same in another order, or with other blanks to {names:three-names}",
    "head-differs": "at {points:three} head {differences:and-beside}",
    "say-that-it-is-meant": 'if that is meant, say so by a workload\'s `check`, or by `outputs = "differ"`',
    "wait-for-processes": "what they do is in no figure, so have runs wait for them",
}
