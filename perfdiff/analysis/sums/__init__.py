"""The exact sums of an experiment: per run and function, and from function to function."""
