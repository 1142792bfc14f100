"""Explanations of a verdict: causes, the path from the change to the cost, and one sentence."""
