"""What annotations tell beside HotCloud's models, held against calls and through revisions, in words."""

from __future__ import annotations

from collections.abc import Mapping

from perfdiff.report.sentences.spelling import Facts, Wording, filled

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


_SELECTIONS: Mapping[str, Wording] = {
    "correlation-falls": "its correlation with `{feature}` is {correlation:.2f}, and the highest value is taken",
    "follow-and-scatter": "the costs follow `{feature}`, and scatter about it by more than the thresholds allow",
    "follow-but-for-delayed": "the costs follow `{feature}` but for {share:.1%} of the calls, which lie far above",
    "follow-no-parameter": "the costs follow {features:names}, which is no number among the parameters",
    "follow-together": "the costs follow {features:names} together",
    "leaves-out-delayed": "{share:.1%} of the calls, far above the others, which its costs leave out",
    "like-calls-before": "calls cost what the recorded ones before them did (a correlation of {correlation:.2f})",
    "misses-clusters": "{clusters} clusters, about {centres:centres}",
    "misses-correlation": "a correlation of {correlation:.2f} with `{feature}`",
    "misses-delayed": "that {share:.1%} of the calls are delayed: they pull its costs up",
    "misses-features": "that they follow {features:names}",
    "misses-growth": "that they grow as {growth}: it has polynomials alone",
    "misses-modes": "{modes} modes: they lie within {share:.0%} of the mean",
    "misses-more-features": "that they follow {features:names} as well: it has one feature",
    "misses-other-features": "that they follow {features:names} rather than `{instead}`",
    "misses-scopes": "the costs are others by {features:names}: it has no scopes",
    "misses-small-features": "that they follow {features:names}: by less than {share:.0%} of the mean, where it looks no further",
    "misses-twins": "that `{feature}` cannot be told from {twins:names}",
    "modes-of-no-input": "{modes} modes that no input tells apart",
    "nothing-tells": "neither inputs nor the order of calls tell, and the costs form no modes",
    "varies-between-runs": "{share:.0%} of what the costs vary lies between runs",
}
WORDINGS: Mapping[str, Wording] = {
    **_SELECTIONS,
    "absent-function": "no function of this name: removed, renamed, or not recorded",
    "exceeded-by-chance": "it is exceeded, but not beyond chance: add runs",
    "few-runs": "only {runs} runs: add runs",
    "given": "{reason}",
    "input-not-recorded": "its input `{feature}` is not recorded any more",
    "learnt-from-few-runs": "the runs differ too much: learn the annotation from more runs",
    "many-functions": "{functions} functions have this name",
    "metric-not-recorded": "{metric} was not recorded",
    "namesakes": "there are {functions} functions of this name, and {annotated} annotated",
    "never-called": "never called by any workload",
    "no-calls-kept": "none of its single calls was kept",
    "no-function": "no function of this name",
    "other-inputs-than-annotated": "most of its calls have other inputs than were annotated: annotate anew",
    "recorded-apart": "{drift:?the revisions were recorded one after the other, and the machine itself may change meanwhile: times count as"
    " changed from {drift:whole-percent} on; `perfdiff BASE HEAD` measures two revisions in turn and sees smaller changes"
    "|the annotations come from another recording: what differs between the two, such as the machine or its load, counts as the code's}",
    "recorded-elsewhere": "another machine recorded it, and no revision before that has the function was recorded by both",
    "recorded-in-turn": "several machines recorded the revisions, each a stretch of them and the last one of the stretch before: changes"
    " are told from recordings of one machine alone, and costs as the first machine would have them",
    "runs-differ-too-much": "the runs differ too much: add runs, or run on a quieter machine",
    "service-not-asked": "no run exchanged anything with service {service}: do the workloads use its port, {service:port}?",
    "service-worse": _service_worse,
    "slower-throughout": "{slower} of {times} times are above their annotations, by ×{low:.2f} to ×{high:.2f}:"
    " rather a slower machine, compiler or setting than the code of single functions",
}
