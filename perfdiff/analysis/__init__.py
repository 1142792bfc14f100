"""From sample tables and exact sums to findings: what got slower, by how much, for which inputs, and why."""
