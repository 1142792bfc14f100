"""Extra cost, divided into parts and attributed to the change behind it."""
