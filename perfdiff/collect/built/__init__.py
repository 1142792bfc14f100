"""What was built to be run: its variants, what it loads, and whether runs reach what was probed."""
