"""Measuring a comparison: its bench, the rounds of its runs, and who makes pairs of them."""
