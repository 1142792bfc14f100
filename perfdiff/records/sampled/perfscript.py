"""Samples as text, as `perf script` writes them: a line for the sample, and one for each frame, the innermost first."""

from __future__ import annotations

import re
from collections.abc import Iterator

from perfdiff.records.sampled.samples import FunctionSamples, by_function

FORM = "perf script"
# What follows the name in `sort 4242 [001] 12345.678901:     250000 cpu-clock:pppH:`; without call graphs a frame stands behind it.
# No two parts of a pattern take the same blanks, as a line of many would then take a time that grows with their square.
_SAMPLE = re.compile(r"\s\d+(?:/\d+)?\s+(?:\[\d+\]\s+)?\d+\.\d+:\s+(?:(\d{1,18})\s+)?(\S+):(?:\s+(.*))?$")
_ADDRESS = re.compile(r"\s*[0-9a-f]+\s+(?=\S)")
_OBJECT = re.compile(r"\s\(([^()]*(?:\([^()]*\))?)\)$")  # the file that a frame's code is of, perhaps `(deleted)`
_CLOCKS = ("cpu-clock", "task-clock")  # whose periods are ns


def read(text: str) -> FunctionSamples | None:
    """Return the samples of the first event in such a text, None where it is none."""
    samples = list(_samples(text))
    if not samples:
        return None
    event = samples[0][0]
    own = by_function((function, amount) for name, function, amount in samples if name == event)
    return FunctionSamples(f"{FORM}, {event}", own, 1.0 if event.startswith(_CLOCKS) and max(own.values()) > 1e3 else None)


def _samples(text: str) -> Iterator[tuple[str, str, float]]:
    """Yield the event of each sample, its innermost function and its period, 1 where none is told."""
    event, amount = "", 0.0
    for line in text.splitlines():
        if sample := _SAMPLE.search(line):
            event, amount = sample[2].partition(":")[0], float(sample[1] or 1)
        frame = (sample[3] or "") if sample else line
        if event and (function := _function(frame)):
            yield event, function, amount
            event = ""


def _function(frame: str) -> str:
    """Return the function of a frame, `55d0c0a1 partition+0x1f (/usr/bin/sort)`, "" where a line is none."""
    address, code_object = _ADDRESS.match(frame), _OBJECT.search(frame)
    if address is None or code_object is None:
        return ""
    name = frame[address.end() : code_object.start()].strip()
    return f"[unknown in {code_object[1].rpartition('/')[2]}]" if name == "[unknown]" else name
