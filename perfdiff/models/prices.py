"""What one event of a counter takes, in ns on current processors.

Four prices, for four questions. `LEAST_NS`: does a count alone prove that a call waits, on a machine that has what it waits for?
`usual_ns`: could so many more events be a material part of a call? `DEAREST_NS`: could they explain so much measured time?
`WORK_NS`: what do they take at the least, though a processor does several at once?
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from perfdiff.languages.installed import installed
from perfdiff.records.metrics import metric_of

_OF_LANGUAGES = {counter: price for traits in installed() for counter, price in traits.prices.items()}

# Beyond a fetch that hits the own cache or node: a line from another core of the same chip takes 40 ns and more, memory of the other node
# 50 ns and more beyond one's own.
LEAST_NS: Mapping[str, float] = {"hitm": 40.0, "remote_dram": 50.0}
# A locked update takes up to 20 cycles, a division up to 40; a first-level miss is served in 4 ns, a second-level one in 12, memory,
# another core's cache or another node in about 100; a fault or a switch of context takes microseconds. Events of hardware are taken for
# dear. CPython's `object()` takes 60 to 130 ns, made and freed (3.11 to 3.13), and a collection that looks at 700 young objects 12 µs.
# What a counter of one language costs stands with that language's pack.
_USUAL_NS: Mapping[str, float] = {
    **{counter: price.usual_ns for counter, price in _OF_LANGUAGES.items() if price.usual_ns is not None},
    "objects": 100.0,
    "collections": 20_000.0,
    "loads": 1.0,
    "stores": 1.0,
    "atomics": 6.0,
    "divisions": 10.0,
    "l1d_misses": 4.0,
    "l2_misses": 12.0,
    "page_faults": 1_000.0,
    "switches": 5_000.0,
}
_USUAL_OF_UNIT: Mapping[str, float] = {"count": 100.0, "bytes": 0.1, "ns": 1.0}
# A load that waits for the first-level cache, or for a store before it; an atomic operation that waits for all stores before it; a division
# of 64 bits on processors before Ice Lake (90 cycles); a library's function that reads some 10 kB; a system call that copies as much; a
# query that a database answers from its disk; another socket's modified line, or its memory under load; a fresh page is a fault and its
# clearing, some µs for 4 kB; an allocator may ask the system for memory, a fault the disk for a page; a wait has no bound. Time is itself.
# An object may need a new page, and be followed by the collector; a collection of the oldest generation looks at all objects that there
# are.
DEAREST_NS: Mapping[str, float] = {
    **{counter: price.dearest_ns for counter, price in _OF_LANGUAGES.items() if price.dearest_ns is not None},
    "objects": 500.0,
    "object_bytes": 1.0,
    "collections": 1e6,
    "blocks": 5.0,
    "loads": 5.0,
    "stores": 5.0,
    "atomics": 20.0,
    "divisions": 25.0,
    "library_calls": 1e3,
    "system_calls": 1e4,
    "queries": 1e7,
    "l1d_misses": 20.0,
    "l2_misses": 60.0,
    "llc_misses": 200.0,
    "hitm": 300.0,
    "remote_dram": 300.0,
    "alloc_bytes": 1.0,
    "alloc_count": 5e3,
    "lock_wait_ns": 1.0,
    "lock_hold_ns": 1.0,
    "page_faults": 1e5,
    "switches": math.inf,
}
# A block is one to five instructions, of which processors begin four to six in a cycle of 0.2 to 0.3 ns. A locked update of a line that is
# there takes 8 cycles and more (Zen 3 and later; Intel 18: uops.info), and the next one waits for it: 1.5 ns beyond a plain one is what was
# measured of reference counts that became atomic. Misses overlap: ten are under way at once, and the next level's prefetching hides many. A
# processor begins a division of 64 bits every 4 to 10 cycles, one of floating numbers every 4 or 5 (uops.info: Zen 2 and later, Ice Lake
# and later). A call through the linker's table and back takes some cycles; one of the kernel that does nothing 50 ns (Linux, no
# mitigations); a query of a database in the same process that finds its one row in memory 500 ns.
WORK_NS: Mapping[str, float] = {
    **{counter: price.work_ns for counter, price in _OF_LANGUAGES.items() if price.work_ns is not None},
    "blocks": 0.2,
    "atomics": 1.5,
    "divisions": 1.0,
    "l2_misses": 1.2,
    "llc_misses": 10.0,
    "library_calls": 1.0,
    "system_calls": 50.0,
    "queries": 500.0,
}


def usual_ns(counter: str) -> float:
    """Return the ns that one unit of a counter usually adds to a call at most."""
    return _USUAL_NS.get(counter, _USUAL_OF_UNIT[metric_of(counter).unit])
