"""Statistics that know nothing of functions: two samples of runs, and parts of tables."""
