"""Trends: how counts of places grow with features of whole runs, in one revision and between two (trend-prof)."""
