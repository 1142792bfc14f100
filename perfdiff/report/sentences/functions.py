"""What was decided on single functions, in words."""

from __future__ import annotations

from collections.abc import Mapping

from perfdiff import units
from perfdiff.records.schema import Change
from perfdiff.report.sentences.spelling import Facts, Wording, percent

_ONE_SIDED = {Change.REMOVED.value: "it was removed", Change.ADDED.value: "it is new, and nothing became slower through it"}
_LONGER = {"lock_hold_ns": "holds locks", "lock_wait_ns": "waits for locks"}
_IN_TURN = "let perfdiff make runs in turn; of other tools, give four files or more a side that were made in turn"
_MORE_TIME_THERE = "add runs, or a workload that spends more of its time there"


def _on_one_side(facts: Facts) -> str:
    return _ONE_SIDED.get(facts["change"], "it was not called on both sides")


def _surely(facts: Facts) -> str:
    low, high = map(units.duration, facts["ns"])
    return f" ({percent(facts['confidence'])} CI {low} to {high})"


def _longer(facts: Facts) -> str:
    ratio, base_ns = facts["ratio"], facts["base_ns"]
    figures = "" if base_ns is None else f", {units.duration(base_ns)} → {units.duration(base_ns * ratio)} a call"
    return f"{_LONGER[facts['metric']]} {units.ratio(ratio)} as long as before{figures}"


WORDINGS: Mapping[str, Wording] = {
    "happened": "`{name}`: {reason}",
    "happened-by-change": "`{name}` {change}: {reason}",
    "happened-to-caller": (
        "`{name}`, {obstacle:?which carries no probe|whose calls are too short to be timed alone}, makes its caller slower: {happened}"
    ),
    "open-by-machines": "`{name}` is open, as machines disagree: {machines}",
    "machines-differ": "machines differ: {machines}",
    "slower-through": "its code is unchanged; it is slower because of {names:names}",
    "slows-caller": (
        "{obstacle:?it carries no probe ({obstacle})|its calls are too short to be timed alone}; its caller `{caller}` is slower "
        "through it: {reason}"
    ),
    "answered-by-counts": "its calls were not timed: whole runs and exact counts leave no room for a slow-down",
    "answered-by-lines": (
        "its calls were not timed: whole runs exclude a slow-down of the program, and functions execute about as many lines as before"
    ),
    "surely": _surely,
    "adds-time": "its change adds {ns:duration}{surely} to one run of each workload point",
    "adds-cpu-time": "its change adds {ns:duration}{surely} of CPU time to one run of each workload point; threads that wait, wait at once",
    "adds-time-in-first-calls": "its change adds {ns:duration}{surely} to one run of each workload point, most of it in first calls",
    "allocates-more": "its time did not clearly grow, but {metric:metric} a call did",
    "allocates-below": "it allocates more only through what it calls",
    "counts-prove": "it {work}, which takes {ns:duration} at least",
    "counts-alone-prove": "its time alone does not tell, but {proved}",
    "saves-time": "its change saves {ns:duration} in one run of each workload point",
    "moved-to-caller": "what it takes less, its caller `{caller}` takes more of its own",
    "moved-from-callees": (
        "{of:?`{of}`'s|its} own time grew by what its callees take less{ratio:?: with them, its calls take {ratio:interval} as long}"
    ),
    "unconfirmed": (
        "{of:?`{of}`'s|its} own time grew, but {has_callees:?the time of its calls with their callees|the time of what calls it} does not "
        "show it{is_counted:?, nor does any count of work}{is_less_than_probes:?, and probes cost more than what they seem to show}: "
        f"{_MORE_TIME_THERE}"
    ),
    "distorted": "the probes cost more than the program itself, and whole runs without them are not slower",
    "excluded-but-for-layout": ("whole runs without probes exclude what it seems to add, and counts do not explain it: another layout may"),
    "excluded-but-for-probes": "whole runs without probes exclude what it seems to add, and counts do not explain it: its probes may",
    "excluded-without-probes": (
        "whole runs without probes exclude what it seems to add, though runs with them take as much longer: its probes may"
    ),
    "may-be-drift": (
        "it takes {ratio:interval} the time, and what is measured one after the other may differ by {drift:whole-percent} though nothing "
        f"changed: {_IN_TURN}"
    ),
    "runs-overlap": (
        "it takes {ratio:interval} the time, but some of head's runs come near to what base's take, so that the machine may make "
        f"the difference: {_IN_TURN}"
    ),
    "may-be-layout": (
        "a call takes {ratio:ratio} as long, which another layout of the same instructions may make: counts do not explain it, "
        f"and whole runs without probes are not slower: {_MORE_TIME_THERE}"
    ),
    "unevenly-called": "a call takes {ratio:ratio} as long at equal inputs, but runs make another number of calls each time, and fewer in "
    "head: have them make a fixed number",
    "work-moved": "work moved between it and {names:names}; together they {together}",
    "costs-the-same": "cost the same",
    "costs-less": "take {ns:duration} less in one run of each workload point, within what runs vary by",
    "costs-more": "take {ns:duration} more in one run of each workload point, within what runs vary by",
    "may-add": "its change may add {ns:duration} to one run of each workload point, but {names:names} vary by as much: add runs",
    "recorded-on-one-side": "no calls were recorded on one side",
    "other-inputs": "called with other inputs than in base ({inputs:inputs}): their cost cannot be compared",
    "called-more": "called {ratio:ratio} as often; its cost per call did not change",
    "on-one-side": _on_one_side,
    "too-little": "slower, but too little of a run to matter",
    "unexplained": "slower at equal inputs, but no change explains it: machine, layout or I/O",
    "slower-callees": "what it calls became slower",
    "taken-over": "it makes calls of {callees:names} that {before:?{before:names}|code without probes} made before",
    "own-cost-the-same": "its own cost did not grow; {elsewhere}",
    "immaterial": "its own cost is less than {share:percent} of a run: no difference of a call matters",
    "differs-too-little": "its cost differs by too little of a run to matter, or by no more than layout, probes and the machine make",
    "differs-by-less": "its cost at equal inputs differs by less than {share:percent}",
    "differs-by-chance": "its cost at equal inputs differs by no more than chance makes",
    "most-work": "whole runs are slower, and it {work}, {share:percent} of what changed functions execute more",
    "only-one-slower": "whole runs are slower, and it is the only changed function whose own calls are",
    "only-lines-grown": (
        "whole runs are slower, and it is the only changed function whose lines run so much more often that this can explain it"
    ),
    "waits": "{waits}, which its time does not clearly show on this machine",
    "keeps-others-waiting": "through it `{name}` is slower on machines with more cores or nodes: there {waits}",
    "waits-for-others": "its code is unchanged; {waits} because of {names:names}",
    "works-the-same": (
        "by counts it does the same work; what it takes longer is the time of what it calls, slower because of {names:names}"
    ),
    "waits-for-threads": (
        "{at:names} below it takes longer at the same work, by counts: it waits for threads that are slower because of {names:names}"
    ),
    "opposite-machines": "machines disagree: {machines}",
    "locks-longer": "it {longer}; threads that wait for each other there are slower the more they meet. Its time: {time}",
    "waits-for-locks": "{time}; it waits for locks, and `{name}` {longer}",
    "longer": _longer,
    "not-timed": "its calls could not be timed, and whole runs and counts do not answer for it",
    "loads-little": "loading it takes {extra_ns:duration} more, once in a process, and less than {share:percent} of any run",
    "larger-inputs": "called with larger inputs ({inputs:inputs}; expected cost {ratio:ratio}); its cost per input did not change",
}
