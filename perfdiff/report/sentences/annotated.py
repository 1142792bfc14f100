"""What annotations tell beside HotCloud's models, held against calls and through revisions, in words."""

from __future__ import annotations

from collections.abc import Mapping

from perfdiff.report.sentences.spelling import Wording

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
    "recorded-elsewhere": "another machine recorded it, and no revision before that has the function was recorded by both",
    "runs-differ-too-much": "the runs differ too much: add runs, or run on a quieter machine",
}
