"""What can explain the cost of a guilty function, by how much of it, with the figures and lines behind it."""
