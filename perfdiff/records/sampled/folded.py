"""Folded stacks, as `stackcollapse-*.pl`, py-spy, async-profiler and inferno write them: frames from the outermost on, and a number."""

from __future__ import annotations

import re

from perfdiff.records.sampled.samples import FunctionSamples, by_function

FORM = "folded stacks"
_LINE = re.compile(r"^(.*) (\d{1,18}(?:\.\d{1,9})?)$")
_TWO = re.compile(r" \d{1,18}$")


def read(text: str) -> FunctionSamples | None:
    """Return what such a text holds, None where it is none; raise ValueError where lines have numbers of two sides."""
    lines = [line for line in text.splitlines() if line.strip()]
    matches = [_LINE.match(line) for line in lines]
    if not lines or not all(matches) or not any(";" in line for line in lines):
        return None
    stacks = [(match[1], float(match[2])) for match in matches if match]
    if all(_TWO.search(frames) for frames, _ in stacks):
        raise ValueError("each line has two numbers; give the stacks of each side in a file of its own")
    return FunctionSamples(FORM, by_function((frames.rpartition(";")[2], amount) for frames, amount in stacks))
