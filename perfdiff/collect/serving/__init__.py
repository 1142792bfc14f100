"""Services that workloads need, and the way to them."""
