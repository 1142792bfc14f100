"""What is told of each function besides its verdict: what happened, the path from the change to the cost, metrics and lines."""
