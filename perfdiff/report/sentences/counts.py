"""What counts tell of a function, in words: its work, its memory, and the lines that its threads fetch from each other."""

from __future__ import annotations

from collections.abc import Mapping

from perfdiff.report.sentences.spelling import Facts, Wording, filled


def _makes(singular: str, plural: str, then: str = "{lines}") -> Wording:
    def wording(facts: Facts) -> str:
        what = singular if facts["head"] == 1 else plural
        return filled(f"it makes {{head:count}} {what} a call at {{at}}, {{base:count}} before{then}", facts)

    return wording


_LINES = "{head:?{head:count} lines|no lines} a call, {base:?{base:count} lines|no lines} before"
_FETCHES = f"{{through:?through it `{{through}}`|it}} fetches {_LINES}, at {{at}}"
_WHERE = "{hottest}{lines}"

WORDINGS: Mapping[str, Wording] = {
    "executes": "executes {head:count} {counter:work} a call at {at}, {base:count} before",
    "works-at": "{head:count} {counter:work} a call at {at}, {base:count} before",
    "executes-more": "it {executes}{exact:?, the same in every run}{lines}",
    "atomic-operations": _makes("atomic operation", "atomic operations", ", each of which waits for those before it{lines}"),
    "divisions": _makes("division or square root", "divisions and square roots"),
    "misses": "misses {counter:cache} {head:count} times a call at {at}, {base:count} before",
    "locality": "it misses {counter:cache} {head:often} a call at {at}, {base:often} before, though it does no more work{lines}",
    "remote-memory": f"{_FETCHES}, from another node's memory: the thread that first writes to a page decides where it lies{_WHERE}",
    "false-sharing": f"{_FETCHES}, that another thread had modified elsewhere: threads write different bytes of the same lines{_WHERE}",
    "true-sharing": f"{_FETCHES}, that another thread had modified: threads write the same data{_WHERE}",
    "hottest-page": "; the hottest page holds {holds:and}",
    "hottest-line": "; the hottest line holds {holds:and}",
    "makes-allocations": _makes("allocation", "allocations", "{at_once:run-on}{lines}"),
    "allocates": "it allocates {head:size} a call at {at}, {base:size} before{at_once:run-on}{lines}",
    "up-to-at-once": ", up to {head:size} in use at once ({base:size})",
    "more-memory": "it has {head:size} of memory in use at once at {at}, {base:size} before{lines}",
    "exact-counts": "exact counts of work {share:?differ by {share:percent} of a run at most|are equal in every function}",
    "executes-otherwise": "{counts:?executes {counts:and} in one run of each point|makes {more:?more|fewer} calls of what does work}",
    "further-count": "{count:count} {more:?more|fewer} {counter:counted}",
    "waits-for": "{what:and}",
    "shares-lines": "its threads get in each other's way",
    "lies-far": "its data lie in another node's memory",
    "few-runs-alike": "only {base} and {head} runs of the same points: add runs",
    "warms-up": "`{name}` ({factor:about} times as much in its first {calls:times}{side:?, in {side}})",
    "garbage-collection": "it sets off {head:count} collections of garbage a call at {at}, {base:count} before"
    "{head_ns:?, in {head_ns:duration}, {base_ns:duration} before}{lines}",
}
