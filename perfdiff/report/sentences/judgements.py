"""What is missing for a judgement of a metric, in words."""

from __future__ import annotations

from collections.abc import Mapping

from perfdiff.report.sentences.spelling import Wording

_WHERE = "{stratum:? ({stratum})}"

WORDINGS: Mapping[str, Wording] = {
    "base-differs-from-itself": "base against base differs by up to {share:percent}, more than the smallest effect of interest,"
    " {least:percent}: add runs, larger inputs, or a quieter machine",
    "few-runs-a-side": "only {base} and {head} runs: add runs",
    "not-beyond-chance": f"{{ratio:ratio}}{_WHERE} is not beyond chance: add runs",
    "not-excluded": f"up to {{ratio:ratio}}{_WHERE} is not excluded: add runs",
    "no-equal-inputs": "its inputs in head have no equals in base",
    "too-few-runs": "too few runs: add runs",
}
