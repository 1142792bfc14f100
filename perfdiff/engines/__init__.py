"""Where the analysis of many functions runs: in this process, in several of this machine, or on the workers of a Dask cluster."""
