"""What is told beside the answer, in words: each kind is the slug of a note."""

from __future__ import annotations

import math
from collections.abc import Mapping

from perfdiff import units
from perfdiff.report.sentences.spelling import FEWER_NAMES, Facts, Wording, filled, percent

_MOST_POINTS = 1  # that a clock ends, in a sentence


# How pairs of runs were made, and the others of their point.
_MADE = {
    "alone": ("in runs made alone, which may use all CPUs", "where base and head share one CPU"),
    "as-built": ("in runs of the builds as they are", "where the same objects were linked again"),
}


def _ways_apart(facts: Facts) -> str:
    here, there = _MADE[facts["way"]]
    return filled(
        f"{here}, head takes {{ratio:ratio}} the {{cost}} of base at {{point}} ({{pairs}} pairs), and {there} {{other_ratio:ratio}} "
        "({others} pairs): the place of code in memory makes no more than {shift:whole-percent}, so the program does other work in one "
        "of them, and the worse one counts",
        facts,
    )


def _locks_held_longer(facts: Facts) -> str:
    waiting = "".join(facts["waiting"][:FEWER_NAMES])
    return f"`{facts['name']}` {facts['longer']}{waiting}: threads are slower where they meet more often than in these runs"


def _waiting_grown(facts: Facts) -> str:
    longer, low, high = facts["ratio"]
    services = " or ".join(facts["services"])
    return (
        f"runs of {facts['point']} take ×{longer:.2f} as long [{low:.2f}, {high:.2f}]{facts['more'] or ''} and hardly any of that is CPU "
        f"time: they wait longer, as where {services}, which is outside the revisions, got slower; that is not put down to the program"
    )


def _workload_grown(facts: Facts) -> str:
    grown_ns, extra_ns = facts["grown_ns"], facts["extra_ns"]
    part = f"most of what runs take longer, {units.duration(grown_ns)} of {units.duration(extra_ns)} in one run of each point,"
    if grown_ns > extra_ns:  # something else takes less time
        part = f"what runs take longer, {units.duration(extra_ns)} in one run of each point,"
    return f"{part} {facts['by']}"


def _ends_by_the_clock(facts: Facts) -> str:
    points = units.listed(facts["points"], _MOST_POINTS)
    return (
        f"runs of {points} end by the clock: they last as long however long calls take, so that whole runs tell nothing, "
        "and sums are told as if head repeated as often as base"
    )


def _machines_one_sided(facts: Facts) -> str:
    machines, runs = facts["machines"], "1 run" if facts["runs"] == 1 else f"{facts['runs']:,} runs"
    which = f"{', '.join(machines[:FEWER_NAMES])}{', …' if len(machines) > FEWER_NAMES else ''}"
    return f"left out: {runs} of one revision on {which}, where the other one was not run as well"


# How a service was made worse to reach.
_WAYS = {
    "delay_s": "answers {delay_s:milliseconds} late",
    "jitter_s": "give or take {jitter_s:milliseconds}",
    "bytes_per_s": "has {bytes_per_s:megabytes}/s a connection",
    "failing": "loses {failing:.3g} of its answers",
    "refused": "refuses {refused:.3g} of the connections",
    "reset_after": "resets connections after {reset_after} bytes",
}


def _service_worse(facts: Facts) -> str:
    ways = ", ".join(filled(way, facts) for name, way in _WAYS.items() if facts[name]) or "is as it is"
    lost = "{failures:?, of which {failures} connections were reset in all}"
    asked = "no run was counted" if facts["answers"] is None else filled(f"{{answers:,.0f}} answers a run (median){lost}", facts)
    return f"service {facts['service']} {ways}: {asked}"


def _slow_runs_unseen(facts: Facts) -> str:
    times, one_in = f"{facts['runs']} times" if facts["runs"] > 1 else "once", math.ceil(1 / facts["share"])
    shown = f"what makes one run in {one_in} slow need not have shown" if one_in > 1 else "whether other runs are slow is not known"
    return f"`{facts['workload']}` ran {times} on either side: {shown} ({percent(facts['confidence'])})"


WORDINGS: Mapping[str, Wording] = {
    "outputs-differ": "{differing:first-three}; make sure that base and head do the same work: {remedy}",
    "processes-left": (
        "runs of {points:three} on {side} left processes ({names:three}) that were ended; their CPU time until then, {cpu_ns:duration} at "
        "most, counts as the runs'"
    ),
    "tasks-hardly-met": "{hardly_met}; let nothing else run, or have several CPUs free",
    "slower-beside": "slower all the same, in a program that is faster as a whole: {guilty}",
    "slow-runs-unseen": _slow_runs_unseen,
    "waiting-grown": _waiting_grown,
    "unattributed": "`{name}` takes {ns:duration} longer in one run of each point, itself or in what it calls, and no change explains it: "
    "machine, layout or I/O",
    "locks-held-longer": _locks_held_longer,
    "workload-grown": _workload_grown,
    "machines-disagree": "machines disagree: {found:three}",
    "ways-apart": _ways_apart,
    "layout-decides": (
        "the builds as they are mislead: in them head takes {ratio:ratio} the {cost} of base at {point} ({pairs} pairs), in {layouts} "
        "layouts of the same code {mean:ratio} in the mean (eight of ten between {low:ratio} and {high:ratio}): the place of code in "
        "memory makes that"
    ),
    "probed-otherwise": (
        "on {side} runs at {point} take {probed_ns:duration} of CPU time with probes and {plain_ns:duration} without: beside probes the "
        "compiler makes other code, which leaves work out, so that times of calls are too small; whole runs and counts hold"
    ),
    "few-layouts": (
        "whole runs at {points:listed} are slower in the layouts that were measured, but these are fewer than {known}, and the place of "
        "code in memory may make up to {shift:whole-percent}: raise measure.layouts"
    ),
    "ends-by-the-clock": _ends_by_the_clock,
    "machines-count-otherwise": (
        "the same code counts otherwise on {machines:commas}: counts are those of one machine, and their libraries or processors may differ"
    ),
    "machines-one-sided": _machines_one_sided,
    "accepted": "{accepted:joined}",
    "accepted-expired": "{entry} was accepted until {until}, which is over: {reason}",
    "accepted-unmatched": "{entry} is accepted, but no function of this name and file was compared",
    "accepted-exceeded": "{entry} now costs {ratio:ratio}, more than what was accepted",
    "recorded-apart": "{drift:?the revisions were recorded one after the other, and the machine itself may change meanwhile: times count as"
    " changed from {drift:whole-percent} on; `perfdiff BASE HEAD` measures two revisions in turn and sees smaller changes"
    "|the annotations come from another recording: what differs between the two, such as the machine or its load, counts as the code's}",
    "recorded-in-turn": "several machines recorded the revisions, each a stretch of them and the last one of the stretch before: changes"
    " are told from recordings of one machine alone, and costs as the first machine would have them",
    "service-not-asked": "no run exchanged anything with service {service}: do the workloads use its port, {service:port}?",
    "service-worse": _service_worse,
    "slower-throughout": "{slower} of {times} times are above their annotations, by ×{low:.2f} to ×{high:.2f}:"
    " rather a slower machine, compiler or setting than the code of single functions",
    "warm-up": "first calls of a run cost more than later ones with the same inputs, as where code is compiled while it runs or caches"
    " fill; they are compared apart: {functions:three}",
}
