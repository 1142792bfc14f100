"""Extra cost, taken apart and moved to the change behind it."""
