"""Print the results of several pytest runs, given as JUnit XML files, as one line in pytest's own form."""

from __future__ import annotations

import sys
from collections import Counter
from xml.etree import ElementTree

counts: Counter[str] = Counter()
seconds = 0.0
for path in sys.argv[1:]:
    for suite in ElementTree.parse(path).iter("testsuite"):
        for word, attribute in (("failed", "failures"), ("error", "errors"), ("skipped", "skipped"), ("run", "tests")):
            counts[word] += int(suite.get(attribute, "0"))
        seconds += float(suite.get("time", "0"))
counts["passed"] = counts["run"] - counts["failed"] - counts["error"] - counts["skipped"]
said = [f"{counts[word]} {word}" for word in ("failed", "passed", "skipped", "error") if counts[word]]
print(f"{', '.join(said) or 'no tests ran'} in {seconds:.2f}s")
