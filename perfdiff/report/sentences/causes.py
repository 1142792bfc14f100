"""Why a cost grew, in words."""

from __future__ import annotations

from collections.abc import Mapping

from perfdiff import units
from perfdiff.records.metrics import metric_of
from perfdiff.report.sentences.spelling import Facts, Wording, filled

_AT = "{at:? at {at}}"
_GREW = {
    "alloc_bytes": f"allocates {{head}} a call{_AT}, {{base}} before",
    "alloc_count": f"makes {{head}} allocations a call{_AT}, {{base}} before",
    "lock_wait_ns": f"waits {{head}} a call{_AT} for locks, {{base}} before",
    "lock_hold_ns": f"holds locks for {{head}} a call{_AT}, {{base}} before",
    "page_faults": f"takes {{head}} page faults a call{_AT}, {{base}} before",
    "switches": f"is switched out {{head}} times a call{_AT}, {{base}} before",
}
# What a change does that makes others call more often, by how it reaches them.
_ACTS = {
    "data": "it writes {through}",
    "inputs": "it {through:?writes {through}|hands larger inputs on}",
    "return": "it returns other values",
    "memory": "it allocates more",
    "called": "it makes calls of `{caller}` that nobody made before",
    "decorators": "its decorators changed",
}


def _counter_grew(facts: Facts) -> str:
    unit = metric_of(facts["counter"]).unit
    amounts = {"base": _amount(facts["base"], unit), "head": _amount(facts["head"], unit)}
    return filled(f"it{{beside:? also}} {_GREW[facts['counter']]}{{lines}}", {**facts, **amounts})


def _amount(value: float, unit: str) -> str:
    """Return a mean of calls as people write it."""
    if unit == "bytes" and 0 < value < 1:
        return "less than 1 B"
    return units.quantity(value, unit) if value else "none"


def _others_call_more(facts: Facts) -> str:
    act = _ACTS.get(facts["link"])
    whom = f"{act}, and the unchanged `{{caller}}`" if act else "it is the nearest change to the unchanged `{caller}`, which"
    return filled(f"{whom} calls {{function:?`{{function}}`|it}} {{head:often}} in {{run}}, {{base:often}} before{{lines}}", facts)


WORDINGS: Mapping[str, Wording] = {
    "allocates-what-is-freed": "it allocates more, and {to}, which frees it, {works}{lines}",
    "called-through": "is called through it",
    "calls-it": "calls it",
    "calls-more": "each call of `{caller}` calls `{function}` {head:often}, {base:often} before{entering}{lines}",
    "changed": "`{function}` changed",
    "class-change": "{work:?{work}|its cost was {base} in {feature:?{feature}|its inputs} and is now {head}}{lines}",
    "counter-grew": _counter_grew,
    "dearer-calls": "through it {to} is called {head:often} in a run, {base:often} before, calls that cost more each{lines}",
    "dearer-instructions": "dearer instructions in what changed{lines}, machine",
    "deeper-recursion": "the recursion goes further: {head:count} calls of `{function}` in {run}, {base:count} before{lines}",
    "explains-little": "more {counter:counted-metric} a call than before, {ratio:ratio}{stratum:? ({stratum})},"
    " which does not explain all of the time",
    "first-calls": "its first {several:?{several:count} calls of a run take, each,|call of a run takes} {head_ns:duration},"
    " {base_ns:duration} before, and later calls take {later_head_ns:duration}, {later_base_ns:duration} before:"
    " something is done once, such as loading, imports or compilation of hot code{lines}",
    "hands-larger-inputs": "it {through:?writes {through}, with which {to} works on larger inputs|hands larger inputs to {to}}{lines}",
    "is-slower": "is slower",
    "it-does": "it {does}",
    "leads-to-calls": "it leads to calls of `{function}`, {head:often} in a run, {base:often} before{lines}",
    "leads-to-it": "leads to it",
    "line-compiled-anew": "line {line}, {text:code}, which base does not compile, runs {head} times",
    "line-runs-more": "its line {line}, {text:code}, runs {head:count} times in one run of {at}, {new:?never|{base:count}} before{lines}",
    "longer-lines": "lines do more, machine",
    "machine": "machine",
    "named": "`{name}`",
    "named-unchanged": "the unchanged `{name}`",
    "nearest-change": "it is the nearest change to {to}, which is slower and {way}{lines}",
    "new-work": "it is new, and nothing that it replaces cost as much",
    "others-call-more": _others_call_more,
    "returned-values": "it returns other values, with which {to} {works}{lines}",
    "shared-data": "it writes {through}, which {to} reads, and that is slower{lines}",
    "steeper-line": "{new:?new }line {line}{function:? of `{function}`}{text:?, {text:code},} runs {head} times{base:?, {base} before}",
    "takes-longer": "{ratio:?{alone:?without what the probed callees take, }a call takes {ratio:ratio} as long at equal inputs"
    "|its calls take longer}{lines}",
    "time-only": "its time grew and nothing that was counted did: {suspects}, layout or I/O",
    "uncounted-work": "more work, machine",
    "waits-outside": "a call waits {head_ns:duration} for"
    " {queries:?the answers of {queries:names}|other processes, the network or the disk} at {at},"
    " {base_ns:?{base_ns:duration}|not at all} before: {part:?{part:whole-percent}|all} of what it takes longer",
}
