"""What notes are made of, in words: machines that disagree, who waits for locks, larger inputs, accepted costs."""

from __future__ import annotations

from collections.abc import Mapping

from perfdiff.report.sentences.spelling import Facts, Wording, three


def _unlike_machines(facts: Facts) -> str:
    slower, faster, others = facts["slower"], facts["faster"], facts["others"]
    if not slower and not faster:
        return f"changed by other factors on {three(others)}{facts['differ'] or ''}"
    neither = "neither" if slower and faster else "not"
    standings = (("slower", slower), ("faster", faster), (neither, others))
    return f"{', '.join(f'{word} on {three(machines)}' for word, machines in standings if machines)}{facts['differ'] or ''}"


WORDINGS: Mapping[str, Wording] = {
    "unlike-machines": _unlike_machines,
    "rated": "{name} ({ratio:ratio})",
    "machines-differ-in": "; {first} and {second} differ in {differing:commas}",
    "machines-alike": "; nothing known of them differs",
    "function-differs": "`{name}` is {machines}",
    "runs-differ": "whole runs at {point} take {machines:three}",
    "waits-longer": "; `{name}` waits {base_ns:duration} → {head_ns:duration} a call for locks",
    "more-points": ", and at {more} more of {points} points,",
    "more-calls": "is that of more calls, not of a higher cost per call",
    "larger-inputs-of": (
        "comes with larger inputs{inputs:? ({inputs:commas})}, mostly of `{name}`: "
        "{is_comparable:?not a higher cost per input|its cost per input cannot be compared with base's}"
    ),
    "granted": "{entry}{ratio:? is {ratio:ratio},} accepted{until:? until {until}}: {reason}",
    "entry": "`{name}`, {metric} {ratio:ratio}",
}
