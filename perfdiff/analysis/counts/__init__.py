"""What counted runs tell: own counts, memory that is shared, and calls unlike the others."""
