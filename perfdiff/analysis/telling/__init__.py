"""What is said of a decision: causes, the way to the cost, and one sentence."""
