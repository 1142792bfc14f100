"""Which functions are measured, and how often each of their calls."""
