"""What a search of commits answers, and what trends say of growth, in words."""

from __future__ import annotations

from collections.abc import Mapping

from perfdiff.report.sentences.spelling import Wording

WORDINGS: Mapping[str, Wording] = {
    "culprit": "{certain:?Culprit|Likeliest, not certain}: {commit} ({summary}), with {confidence:percent} confidence",
    "culprit-among": "{certain:?Culprit|Open}: one of {count} commits up to {commit}, with {confidence:percent} confidence"
    "{certain:?; no commit between them can be measured}",
    "exponent-may-be": "its exponent may be up to {exponent:.2f}: add inputs of more sizes",
    "feature-does-not-vary": "{feature} is no feature of these runs, or does not vary",
    "few-sizes-in-range": "fewer than three sizes with a count lie in the range of {feature} that was saved",
    "few-values": "it runs at fewer than three values of {feature}",
    "growth-culprit": "Culprit: {commit} ({summary})",
    "growth-culprit-among": "Culprit: one of {count} commits up to {commit}; no commit between them can be counted",
    "lines-are-gone": "none of its lines is there any more",
    "lower-order-is-gone": "its exponent is higher, but the largest run that was saved costs no more: something of lower order is gone",
    "no-feature-of-runs": "{feature} is no feature of its runs",
    "no-feature-told": "no feature told how it grew",
    "no-function-ran": "no function of this name ran",
}
