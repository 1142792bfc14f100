"""The trees that workloads run in, and what runs meet there."""
