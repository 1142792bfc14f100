"""The machine that is measured on: what it has, what it lacks, and what helps."""
