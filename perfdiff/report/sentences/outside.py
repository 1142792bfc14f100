"""What functions call outside of the project's code, in words."""

from __future__ import annotations

from collections.abc import Mapping

from perfdiff.report.sentences.spelling import Wording

_BEFORE = "{instead_of:?in place of `{instead_of}`|{base:often} before}"
_EACH = "{head_ns:?, {head_ns:duration} each}"
_SENT = "{requests:?requests|queries}"

WORDINGS: Mapping[str, Wording] = {
    "calls-outside": f"calls `{{name}}` {{head:often}} a call at {{at}}, {_BEFORE}"
    f"{{is_all:?, nearly all of its time|{_EACH}}}{{in_run}}{{others:run-on}}",
    "and-calls": f", and `{{name}}` {{head:often}}, {_BEFORE}",
    "in-one-run": " (in one run {head:count}, {base:?{base:count}|none} before)",
    "asks": f"sends {{per_element:?{{requests:?a request|a query}} per element|more {_SENT}}}: "
    f"{_SENT} a call: {{base:count}} → {{head:count}} at {{at}} ({{through:?through `{{through}}`, }}`{{name}}`){_EACH}{{in_run}}",
    "enters-kernel": "; through it `{name}` is called {head:often} in one run of {at}, {base:often} before, each time a call of the kernel",
    "more-queries": "it {often}{lines}",
    "library-calls": "it {often}{lines}",
    "system-calls": "it {often}, each time a call of the kernel{lines}",
    "call-takes-longer": "`{name}`, which takes {head_ns:duration} a call at {at}, {base_ns:?{base_ns:duration}|next to nothing} before",
    "library-time": "it calls {calls:and-beside}{lines}",
}
