"""Profiles by sampling, as profilers wrote them: how often each function was met at work, and two sides of such as an experiment."""
