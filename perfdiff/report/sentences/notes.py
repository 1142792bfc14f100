"""What is told beside the answer, in words: each kind is the slug of a note."""

from __future__ import annotations

from collections.abc import Mapping

from perfdiff.report.sentences.spelling import Wording

WORDINGS: Mapping[str, Wording] = {
    "slower-beside": "slower all the same, in a program that is faster as a whole: {guilty}",
    "layout-decides": (
        "the builds as they are: head takes {ratio:ratio} the {cost} of base at {point} ({pairs} pairs); in {layouts} layouts of the same "
        "code that is {mean:ratio} in the mean, and {low:ratio} to {high:ratio} in eight of ten: the place of code in memory makes that"
    ),
    "few-layouts": (
        "whole runs at {points:listed} are slower in the layouts that were measured, but these are fewer than {known}, and the place of "
        "code in memory may make up to {shift:whole-percent}: raise measure.layouts"
    ),
}
