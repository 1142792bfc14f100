"""Detectors of calls whose counters, read together, differ from what base taught (AutoPerf §4)."""
