"""Results of counted runs: own counts, shared memory, and unusual calls."""
