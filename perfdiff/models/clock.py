"""What probes can tell of the time of a call, in ns."""

from __future__ import annotations

# Smaller times, and smaller differences of times, are beyond a probe's own resolution (two time stamps cost about 18 ns, and their cost is
# known to a nanosecond or two) and within what a shift of the code by some bytes makes.
RESOLUTION_NS = 2.0
# Of the some 25 ns that a probe takes, up to this much lies between its time stamps and is taken off. A processor that runs ahead may hide
# it within the call's own work, the same on both sides: a call that seems to take 1 ns may take 11.
HIDDEN_NS = 10.0
# Time stamps of some processors advance in steps of so much (seen on a virtual EPYC).
STEP_NS = 10.0
