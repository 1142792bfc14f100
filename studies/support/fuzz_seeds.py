"""Valid inputs of the readers of text, which `fuzz.py` damages."""

from __future__ import annotations

import json

CONFIGURATION = """\
[build]
command = "make -j2"
overlay = ["bench/"]
timeout_s = 600

[probes]
overhead = 0.02

[compare]
min_effect = 0.05
confidence = 0.95
seed = 1

[counters]
l1d = "32 KiB/8"
budget_s = 30

[[workload]]
name = "sort"
command = "./bench/sort {n} {mode}"
parameters = { n = [1000, 3000, 10000], mode = ["fast", "slow"] }
runs = 5
timeout_s = 10.5

[[workload]] # the second
name = 'large'
command = \"\"\"./bench/large
 {n}\"\"\"
parameters.n = [
  1, # one
  2e6,
]
"""

ACCEPTED = """\
# known
[[accepted]]
function = "insert"
file = "src/list.c"
metric = "wall_ns"
ratio = 1.4
interval = [1.3, 1.5]
reason = "checks its input now"
base = "v1"
head = "v2"
date = 2026-01-31
until = 2027-01-31

[[accepted]]
function = "a::b<int>"
metric = "blocks"
ratio = 2
reason = 'larger'
"""

STATE = json.dumps(
    {
        "good": "a" * 40,
        "bad": "b" * 40,
        "taken": {"c" * 40: {"reading": {"effect": 0.1, "error": 0.2}, "times": 2, "place": {"file": "a.c", "line": 3}}},
        "skipped": {"d" * 40: "does not build"},
        "alike": {"e" * 40: "c" * 40},
        "tried": [{"suspects": ["c" * 40], "reading": {"effect": 0.1, "error": 0.2}}],
        "spent_s": 12.5,
    }
)

ANNOTATIONS = (
    """\
f.wall_ns(n, m) { // class = linear; n = 200; r2 = 0.98; cv_r2 = 0.97; runs = 10; points = 3; level = 0.1; spread = 0.02; misfit = 0.01
  int n = arg.n; // origin = argument; range = 1 to 1000; typical = 500; twins = list->size, "a b"
  int mode = arg.mode; // codes = FAST 1, SLOW 2
  bool hit = "taken(a && b @12)"; // true = above 0.5
  [n <= 100 && (mode == FAST || mode == SLOW)] Norm(400 + 12*n, 30); // share = 0.5; sigma = 3
  [n > 100 && !absent(mode)] {
    {0.7} Norm(10*n*log2(n) + 3*n^2, 5); // class = quadratic; n = 20
    {0.3} 20 + Exp(0.5);
  };
  [hit] Norm(12*n, 0);
}
""",
    """\
g.alloc_bytes() {
  Norm(64, 0);
}
"operator<".blocks(x) {
  double x = field.x;
  [x < 3] Norm(5 + 2*x, 1);
  [x >= 3] {0.5} 7 + Binom(3, 0.5);
}
""",
)
