"""What was concluded of a program, and what whole runs show, in words."""

from __future__ import annotations

from collections.abc import Mapping

from perfdiff import units
from perfdiff.report.sentences.spelling import Facts, Wording, few, percent, quoted, slow_downs


def _headline(facts: Facts) -> str:
    cause = f"; cause: {facts['cause']}" if facts["cause"] else ""
    said = f"{facts['happened'] or ''}{cause}"
    return "; ".join((said.rstrip("."), *facts["also"])) if said and facts["also"] else said


def _guilty(facts: Facts) -> str:
    others = facts["others"]
    more = "" if not others else "; 1 more function is slower" if others == 1 else f"; {others} more functions are slower"
    return f"{facts['first']}{more}"


def _points_differ(facts: Facts) -> str:
    standings = (("slower", facts["slower"]), ("not", facts["spared"]), ("open", facts["open"]))
    return f"; whole runs are {', '.join(f'{standing} at {few(points)}' for standing, points in standings if points)}"


def _what_ran(facts: Facts) -> str:
    ran, changed = facts["ran"], facts["changed"]
    if not ran:
        return f" (whether the {'changed function' if changed == 1 else f'{changed} changed functions'} ran is not known)"
    unknown = f" (of {facts['unknown']} without a probe it is not known)" if facts["unknown"] else ""
    if ran == changed:
        return " in the changed function, which ran" if ran == 1 else f" in the {ran} changed functions, all of which ran"
    return f" in the {ran} of {changed} changed functions that ran{unknown}"


def _nothing_ran(facts: Facts) -> str:
    names, changed = few(quoted(facts["names"])), facts["changed"]
    which = f"no workload calls {names}, which changed" if changed == 1 else f"none of the {changed} changed functions ran ({names})"
    return f"Inconclusive: {which}, so nothing is said of the change{facts['beside'] or ''}: add a workload that calls what changed"


def _excluded(facts: Facts) -> str:
    points = "at the only point" if facts["points"] == 1 else f"at all {facts['points']} points"
    return f"{slow_downs(facts['ratio'])} are excluded {points} ({percent(facts['confidence'])})"


def _files_differ(facts: Facts) -> str:
    one_file = len(facts["names"]) == 1
    files, differ = ("the file ", "differs") if one_file else ("the files ", "differ")
    return f"{files}{few(quoted(facts['names']))}, which runs use, {differ} between base and head"


def _may_be_why(facts: Facts) -> str:
    names = few(quoted(facts["names"]))
    return f"; {names} changed and may be why" if len(facts["names"]) == 1 else f"; any of {names}, which changed, may be why"


def _none_slower(facts: Facts) -> str:
    compared = "1 changed function" if facts["compared"] == 1 else f"{facts['compared']} changed functions"
    return f"{compared} compared, none makes the program slower"


def _no_benchmark_slower(facts: Facts) -> str:
    compared = "1 benchmark" if facts["compared"] == 1 else f"{facts['compared']} benchmarks"
    return f"{compared} compared, none is slower by more than the threshold"


def _more_runs(facts: Facts) -> str:
    match facts["ended_by"]:
        case None:
            return "raise measure.budget_s"
        case "time":
            return "give the comparison more with --time"
        case _:
            return "let it measure to its end"


def _endless_on_head(facts: Facts) -> str:
    others = f", nor do {facts['others']} more cases" if facts["others"] > 1 else ", nor does 1 more case" if facts["others"] else ""
    limit, base = (units.duration(facts[name]) for name in ("limit_ns", "base_ns"))
    slower = f"it takes {base} on base, so that head is slower by {units.ratio(facts['ratio'])} at least"
    beside = f"; {facts['beside']}" if facts["beside"] else ""
    return f"Regression, not located: {facts['case']} does not end on head within {limit}{others}; {slower}{beside}"


WORDINGS: Mapping[str, Wording] = {
    "headline": _headline,
    "guilty": _guilty,
    "regression": "Regression: {guilty}{elsewhere}",
    "unfelt-regression": "Regression of a function, not of the program ({excluded}): {guilty}{elsewhere}",
    "points-differ": _points_differ,
    "endless-on-head": _endless_on_head,
    "slower-command": "Regression: {takes}{elsewhere}",
    "not-located": "Regression, not located: {takes}; {reasons:joined}",
    "files-differ": _files_differ,
    "no-call-explains": "no single call explains it{likely}",
    "no-call-timed": "no calls were timed{likely}",
    "may-be-why": _may_be_why,
    "nothing-changed-ran": "no function that ran has changed",
    "nothing-changed-ran-alone": "no function that ran has changed: look at data files, build options and libraries",
    "by-counts": "; by counts, {works:and}",
    "works": "`{name}` {work}",
    "improvement": "Improvement: {by}{beside}",
    "no-regression": "No regression{where}: {by}{beside}",
    "what-ran": _what_ran,
    "nothing-differs": "nothing that runs differs between base and head",
    "runs-agree": ", and {pairs} pairs of whole runs at {point} agree ({ratio:interval})",
    "few-runs-agree": (", and the few whole runs that there was time for agree ({base_ns:duration} and {head_ns:duration} at {point})"),
    "excluded": _excluded,
    "excluded-by-runs": "; whole runs exclude {ratio:slow-downs}",
    "none-slower": _none_slower,
    "no-benchmark-slower": _no_benchmark_slower,
    "undecided": "Inconclusive{excluded:?, with {excluded:slow-downs} excluded}: {why}",
    "made-by-places": "{takes}, but counts say that no work was added: the place of code in memory may make that",
    "runs-take": "whole runs at {point} take {ratio:interval} the {cost} ({pairs} pairs)",
    "runs-too-few": "whole runs at {point} are too few",
    "runs-needed": "{takes}: {more}, or run on a quieter machine",
    "longer-at-times": "some runs of head at {point} take {multiple:ratio} as long as most, and hardly any of base's: {more}, or run the "
    "workload several times in one command",
    "slow-runs": "{head} of {pairs} runs of head of `{workload}` are slow ({multiple:ratio} as long as most), and {base} of base's: "
    "{more}, or run the workload several times in one command",
    "pairs-needed": "{takes}; about {needed:count} pairs of runs would decide: {more}",
    "more-runs": _more_runs,
    "too-many-pairs": "{takes}, which {most} pairs would not tell from the smallest effect of interest: {remedy}",
    "layouts-vary": "the place of code in memory makes more than the change",
    "machine-varies": "try a quieter machine",
    "machines-apart": "machines disagree: whole runs at {point} take {machines:listed} the {cost}",
    "machine-takes": "{name} {ratio:ratio}",
    "clocked": (
        "whole runs at {points:listed} end by the clock, and which function they repeat is not known: "
        "have them repeat it a fixed number of times"
    ),
    "clocked-more": (
        "runs at {points:three} end by the clock, and what they repeat takes longer with larger inputs, or is nothing that changed: have "
        "them repeat it a fixed number of times"
    ),
    "not-of-the-program": "what whole runs take is a matter of the clock, of services or of larger inputs, not of the program",
    "no-runs": "no whole runs were made",
    "nothing-ran": _nothing_ran,
    "profiles-alone": "profiles tell what functions take beside each other, and not how long a run takes",
    "points-not-run": "there was no time for runs at {points:three}",
    "opened": "Inconclusive: {why}; by time alone: {by_time:lowered}",
    "unlike-start": (
        "runs read {files:few}, outside of their trees, which a build or an earlier run wrote, or which the checkout has for both sides, "
        "so that base and head did not start alike"
    ),
    "uncompared-build": (
        "the build command was guessed, and base and head say otherwise in {names:few} how they are built: write what builds the program "
        "into `[build] command`, or name it with --build"
    ),
    "uncompared-absent": (
        "files that differ use {names:few}, which you have by hand, and what runs are given has not: list what they need among the "
        "requirements"
    ),
    "uncompared-pins": (
        "{names:few} pins other versions in head, and runs have the same ones on both sides: name it among the requirements, or have "
        "`[build] command` install what it pins"
    ),
    "uncompared-listed": (
        "base and head list other packages in {names:few}, which sources import where they find them, and no runs have: name what users "
        "install among the requirements"
    ),
    "uncompared-interpreter": (
        "base and head ask for other interpreters in {names:few}, and all runs have the same one: name the one to compare them under by "
        "`interpreter`"
    ),
    "uncompared-holdings": (
        "base and head say otherwise in {names:few} which files users get, and runs find all that lie in the tree: `editable = false`, "
        "or a `[build] command` that installs or unpacks it, has them run what users do"
    ),
    "uncompared-commands": (
        "{names:few}, which users call, starts another function in head than in base, and no workload calls it: add one that does"
    ),
    "uncompared-started": (
        "base and head start the program with other options or limits in {names:few}, by which no workload starts it: add one that does"
    ),
    "uncompared-commit": "base and head hold the same files, and runs ask git for their commit, for which there is one build",
    "uncompared-checkout": (
        "runs ask for {names:few}, which your checkout has and neither revision: commit it, or have it laid into both trees by "
        "`[build] overlay`"
    ),
    "uncompared-failing": "head fails {names:few}, where base runs it: what it takes is not compared",
    "uncompared-killed": (
        "processes are killed in head at {names:few}, and none in base: what they leave undone is not compared; a workload's `check` tells "
        "whether it is meant"
    ),
    "uncompared-rank": (
        "processes of head ask the kernel for another priority than those of base: what that costs them on a machine that others use is "
        "not compared"
    ),
    "uncompared-succession": (
        "runs of {names:few} that follow each other in one tree take {ratio:ratio} as long in head: what each leaves for the next is not "
        "compared"
    ),
    "uncompared-repeated": "{names:few} fails in head where earlier runs were made in the same tree, and does not in base",
    "uncompared-by-hand": (
        "runs of {names:few} on a terminal, on all CPUs and without variables that perfdiff sets take {ratio:ratio} as long in "
        "head: in a user's hands it is slower, and runs that are compared have pipes instead"
    ),
    "uncompared-failing-by-hand": "{names:few} fails in head where it prints on a terminal, and does not in base",
    "uncompared-setup": (
        "runs of head wait longer for a service outside the revisions, which {names:few} lays out, and that differs between base and head: "
        "CPU time tells nothing of it"
    ),
    "uncompared-first": (
        "runs of {names:few} make the same call again and again, which head takes less for, and a single call in a process takes head "
        "longer: later calls find what the first one left"
    ),
    "uncompared-submodule": "{names:few} has changes that are in no commit, and were not compared: commit them in the submodule",
    "tasks-apart": (
        "threads or processes of {points:three} could have used {wanted:significant} CPUs at the same time and got {ran:significant}, so "
        "that waiting for each other, for locks or lines of the cache, may not have shown: a quieter machine would tell"
    ),
    "fewer-tasks": (
        "of the tasks that {point} has, {head:significant} could work at a time in head and {base:significant} in base, where other work "
        "on the machine kept them apart, so that head may take longer by the clock: a quieter machine would tell"
    ),
    "beside-unfelt": "{concluded}; slower functions that it does not feel: {names:few}",
    "beside-accepted": "{concluded}; accepted: {accepted:commas}",
    "beyond-accepted": "No regression beyond what is accepted: {accepted:commas}",
    "of-accepted": "`{name}` ({ratio:ratio})",
}
