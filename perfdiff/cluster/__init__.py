"""Measuring on the workers of a Dask cluster: this process decides what is run, stations beside the workers make pairs of runs."""

PROTOCOL = 4  # rises with each change of what clients and stations say to each other
RESOURCE = "perfdiff"  # that a worker declares one of to be measured on
