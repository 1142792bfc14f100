"""Listings of the suites of benchmarks and tests that a built tree of C or C++ has, by framework."""
