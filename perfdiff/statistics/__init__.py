"""The statistics of pairs of runs and of machines: measuring goes by them as the analysis does, and they judge nothing."""
