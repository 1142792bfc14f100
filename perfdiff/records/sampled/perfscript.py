"""Samples as text, as `perf script` writes them: a line for the sample, and one for each frame, the innermost first."""

from __future__ import annotations

import re
from collections.abc import Iterator

from perfdiff.records.sampled.samples import FunctionSamples, by_function

FORM = "perf script"
# `sort 4242 [001] 12345.678901:     250000 cpu-clock:pppH:` and, without call graphs, the frame behind it.
_SAMPLE = re.compile(r"^\s*\S.*?\s+\d+(?:/\d+)?\s+(?:\[\d+\]\s+)?\d+\.\d+:\s+(?:(\d{1,18})\s+)?(\S+):(?:\s+(.*))?$")
_FRAME = re.compile(r"^\s*[0-9a-f]+\s+(.+?)\s+\(([^()]*(?:\([^()]*\))?[^()]*)\)$")
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
        if sample := _SAMPLE.match(line):
            event, amount = sample[2].partition(":")[0], float(sample[1] or 1)
            if frame := _FRAME.match(sample[3] or ""):
                yield event, _named(frame), amount
                event = ""
        elif event and (frame := _FRAME.match(line)):
            yield event, _named(frame), amount
            event = ""


def _named(frame: re.Match[str]) -> str:
    return f"[unknown in {frame[2].rpartition('/')[2]}]" if frame[1] == "[unknown]" else frame[1]
